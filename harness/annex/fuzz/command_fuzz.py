"""`ep-harness fuzz`: run generated models until an EP gives a wrong answer."""

import shlex
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import TypedDict, Unpack

import msgspec

from harness.annex.fuzz.campaign import Campaign, FuzzSettings, plan_of
from harness.annex.fuzz.fuzz_state import planned_cells, read_state
from harness.annex.fuzz.heaps import share_heaps
from harness.annex.made.forms.numbered_forms import count_choices, known_operators
from harness.cli.output import print_lines, wrapped
from harness.cli.targets import ProviderRequest, naming_arguments
from harness.core.text.errors import (
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_UNEXPECTED,
    UsageError,
    valid_names,
)
from harness.core.text.globs import glob_matcher
from harness.plan.matrix import Matrix, matrix_from, read_matrix
from harness.report.runs.read import read_run
from harness.run.run_folder import RunFolder, default_folder
from harness.studies.ask import matrix_for

_SHOWN = 30
"""Groups of failures that are listed."""

_BY_NOISE = "[[tolerance]]\nnoise = {}\n"
"""Generated models are judged by their own rounding noise."""


class FuzzOptions(TypedDict):
    """Arguments of the command: what is generated, and settings of one provider.

    ``seconds`` is the time for making models, ``stop`` the number of models after which it ends,
    ``operators`` names or globs separated by commas, or None for all; the others are fields of
    ``ProviderRequest``.
    """

    seconds: float
    seed: int
    operators: str | None
    stop: int | None
    plugin: str | None
    options: list[str]
    device: list[str]
    env: list[str]


def fuzz(
    *,
    targets: list[str],
    target: list[str],
    out: Path | None,
    resume: Path | None,
    with_report: bool,
    triage_s: float,
    **wanted: Unpack[FuzzOptions],
) -> int:
    """Fuzz targets until the time is up; write a run folder, and triage the failures.

    Returns:
        0 if nothing failed, 1 if something did, 3 if nothing did and a target cannot be used, 130 after
        Ctrl-C.
    """
    share_heaps()
    settings_of_one = ProviderRequest(
        provider=targets[0],
        plugin=wanted["plugin"],
        options=wanted["options"],
        device=wanted["device"],
        env=wanted["env"],
    )
    matrix = _matrix(targets, target, settings_of_one)
    seed, operators, before = wanted["seed"], _operators(wanted["operators"]), None
    if resume is None:
        folder = RunFolder.create(out or default_folder(PurePath("fuzz.toml")), plan_of(matrix, seed, 1, ()))
    else:
        state, data = read_state(resume), read_run(resume)
        seed, operators, before = state.seed, state.operators, (data.records, state)
        plan = plan_of(matrix, seed, state.suite, planned_cells(resume))
        folder = RunFolder.reopen(resume, plan, data.info, len(data.records))
    settings = FuzzSettings(seed=seed, seconds=wanted["seconds"], operators=operators, stop=wanted["stop"])
    work = Campaign(matrix, folder, settings, lambda text: print_lines((text,)), before)
    began = time.monotonic()
    try:
        interrupted = work.run()
    finally:
        folder.finish()
    print_lines(campaign_summary(work, time.monotonic() - began))
    failed = work.findings.groups.total()
    if failed and triage_s and not interrupted:
        from harness.annex.triage.command_triage import triage_folder

        triage_folder(work.plan().matrix, folder.path, triage_s)
    _tell_files(folder.path, targets, with_report=with_report)
    if interrupted:
        return EXIT_INTERRUPTED
    if failed:
        return EXIT_UNEXPECTED
    return EXIT_INCOMPLETE if work.unusable else EXIT_OK


def _tell_files(folder: Path, targets: Sequence[str], *, with_report: bool) -> None:
    """Print which files were written, and how to continue."""
    if with_report:
        from harness.report.report_files import write_report

        print_lines((f"report   {write_report([folder], folder / 'report')[0]}",))
    again = shlex.join(["ep-harness", "fuzz", *targets, "--resume", str(folder)])
    print_lines((f"records  {folder / 'records.jsonl'}", f"resume   {again}"))


def campaign_summary(work: Campaign, seconds: float) -> Iterator[str]:
    """Yield the lines about a campaign that has ended."""
    known = known_operators()
    # Graphs are no forms of an operator.
    forms = [choice for choice in work.coverage.choices if choice.partition("-")[0] in known]
    names = {choice.partition("-")[0] for choice in forms}
    choices = count_choices(known)
    valid, tried = work.valid
    rate = 60 * work.made / max(seconds, 1e-9)
    yield f"models   {work.models:,}, {rate:,.0f} a minute; {work.cells:,} cells judged"
    yield f"valid    {valid:,} of {tried:,} cells ({100 * valid / max(1, tried):.2f} %)"
    tried_choices = f"{len(forms):,} of {choices:,} forms (operator, opset, types)"
    yield f"covered  {len(names)} of {len(known)} operators, {tried_choices}"
    yield f"         {work.coverage.sights:,} with target, rank and placement"
    yield f"inside   {work.coverage.patterns:,} fused patterns, {work.coverage.lines:,} printed lines"
    yield f"skipped  {work.passed_over:,} cells that would have shown nothing new"
    for target, counts in work.verdicts.items():
        told = ", ".join(f"{verdict} {count:,}" for verdict, count in counts.most_common())
        yield f"target   {target}: {told or 'nothing'}"
    for target, why in work.unusable.items():
        yield f"target   {target} cannot be used: {why}"
    groups = work.findings.groups.most_common(_SHOWN)
    if groups:
        more = len(work.findings.groups) - len(groups)
        yield f"failing  {len(work.findings.groups)} groups" + (
            f", of which {more} are not shown" if more else ""
        )
    for found, count in groups:
        yield from wrapped(
            f"{count:>5}  {found.target}: {found.operator}: {found.verdict} {found.message[:160]}",
            "  ",
            "         ",
        )


def _matrix(targets: Sequence[str], target: Sequence[str], wanted: ProviderRequest) -> Matrix:
    """Return a matrix of all named targets, judged by noise unless a file says otherwise."""
    if len(targets) > 1 or targets[0].endswith(".toml"):
        wanted.refuse_settings("name one PROVIDER and no matrix file")
    found = [_of_one(msgspec.structs.replace(wanted, provider=name)) for name in targets]
    every = [one for matrix in found for one in matrix.targets]
    matches = glob_matcher(target)
    chosen = tuple(one for one in every if matches(one.name))
    names = [one.name for one in every]
    for glob in target:
        if not any(map(glob_matcher([glob]), names)):
            raise UsageError.at("--target", f"no target matches {glob!r}", valid_names(glob, names))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError.at(twice, "two targets have this name", "name each once")
    models = msgspec.structs.replace(found[0].models, folders=(), exclude=())
    return msgspec.structs.replace(matrix_for(found[0], chosen), models=models, model=())


def _of_one(request: ProviderRequest) -> Matrix:
    if request.provider.endswith(".toml"):
        return read_matrix(Path(request.provider))
    file = Path(f"{request.name}.toml")
    text = request.matrix_text().replace("required = true\n", "") + _BY_NOISE
    with naming_arguments(file):
        return matrix_from(tomllib.loads(text), file)


def _operators(text: str | None) -> tuple[str, ...]:
    """Return the operators that match names or globs."""
    known = tuple(known_operators())
    found: dict[str, None] = {}
    for glob in (text or "").split(",") if text else ():
        matches = glob_matcher((glob.strip(),))
        names = [name for name in known if matches(name)]
        if not names:
            what = f"there are no forms of an operator {glob!r}"
            raise UsageError.at("--ops", what, valid_names(glob, known))
        found |= dict.fromkeys(names)
    return tuple(found)
