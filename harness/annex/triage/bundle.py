"""Writes a bundle: a fault with everything that others need to see it, as a folder and a ``.zip``."""

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness import __version__
from harness.agent import onnx_bytes
from harness.annex.triage.bundle_environment import fault_environment_of, target_with_options
from harness.annex.triage.bundle_model import BundleContents, ModelSource, PrecedingModel, write_bundle_model
from harness.annex.triage.bundle_values import write_set, write_values
from harness.annex.triage.distance import values_difference
from harness.annex.triage.manifest import (
    BUNDLE_MODEL,
    MANIFEST,
    MOST_RUNS,
    WRONG_OUTPUTS,
    BundledFault,
    BundledModel,
    BundledSet,
    BundledTolerance,
    BundledValue,
    BundleManifest,
    FileEntry,
)
from harness.annex.triage.report_text import report_lines
from harness.annex.triage.scrub import Scrubber
from harness.core.files.structure import OPTION
from harness.core.files.writing import writing
from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.fault import Fault
from harness.core.records.scenario import CAPTURE, DYNAMIC_OPTIONS
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import UsageError
from harness.corpus.beside.data_sets import DataSet
from harness.data_files import data_root
from harness.engine.answers.open_session_options import dynamic_options_of, graph_capture_of
from harness.plan.tolerance_entry import ToleranceEntry

__all__ = ["BundleContents", "ModelSource", "PrecedingModel", "write_bundle"]

SCRIPTS = (
    "repro.py",
    "repro_judge.py",
    "repro_result.py",
    "repro_scenarios.py",
    "repro_session.py",
    "repro_values.py",
)
"""Files of ``report_templates`` that every bundle gets unchanged."""

_ONNX_BYTES = "repro_onnx.py"
"""What makes models beside a model from its bytes, in the agent as in a bundle."""

_REPORT, _PRINTED = "REPORT.md", "printed.txt"

UNREPEATED = 20
"""Runs of a session whose results differ at random: enough to see one that differs in one of five."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_RUNS_IN_ORDER = 2


def write_bundle(folder: Path, contents: BundleContents) -> Path:
    """Write a bundle into a folder, whose parent must exist. An existing one is replaced.

    Returns:
        Return the ``.zip``: it has the folder's name with that suffix, and is beside it.

    Raises:
        UsageError: Something else is at that place, or it cannot be written.
        ValueError: The fault's verdict is not a failure, expected outputs and limits do not show it, or
            external data of a model is broken.
    """
    _check(contents)
    archive = folder.with_name(folder.name + ".zip")
    with (
        writing(folder, "the bundle", "choose another folder"),
        tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch,
    ):
        made = Path(scratch) / "bundle"
        made.mkdir()
        _fill(made, contents)
        packed = Path(scratch) / "bundle.zip"
        _pack(made, packed)
        _make_room(folder)
        made.replace(folder)
        packed.replace(archive)
    return archive


def _check(contents: BundleContents) -> None:
    """Refuse contents whose bundle would report that the fault is gone."""
    verdict = contents.fault.signature.verdict
    if verdict.family not in {Family.FAILED, Family.UNSUPPORTED}:
        raise ValueError(f"{verdict} is no fault")
    if verdict in WRONG_OUTPUTS:
        if not contents.expected:
            raise ValueError(f"{verdict} needs expected outputs")
        found = dict(contents.found)
        expected = {name: value for name, value in contents.expected if name in found}
        if found and not values_difference(expected, found, contents.limits):
            raise ValueError("the limits allow the outputs that were found")


def _fill(folder: Path, contents: BundleContents) -> None:
    fault = contents.fault
    model = write_bundle_model(contents.model, folder / BUNDLE_MODEL, Scrubber.of_here())
    scrub = Scrubber.of_here((*model.names, *_names(fault)))
    preceding = []
    for number, one in enumerate(contents.preceding):
        home = folder / "preceding" / str(number)
        home.mkdir(parents=True)
        before = write_bundle_model(one.model, home / BUNDLE_MODEL, scrub)
        inputs = write_values(folder, home / "test_data_set_0", "input", one.inputs, before.inputs)
        preceding.append(BundledModel(model=f"preceding/{number}/{BUNDLE_MODEL}", inputs=inputs))
    first = DataSet(name="", inputs=contents.inputs, expected=contents.expected)
    sets = tuple(
        write_set(folder, number, data_set, model, contents.limits)
        for number, data_set in enumerate((first, *contents.further))
    )
    found = write_values(folder, folder / "found", "output", contents.found, model.outputs)
    if contents.printed.strip():
        (folder / _PRINTED).write_text(scrub(contents.printed), encoding="utf-8", newline="\n")
    for script in SCRIPTS:
        shutil.copyfile(data_root() / "report_templates" / script, folder / script)
    shutil.copyfile(str(onnx_bytes.__file__), folder / _ONNX_BYTES)
    manifest = _manifest(contents, scrub, sets, found, tuple(preceding))
    report = "".join(f"{line}\n" for line in report_lines(contents, manifest, model, scrub))
    (folder / _REPORT).write_text(report, encoding="utf-8", newline="\n")
    manifest = msgspec.structs.replace(manifest, files=dict(_entries(folder)))
    indented = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    (folder / MANIFEST).write_bytes(indented + b"\n")


def _manifest(
    contents: BundleContents,
    scrub: Scrubber,
    sets: tuple[BundledSet, ...],
    found: tuple[BundledValue, ...],
    preceding: tuple[BundledModel, ...],
) -> BundleManifest:
    """Return the manifest, still without its files."""
    fault = contents.fault
    confirmed = fault.confirmation
    axes = {**AXIS_DEFAULTS, **contents.axes}
    return BundleManifest(
        schema=1,
        harness=__version__,
        fault=BundledFault(
            id=fault.id,
            sentence=scrub(fault.sentence),
            verdict=fault.signature.verdict,
            phase=fault.signature.phase or "",
            cause=scrub(fault.signature.cause),
            message=scrub(fault.signature.message),
            outcome=confirmed.outcome,
            trials=confirmed.trials,
            failures=confirmed.failures,
            fed=scrub(fault.fed),
        ),
        target=target_with_options(contents, scrub),
        axes={axis: scrub(value) for axis, value in sorted(axes.items()) if not axis.startswith(OPTION)},
        environment=fault_environment_of(contents.fingerprint, scrub),
        tolerance=_tolerance(contents.tolerance),
        trials=max(1, min(confirmed.repeats, 1000)),
        runs=_runs(fault),
        time_limit_s=contents.time_limit_s,
        data_sets=sets,
        preceding=preceding,
        graph_capture=graph_capture_of(contents.target) if axes["scenario"] == CAPTURE else (),
        dynamic_options=(dynamic_options_of(contents.target) if axes["scenario"] == DYNAMIC_OPTIONS else ()),
        found=found,
        files={},
    )


def _runs(fault: Fault) -> int:
    """Return how often the first data set runs in one session; the runs of a scenario are among the axes."""
    usage = fault.usage
    least = usage.runs if usage is not None and usage.threads is None else None
    if fault.signature.verdict is Verdict.NONDETERMINISTIC and fault.confirmation.outcome != "always":
        least = max(least or 1, UNREPEATED)
    elif fault.signature.verdict is Verdict.NONDETERMINISTIC:
        least = least or UNREPEATED
    return min(max(least or 1, _RUNS_IN_ORDER), MOST_RUNS)


def _tolerance(entry: ToleranceEntry | None) -> BundledTolerance | None:
    if entry is None:
        return None
    return BundledTolerance(
        rtol=entry.rtol,
        atol=entry.atol,
        noise_rms=entry.noise.rms if entry.noise else None,
        noise_max=entry.noise.max if entry.noise else None,
        noise_precision=entry.noise_precision,
        steps=entry.steps,
        table_only=entry.table_only,
    )


def _names(fault: Fault) -> Iterable[str]:
    if fault.reduced is not None:
        for node in fault.reduced.nodes:
            yield node.name
        for one in fault.reduced.tensors:
            yield one.name
    if fault.location is not None:
        yield from fault.location.nodes


def _entries(folder: Path) -> Iterable[tuple[str, FileEntry]]:
    for path in _files(folder):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        yield path.relative_to(folder).as_posix(), FileEntry(sha256=digest, bytes=path.stat().st_size)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _pack(folder: Path, archive: Path) -> None:
    """Write all files into a zip that is the same for the same files: no times, no owners, sorted."""
    with zipfile.ZipFile(archive, "w") as file:
        for path in _files(folder):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, wherever it is written
            info.external_attr = 0o644 << 16
            info.file_size = path.stat().st_size  # decides whether sizes take 64 bits
            with path.open("rb") as source, file.open(info, "w") as entry:
                shutil.copyfileobj(source, entry, 1 << 20)


def _make_room(folder: Path) -> None:
    """Remove an older bundle; nothing else is ever removed."""
    if not folder.exists():
        return
    if not folder.is_dir() or folder.is_symlink():
        raise UsageError.at(folder, "is no folder of a bundle", "choose another one")
    if not (folder / MANIFEST).is_file() and any(folder.iterdir()):
        raise UsageError.at(folder, "holds other files than a bundle's", "choose another folder")
    shutil.rmtree(folder)
