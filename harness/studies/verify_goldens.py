"""Goldens computed anew, by any release of onnxruntime: which outputs moved, how far, and since when."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from harness.core.errors import Problem, UsageError, one_line
from harness.core.facts import UNREPEATABLE
from harness.corpus.case import Case
from harness.corpus.errors import ModelError
from harness.corpus.origins import RANDOM_OPERATORS
from harness.corpus.suites import Suite, open_folder
from harness.engine.events import Answered, TargetReady
from harness.engine.references import References, Stores
from harness.engine.trials import try_inputs
from harness.golden.cross_check import CrossCheck
from harness.golden.golden import Golden
from harness.golden.kept import kept_by_case
from harness.golden.movement import Movement, movements
from harness.golden.recording import MODEL, RecordedModel, altered_files, read_recording
from harness.golden.store import GoldenStore
from harness.plan.matrix import Matrix
from harness.plan.matrix import Models as MatrixModels
from harness.plan.plan import Plan
from harness.plan.target import Runtime
from harness.studies.ask import Told, answers, models_of, planned_case, told
from harness.studies.cross_checks import cross_checks

Provenance = Mapping[str, str]
Before = Callable[[Answered, Case], Iterable[tuple[Provenance, Golden]]]
"""An answer and its model -> the goldens that it is held against, each with its provenance."""

Outcome = Literal["same", "moved", "unrepeatable", "refused", "lost", "computes", "refused_before_too"]
"""What came of computing a golden anew.

``same``: the same values. ``moved``: other values. ``unrepeatable``: other values, of a model that has others
each time. ``refused``: it had values, and now the CPU EP raises an error. ``lost``: the CPU EP crashes, hangs
or cannot be fed. ``computes``: it was refused, and has values now. ``refused_before_too``: no values, then
and now.
"""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One golden, computed anew.

    Attributes:
        model: ``suite/model``.
        outcome: What came of it.
        since: Provenance of the golden.
        message: Why there are no values now; empty where there are.
        movements: The outputs that differ.
    """

    model: str
    outcome: Outcome
    since: Provenance
    message: str = ""
    movements: tuple[Movement, ...] = ()


class Verified(msgspec.Struct, kw_only=True):
    """What came of computing goldens anew.

    Attributes:
        onnxruntime: The release that computed; empty where none could.
        checks: Every golden that was held against a new one.
        unasked: Models that could not be read, or for which there was nobody to ask.
        unrecorded: Models, as ``suite/model``, without a golden to hold anything against.
        altered: What is no longer as it was recorded, and so says nothing.
        cross_checks: ``suite/model`` -> what others make of it, held against its golden; of those asked.
        complete: Whether it was not broken off.
    """

    onnxruntime: str = ""
    checks: list[Check] = []
    unasked: list[Told] = []
    unrecorded: list[str] = []
    altered: list[str] = []
    cross_checks: dict[str, tuple[CrossCheck, ...]] = {}
    complete: bool = True


def verify_kept(
    plan: Plan,
    suites: Mapping[str, Suite],
    runtime: Runtime,
    tell: Callable[[str], None],
    show: Callable[[int, int], None],
) -> Verified:
    """Compute anew what the cache keeps for a plan's models, by whichever releases it was made.

    Ctrl-C ends it early; what is known then is told.

    Args:
        plan: Whose models; with the data that they have anyway, whatever the scenarios.
        suites: Suite name -> suite.
        runtime: Whose CPU provider computes.
        tell: Called with a line for people.
        show: Called with how many models are done, and of how many.
    """
    found = Verified()
    kept = kept_by_case()
    references = References(Stores.of_cache())
    models = []
    for suite, model in models_of(plan):
        try:
            case = try_inputs(planned_case(plan, suites, suite, model), references.golden).case
        except ModelError as error:
            found.unasked.append(Told(model=f"{suite}/{model}", message=one_line(error)))
            continue
        if case.digest in kept:
            models.append((suite, model))
            golden = references.golden(case)
            checks = cross_checks(suite, model, case, golden, references) if golden else ()
            found.cross_checks |= {f"{suite}/{model}": checks} if checks else {}
        else:
            found.unrecorded.append(f"{suite}/{model}")

    def before(answered: Answered, case: Case) -> Iterator[tuple[Provenance, Golden]]:
        if case.digest not in kept:  # the model has changed since it was looked up
            found.unrecorded.append(f"{answered.suite}/{answered.model}")
        for since in kept.get(case.digest, ()):
            golden = GoldenStore(since).load(case)
            if golden is None:
                name, release = f"{answered.suite}/{answered.model}", since.get("onnxruntime", "")
                found.altered.append(f"{name}: the golden of onnxruntime {release} is damaged")
            else:
                yield since, golden

    events = answers(plan, suites, models, runtime, tell)
    return _verify(found, events, before, lambda done: show(done, len(models)))


def verify_recording(
    folder: Path,
    chosen: Callable[[str, str], bool],
    runtime: Runtime,
    tell: Callable[[str], None],
    show: Callable[[int, int], None],
) -> Verified:
    """Compute a recording anew. Ctrl-C ends it early; what is known then is told.

    Args:
        folder: What ``Recorder`` wrote; files that are not as it left them are told, and not computed with.
        chosen: Whether a model counts, by its suite and its name there.
        runtime: Whose CPU provider computes.
        tell: Called with a line for people.
        show: Called with how many models are done, and of how many.

    Raises:
        UsageError: It is no recording, or holds no model that was chosen.
    """
    found = Verified()
    recording = read_recording(folder)
    wanted = [one for one in recording.models if chosen(one.suite, one.model)]
    if not wanted:
        what = f"no model of the recording matches; it holds {len(recording.models)}"
        raise UsageError(Problem(where=str(folder), what=what))
    intact: dict[str, RecordedModel] = {}
    for one in wanted:
        altered = list(altered_files(folder, one))
        found.altered += altered
        if not altered:
            intact[f"{one.folder}/{MODEL}"] = one
    recorded = {(one.suite, one.model): one for one in intact.values()}
    found.cross_checks = {
        f"{one.suite}/{one.model}": one.cross_checks for one in intact.values() if one.cross_checks
    }
    suites, plan = _as_suite(folder)
    models = [(plan.matrix.path, name) for name in intact]

    def before(answered: Answered, case: Case) -> Iterator[tuple[Provenance, Golden]]:
        one = recorded[answered.suite, answered.model]
        outputs = tuple(data_set.expected for data_set in case.data_sets) if one.status == "ok" else ()
        yield (
            recording.provenance,
            Golden(status=one.status, message=one.message, disputed=one.disputed, outputs=outputs),
        )

    def events() -> Iterator[TargetReady | Answered]:
        for event in answers(plan, suites, models, runtime, tell):
            if isinstance(event, Answered):
                one = intact[event.model]
                yield msgspec.structs.replace(event, suite=one.suite, model=one.model)
            else:
                yield event

    return _verify(found, events(), before, lambda done: show(done, len(models)))


def _as_suite(folder: Path) -> tuple[dict[str, Suite], Plan]:
    """A recording as a folder of models, and a plan for it, called as its suite."""
    suite = open_folder(folder)
    matrix = Matrix(path=suite.name, schema=1, models=MatrixModels(folders=(str(suite.root),)), targets=())
    return {suite.name: suite}, Plan(matrix=matrix, cells=())


def _verify(
    found: Verified,
    events: Iterable[TargetReady | Answered],
    before: Before,
    show: Callable[[int], None],
) -> Verified:
    done = 0
    try:
        for event in events:
            if isinstance(event, TargetReady):
                found.onnxruntime = str(event.fingerprint.get("onnxruntime", ""))
                continue
            if event.case is None or event.golden is None:
                found.unasked.append(told(event, event.problem))
            else:
                for since, golden in before(event, event.case):
                    found.checks.append(_check(event, event.case, since, golden, event.golden))
            done += 1
            show(done)
    except KeyboardInterrupt:
        found.complete = False
    found.checks.sort(key=lambda check: check.model)
    found.unasked.sort(key=lambda one: one.model)
    return found


def _check(answered: Answered, case: Case, since: Provenance, before: Golden, now: Golden) -> Check:
    check = Check(model=f"{answered.suite}/{answered.model}", outcome="same", since=since)
    if now.status != "ok":
        outcome: Outcome = "refused_before_too" if now.status == before.status else now.status
        return msgspec.structs.replace(check, outcome=outcome, message=now.message)
    if before.status != "ok":
        return msgspec.structs.replace(check, outcome="computes", message=before.message)
    moved = tuple(movements(case, before.outputs, now.outputs))
    if not moved:
        return check
    random = RANDOM_OPERATORS & case.facts.op_types.keys()
    unrepeatable = random or UNREPEATABLE in {before.disputed, now.disputed}
    outcome = "unrepeatable" if unrepeatable else "moved"
    return msgspec.structs.replace(check, outcome=outcome, movements=moved)
