"""Baselines made from a run: the failures of each target, with the class of machine that it ran on."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator

import msgspec

from harness.core.errors import UsageError
from harness.core.later_words import what_is_wrong
from harness.core.verdict import Family, Verdict
from harness.plan.baseline import Baseline
from harness.plan.device_class import class_of, class_words
from harness.plan.matrix import Matrix
from harness.plan.surroundings import surroundings_of
from harness.plan.where import Where
from harness.report.merge import MergedRun


def baselines_of(run: MergedRun, wanted: Callable[[str], bool]) -> tuple[Baseline, ...]:
    """Return a baseline for each requested target that ran, sorted by name.

    Raises:
        UsageError: The matrix of the run cannot be read, none of these targets ran, or a target ran on
            several kinds of machines.
    """
    where = ", ".join(map(str, run.folders))
    try:
        matrix = msgspec.convert(run.matrix, Matrix)
    except msgspec.ValidationError as error:
        raise UsageError.at(where, f"its matrix is invalid: {what_is_wrong(error)}") from error
    failures: dict[str, dict[Verdict, list[str]]] = defaultdict(lambda: defaultdict(list))
    for _, record in run.records:
        if record.verdict.family is Family.FAILED:
            failures[record.target][record.verdict].append(record.cell)
    classes = _classes(run, matrix)
    found = tuple(
        Baseline(
            file="",
            target=target.name,
            provider=target.provider[0],
            where=_only(target.name, its, where),
            failures={verdict: tuple(sorted(cells)) for verdict, cells in failures[target.name].items()},
        )
        for target in sorted(matrix.targets, key=lambda one: one.name)
        if wanted(target.name) and (its := classes.get(target.name))
    )
    if not found:
        raise UsageError.at(where, "none of its targets could be used", "see: ep-harness doctor MATRIX")
    return found


def file_name(run: MergedRun, baselines: tuple[Baseline, ...]) -> str:
    """Return a name from matrix and class of machine, such as ``local-linux-x86_64-1f3a9c.toml``."""
    classes = msgspec.json.encode([(one.target, one.where) for one in baselines])
    stem = run.matrix_file.rpartition(".")[0] or "baseline"
    parts = [stem, *baselines[0].where.os, *baselines[0].where.architecture]
    return "-".join([*parts, hashlib.sha256(classes).hexdigest()[:6]]) + ".toml"


def _classes(run: MergedRun, matrix: Matrix) -> dict[str, list[Where]]:
    """Return target -> the classes of machine that it ran on."""
    found: dict[str, list[Where]] = {}
    targets = {target.name: target for target in matrix.targets}
    ran = {record.target for _, record in run.records if not record.lacks_target}
    for environment in run.environments:
        one = targets.get(environment.target)
        if one is not None and one.name in ran:
            here = class_of(surroundings_of(environment.fingerprint, one.provider, one.device))
            its = found.setdefault(one.name, [])
            its += [] if here in its else [here]
    return found


def _only(target: str, classes: list[Where], where: str) -> Where:
    if len(classes) > 1:
        told = " / ".join(map(class_words, classes[:2]))
        what = f"the target {target!r} ran on machines of several kinds: {told}"
        raise UsageError.at(where, what, "name the run of one of them")
    return classes[0]


def known_lines(baselines: tuple[Baseline, ...]) -> Iterator[str]:
    """Yield a line for each target: how many failures are known, and where."""
    width = max(len(one.target) for one in baselines)
    for one in baselines:
        yield f"{one.target:<{width}}  {len(one.by_cell):,} failures on {class_words(one.where)}"
