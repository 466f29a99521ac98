"""Judges a bundle on any target, in the engine's own processes. Nothing in the bundle is run."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.annex.triage.bundle_files import Bundle
from harness.annex.triage.distance import values_difference
from harness.annex.triage.manifest import BUNDLE_MODEL, WRONG_OUTPUTS, BundledTolerance, BundleManifest
from harness.annex.triage.session_use import REPEATED_RUNS, REPEATED_SESSIONS, RUNS, SESSIONS, THREADS_FIGURE
from harness.core.comparison.noise_limits import NoiseLimits
from harness.core.records.cell import AXIS_DEFAULTS, SESSION_ENTRY, Cell
from harness.core.records.precision import made_for
from harness.core.records.record import Record
from harness.core.records.scenario import SCENARIOS
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import valid_names
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import Suite
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished, Noted, TargetReady, Warned
from harness.engine.workers.job import THREADS
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.plan import Plan
from harness.plan.runs_entry import REPEAT, RepeatSettings, RunsRequest, has_repeat
from harness.plan.scenarios import FIGURE
from harness.plan.selector import Selector
from harness.plan.target import Target
from harness.plan.tolerance_entry import ToleranceEntry

FaultState = Literal["there", "gone", "unknown"]

RAISES = frozenset({Verdict.ERROR, Verdict.OPTION_REJECTED, Verdict.OUT_OF_MEMORY, Verdict.UNSUPPORTED})

SAME_WORDS = 0.8
"""Share of a message's words that another message must contain to report the same error."""

_LEVELS = ("disabled", "basic", "extended", "layout", "all")
_MODES = ("sequential", "parallel")
_MOST_THREADS = 256
_MOST_OF = {
    THREADS_FIGURE: 256,
    RUNS: 100_000,
    SESSIONS: 100_000,
    f"{FIGURE}budget_s": 86_400,
    REPEATED_RUNS: 1000,
    REPEATED_SESSIONS: 1000,
    f"{REPEAT}bit_equal": 1,
}
"""Axes that set how much a session is used -> their upper limit, as in a matrix file."""

_DIGITS = 7
_RANGES = ", ".join(f"{axis} up to {most:,}" for axis, most in _MOST_OF.items())
_HARMLESS_VALUE = re.compile(r"[\w ,;:=+.-]{0,200}")
_NAMES_A_FILE = re.compile(r"path|file|folder|prefix|director|librar|custom", re.IGNORECASE)


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of replaying a fault.

    Attributes:
        state: Whether the fault appears; ``unknown`` if it cannot be judged here.
        why: One line for people.
        record: The record of the last trial.
        fingerprint: Environment of the target, as far as known.
    """

    state: FaultState
    why: str
    record: Record
    trials: int
    fingerprint: dict[str, Any] = {}
    printed: str = ""


class StagedBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle prepared for the engine: one cell for each of its models, the fault's last, with its data."""

    suite: Suite
    plan: Plan
    case: Case


def replay(bundle: Bundle, target: Target, tell: Callable[[str], None]) -> Replayed:
    """Judge a bundle on a target, as often as its manifest requires, until the fault appears.

    Raises:
        UsageError: The bundle's model or settings cannot be used.
    """
    with staged(bundle, target) as stage:
        for trial in range(1, bundle.manifest.trials + 1):
            found = msgspec.structs.replace(_try(stage, bundle.manifest, tell), trials=trial)
            if found.state != "gone":
                break
        return found


@contextmanager
def staged(bundle: Bundle, target: Target) -> Iterator[StagedBundle]:
    """Unpack a bundle into a temporary folder, and make a suite and a plan of it.

    Raises:
        UsageError: The bundle's model or settings cannot be used.
    """
    manifest = bundle.manifest
    with tempfile.TemporaryDirectory(prefix="ep-harness-replay-", ignore_cleanup_errors=True) as scratch:
        root = Path(scratch) / "bundle"
        root.mkdir()
        bundle.unpack(root)
        shutil.rmtree(root / "found", ignore_errors=True)
        models = (*(one.model for one in manifest.preceding), BUNDLE_MODEL)
        suite = Suite(name="bundle", root=root, kind="folder", names=tuple(sorted(models)))
        axes = _axes(bundle)
        cells = [_cell(target, model, {} if model != BUNDLE_MODEL else axes) for model in models]
        try:
            case = load_case(suite, BUNDLE_MODEL, {})
        except ModelError as error:
            what = "its model or data cannot be used: " + str(error).replace(f"{root}", "").strip()
            raise bundle.refused(what) from error
        yield StagedBundle(suite=suite, plan=_plan(bundle, target, tuple(cells)), case=case)


def fault_state(manifest: BundleManifest, case: Case, finished: Finished) -> tuple[FaultState, str]:
    """Return whether the cell of a bundle shows its fault: the same failure, not just any failure."""
    record, wanted = finished.record, manifest.fault.verdict
    got = record.verdict
    reason = f"{got}: {record.reason}" if record.reason else str(got)
    if got is wanted or (wanted in WRONG_OUTPUTS and got in WRONG_OUTPUTS):
        if wanted in RAISES and not same_message(manifest.fault.message, _message(record)):
            return "unknown", f"another error: {_message(record)}"
        return "there", reason
    wrong = ""
    if wanted in WRONG_OUTPUTS and finished.outputs and got.family in {Family.PASSED, Family.EXCLUDED}:
        limits = {one.name: one.limit for one in manifest.data_sets[0].outputs if one.limit is not None}
        wrong = values_difference(dict(case.data_sets[0].expected), dict(finished.outputs), limits)
        state: FaultState = "there" if wrong else "gone"
    elif got.family is Family.PASSED:
        state = "gone"
    elif wanted not in WRONG_OUTPUTS and got in WRONG_OUTPUTS:  # it neither died nor raised an error
        state, reason = "gone", f"another fault is there: {reason}"
    else:
        state = "unknown"
        if got.family is Family.FAILED:
            reason = f"it fails in another way: {reason}"
    return state, wrong or reason


def same_message(told: str, found: str) -> bool:
    """Return whether a message contains the words of another one, apart from numbers, names and paths."""
    words = set(re.findall("[a-z]{3,}", re.sub("<[^>]*>", " ", told.lower())))
    return sum(word in found.lower() for word in words) >= SAME_WORDS * len(words)


def _try(stage: StagedBundle, manifest: BundleManifest, tell: Callable[[str], None]) -> Replayed:
    """Run all cells in their order, one at a time: so they share a process as long as it lives."""
    fingerprint: dict[str, Any] = {}
    waiting = list(stage.plan.cells)
    with closing(
        Engine(stage.plan, {stage.suite.name: stage.suite}, processes=1, gives_outputs=True)
    ) as engine:
        engine.submit([waiting.pop(0)])
        for event in engine.events():
            if isinstance(event, TargetReady):
                fingerprint = event.fingerprint
            elif isinstance(event, Warned | Noted):
                tell(event.message)
            elif isinstance(event, Finished) and waiting:
                engine.submit([waiting.pop(0)])
            elif isinstance(event, Finished):
                state, why = fault_state(manifest, stage.case, event)
                return Replayed(
                    state=state,
                    why=why,
                    record=event.record,
                    trials=1,
                    fingerprint=fingerprint,
                    printed=event.printed,
                )
    raise RuntimeError("the engine ended without a result")


def _plan(bundle: Bundle, target: Target, cells: tuple[Cell, ...]) -> Plan:
    manifest = bundle.manifest
    tolerance = manifest.tolerance
    repeats = manifest.fault.verdict is Verdict.NONDETERMINISTIC and has_repeat(cells[-1])
    settings = RepeatSettings(runs=manifest.runs, sessions=1, bit_equal=True)
    matrix = Matrix(
        path=str(bundle.path),
        schema=1,
        models=ModelSelection(),
        targets=(target,),
        tolerance=() if tolerance is None else (_entry(bundle, tolerance),),
        repeat=(RunsRequest(selector=Selector(), settings=settings),) if repeats else (),
    )
    return Plan(matrix=matrix, cells=cells)


def _entry(bundle: Bundle, told: BundledTolerance) -> ToleranceEntry:
    noise = None
    if told.noise_rms is not None and told.noise_max is not None:
        noise = NoiseLimits(rms=told.noise_rms, max=told.noise_max)
    if (told.rtol is None) != (told.atol is None) or (noise is not None and told.rtol is not None):
        raise bundle.refused("its tolerance contradicts itself")
    return ToleranceEntry(
        selector=Selector(),
        rtol=told.rtol,
        atol=told.atol,
        noise=noise,
        noise_precision=told.noise_precision,
        steps=told.steps,
        table_only=told.table_only,
    )


def _cell(target: Target, model: str, axes: Mapping[str, str]) -> Cell:
    return Cell(
        suite="bundle", model=model, target=target.name, axes=tuple(sorted({**AXIS_DEFAULTS, **axes}.items()))
    )


def _axes(bundle: Bundle) -> dict[str, str]:
    """Return the cell's axes; refuse entries that may name files, where a session could write."""
    axes = dict(bundle.manifest.axes)
    valid = {"graph_optimization": _LEVELS, "execution_mode": _MODES, "scenario": tuple(SCENARIOS)}
    for axis, value in axes.items():
        if axis in valid and value not in valid[axis]:
            raise bundle.refused(f"{axis} is {value!r}", valid_names(value, valid[axis]))
        if axis == THREADS and not (value.isascii() and value.isdigit() and int(value) <= _MOST_THREADS):
            raise bundle.refused(f"{axis} is {value!r}", f"valid: 0 to {_MOST_THREADS}")
        if axis.startswith((FIGURE, REPEAT)):
            if axis not in _MOST_OF or not (value.isascii() and value.isdigit() and _in_range(axis, value)):
                raise bundle.refused(f"{axis} is {value!r}", f"valid: {_RANGES}")
        elif axis.startswith(SESSION_ENTRY):
            if _NAMES_A_FILE.search(axis) or not _HARMLESS_VALUE.fullmatch(value):
                raise bundle.refused(f"its session entry {axis!r} may name a file")
        elif axis not in {*AXIS_DEFAULTS, THREADS}:
            raise bundle.refused(f"there is no axis {axis!r}", valid_names(axis, AXIS_DEFAULTS))
    # The model is already converted; other precisions belong to the provider.
    default = AXIS_DEFAULTS["precision"]
    if made_for(axes.get("precision", default)) != default:
        axes["precision"] = default
    return axes


def _in_range(axis: str, value: str) -> bool:
    least = 0 if axis == f"{REPEAT}bit_equal" else 1
    return len(value) < _DIGITS and least <= int(value) <= _MOST_OF[axis]


def _message(record: Record) -> str:
    return f"{record.reason} {record.ended.message if record.ended else ''}".strip()
