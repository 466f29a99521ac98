"""`ep-harness check`: test providers with suites or folders of models, without a matrix file."""

import glob
import time
import tomllib
from pathlib import Path, PurePath
from typing import TypedDict, Unpack

import msgspec

from harness.catalog.catalog import load_catalog
from harness.cli.init import examine_here, plugins_from_here
from harness.cli.matrix_text import matrix_of, write_new_matrix
from harness.cli.output import notify, print_lines
from harness.cli.parser import run_words
from harness.cli.run import run
from harness.cli.selection_table import selection_lines
from harness.cli.surface_table import print_surfaces
from harness.cli.targets import (
    THIS_MACHINE,
    ProviderRequest,
    Tested,
    in_its_place,
    naming_arguments,
    pairs_of,
)
from harness.cli.web import WebRuntime
from harness.core.files.writing import write_aside, writing
from harness.core.records.scenario import GENERATE
from harness.core.records.selection_study import POLICIES_FILE, SelectionFile, SelectionStudy
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, UsageError
from harness.corpus.suites.suite import open_folder
from harness.engine.prepare import open_suites
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from
from harness.run.run_folder import default_folder
from harness.studies.device_selection import study_selection
from harness.studies.plugins import installed_plugins

QUICK, API, THOROUGH = "quick", "api", "thorough"

THOROUGH_S = 900.0
"""Seconds of `check --thorough`: the time that the usual tests leave is spent on fuzzing."""

FUZZ_SEED = 1
"""Seed of that fuzzing; the usual tests have models of seed 0."""

_MANY = 50
"""Number of models in a folder above which the wait is long enough for a message."""


class CheckOptions(TypedDict):
    """What is tested, and how: suites, globs on models, parts of an EP, fields of ``ProviderRequest``."""

    suites: list[str]
    model: list[str]
    extent: str
    plugin: str | None
    options: list[str]
    device: list[str]
    env: list[str]
    place: WebRuntime | None
    software_gpu: bool
    agent: str | None


def check(
    *,
    what: str,
    provider: str,
    out: Path | None,
    with_report: bool,
    native_stack: bool,
    baseline: list[Path],
    **checked: Unpack[CheckOptions],
) -> int:
    """Run a provider, or those that work here, over models. The run folder gets its matrix file.

    With that file the run can be resumed, and extended. Models that generate text with a cache play the
    scenario ``generate``: those of the suite of this name, and those of a folder. ``extent`` is how much of a
    provider is tested if neither suites nor a folder are named: ``QUICK``, ``API``,
    ``THOROUGH``, or the usual extent.

    Returns:
        The exit code is as for ``run``; a provider that cannot be used counts as an unavailable required
        target.
    """
    began = time.monotonic()
    suites, model, extent = checked["suites"], checked["model"], checked["extent"]
    folder, named = (what, provider) if _is_folder(what, provider) else ("", what)
    if extent and (suites or folder):
        hint = "leave one of them out"
        raise UsageError.at(f"--{extent}", "is about a provider without --suite and FOLDER", hint)
    whole = Tested(usual=extent != API, api=extent == API)
    models = _tested(suites, folder) if suites or folder or extent == QUICK else whole
    wanted = in_its_place(_request(named, models, checked))
    if extent == THOROUGH and (model or wanted.place or wanted.agent):
        what = "fuzzes, which goes with none of --model, --browser, --node and --agent"
        raise UsageError.at("--thorough", what)
    name = Path(folder).absolute().name if folder else wanted.name
    run_folder = out or default_folder(PurePath(f"check-{name}.toml"))
    content = _matrix_text(wanted)
    file = run_folder / "matrix.toml"
    with naming_arguments(file):
        matrix = matrix_from(tomllib.loads(content), file)
        opened = open_suites(matrix)
    plan = expand(matrix, {suite: each.models() for suite, each in opened.items()})
    plan.only(models=model)  # refuses a glob that matches nothing, before anything is written
    write_new_matrix(file, content)
    policies = _policies(wanted, run_folder) if extent == API else ()
    code = run(
        file,
        out=run_folder,
        resume=None,
        with_report=with_report,
        native_stack=native_stack,
        baseline=baseline,
        model=model,
    )
    if extent == API and code != EXIT_INTERRUPTED:
        print_surfaces(run_folder)
        for study in policies:
            print_lines(selection_lines(study))
    if code == EXIT_INCOMPLETE and not (wanted.plugin or wanted.place or wanted.agent):
        _name_plugin(wanted.provider)
    left_s = THOROUGH_S - (time.monotonic() - began)
    if extent != THOROUGH or code in {EXIT_INCOMPLETE, EXIT_INTERRUPTED} or left_s <= 0:
        return code
    return max(code, _fuzzed(wanted, run_folder / "fuzz", left_s, with_report=with_report))


def _name_plugin(provider: str) -> None:
    """Print the next step if the provider is no part of onnxruntime, and its plugin is installed here."""
    for name, package in installed_plugins(load_catalog()):
        if name == provider:
            notify(f"next         {provider} is a plugin here: add --plugin {package}")


def _policies(wanted: ProviderRequest, run_folder: Path) -> tuple[SelectionStudy, ...]:
    """Return what the selection policies choose, and write it into the run folder, for the report."""
    if wanted.place or wanted.agent:
        declined = "they are tried in a Python of this machine alone"
        found: tuple[SelectionStudy, ...] = (SelectionStudy(declined=declined),)
    else:
        plugin = wanted.plugin and plugins_from_here([wanted.plugin])[0]
        notify("trying the selection policies of onnxruntime ...")
        found = study_selection(wanted.provider, plugin, pairs_of("--env", wanted.env))
    with writing(run_folder, "the run folder"):
        content = msgspec.json.format(msgspec.json.encode(SelectionFile(studies=found)))
        write_aside(run_folder / POLICIES_FILE, content + b"\n")
    return found


def _request(provider: str, models: Tested, checked: CheckOptions) -> ProviderRequest:
    return ProviderRequest(
        provider=provider,
        models=models,
        plugin=checked["plugin"],
        options=checked["options"],
        device=checked["device"],
        env=checked["env"],
        place=checked["place"],
        software_gpu=checked["software_gpu"],
        agent=checked["agent"],
    )


def _fuzzed(wanted: ProviderRequest, out: Path, seconds: float, *, with_report: bool) -> int:
    """Spend the rest of the time on generated models; return the exit code of that."""
    words = [
        "fuzz",
        wanted.provider,
        f"--for={seconds}s",
        f"--seed={FUZZ_SEED}",
        "--triage=0",
        f"--out={out}",
    ]
    words += [] if with_report else ["--no-report"]
    words += [] if wanted.plugin is None else [f"--plugin={wanted.plugin}"]
    for name, given in (("option", wanted.options), ("device", wanted.device), ("env", wanted.env)):
        words += [f"--{name}={one}" for one in given]
    return run_words(words)


def _is_folder(what: str, provider: str) -> bool:
    """Return whether the first argument is a folder of models."""
    if Path(what).is_dir():
        return True
    if provider or Path(what).name != what or Path(what).suffix in {".onnx", ".ort"}:
        hint = "check FOLDER [PROVIDER], or check PROVIDER"
        raise UsageError.at(what, "there is no such folder of models", hint)
    return False


def _tested(suites: list[str], folder: str) -> Tested:
    found = Tested(suites=suites, folders=(folder,) if folder else ())
    generating = GENERATE in suites
    if not folder and not generating:
        return found
    from harness.studies.decoders import decoders_in  # onnx takes 0.2 s to import

    decoders = [f"{GENERATE}/*"] if generating else []
    others = [f"{suite}/*" for suite in suites if suite != GENERATE]
    if folder:
        opened = open_folder(Path(folder))
        if len(opened.models()) > _MANY:
            notify(f"looking for models that generate text among {len(opened.models())} ...")
        names = set(decoders_in(opened))
        for name in opened.models():
            kind = decoders if name in names else others
            kind.append(glob.escape(f"{opened.name}/{name}"))
    return msgspec.structs.replace(found, decoders=tuple(decoders), others=tuple(others))


def _matrix_text(wanted: ProviderRequest) -> str:
    if wanted.provider:
        return wanted.matrix_text()
    wanted.refuse_settings("name PROVIDER after the folder")
    notify("looking for providers that work here; name one after the folder to skip this ...")
    return "\n".join(matrix_of(examine_here(THIS_MACHINE), "\n".join(wanted.models.lines())))
