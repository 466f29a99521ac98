"""Goldens computed again, by any release of onnxruntime: which outputs changed, how far, and since when."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from harness.core.records.facts import UNREPEATABLE
from harness.core.text.errors import UsageError, one_line
from harness.corpus.case import Case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.model.origins import RANDOM_OPERATORS
from harness.corpus.suites.suite import Suite, open_folder
from harness.engine.answers.references import References, Stores
from harness.engine.tasks.events import Answered, TargetReady
from harness.golden.golden_answer import Golden
from harness.golden.golden_cache import GoldenStore
from harness.golden.golden_list import kept_by_case
from harness.golden.movement import Movement, movements
from harness.golden.recording import GOLDEN_MODEL, CrossCheck, RecordedModel, altered_files, read_recording
from harness.golden.trials import try_inputs
from harness.plan.plan import Plan
from harness.plan.selector import model_matcher
from harness.plan.target import Runtime
from harness.studies.ask import ModelNote, Notify, PlannedModels, note_on
from harness.studies.cross_checks import cross_checks

Provenance = Mapping[str, str]
Before = Callable[[Answered, Case], Iterable[tuple[Provenance, Golden]]]
"""An answer and its model -> the goldens to compare it with, each with its provenance."""

GoldenOutcome = Literal["same", "moved", "unrepeatable", "refused", "lost", "computes", "refused_before_too"]
"""The result of computing a golden again.

``same``: the same values. ``moved``: other values. ``unrepeatable``: other values, of a model whose values
differ from run to run. ``refused``: it had values, and now the CPU EP raises an error. ``lost``: the CPU EP
crashes or hangs, or the inputs cannot be made. ``computes``: it was refused, and has values now.
``refused_before_too``: no values, then and now.
"""


class GoldenVerification(msgspec.Struct, frozen=True, kw_only=True):
    """One golden, computed again.

    Attributes:
        model: ``suite/model``.
        since: Provenance of the golden.
        message: Why there are no values now; empty if there are.
        movements: The outputs that differ.
    """

    model: str
    outcome: GoldenOutcome
    since: Provenance
    message: str = ""
    movements: tuple[Movement, ...] = ()


class Verified(msgspec.Struct, kw_only=True):
    """The result of verifying goldens.

    Attributes:
        onnxruntime: The release that computed; empty if none could.
        checks: Every golden compared with a new one.
        unasked: Models that could not be read, or that no runtime could compute.
        unrecorded: Models, as ``suite/model``, without a golden.
        altered: Files and goldens changed since they were recorded; they are not used.
        cross_checks: ``suite/model`` -> its golden compared with references.
        complete: False if interrupted.
    """

    onnxruntime: str = ""
    checks: list[GoldenVerification] = []
    unasked: list[ModelNote] = []
    unrecorded: list[str] = []
    altered: list[str] = []
    cross_checks: dict[str, tuple[CrossCheck, ...]] = {}
    complete: bool = True


def verify_kept(
    plan: Plan,
    suites: Mapping[str, Suite],
    runtime: Runtime,
    notify: Notify,
    show: Callable[[int, int], None],
) -> Verified:
    """Compute again the cached goldens of a plan's models, of every release; Ctrl-C ends it early.

    The models have their own data, whatever the scenarios. ``show`` is called with the number of models so
    far, and of all.
    """
    found = Verified()
    kept = kept_by_case()
    references = References(Stores.of_here())
    planned = PlannedModels(plan=plan, suites=suites)
    models = []
    for suite, model in planned.pairs():
        try:
            case = try_inputs(planned.case(suite, model), references.golden).case
        except ModelError as error:
            found.unasked.append(ModelNote(model=f"{suite}/{model}", message=one_line(error)))
            continue
        if case.digest in kept:
            models.append((suite, model))
            golden = references.golden(case)
            checks = cross_checks(suite, model, case, golden, references) if golden else ()
            found.cross_checks |= {f"{suite}/{model}": checks} if checks else {}
        else:
            found.unrecorded.append(f"{suite}/{model}")

    def before(answered: Answered, case: Case) -> Iterator[tuple[Provenance, Golden]]:
        if case.digest not in kept:  # the model has changed meanwhile
            found.unrecorded.append(f"{answered.suite}/{answered.model}")
        for since in kept.get(case.digest, ()):
            golden = GoldenStore(since).load(case)
            if golden is None:
                name, release = f"{answered.suite}/{answered.model}", since.get("onnxruntime", "")
                found.altered.append(f"{name}: the golden of onnxruntime {release} is damaged")
            else:
                yield since, golden

    events = planned.answers(models, runtime, notify)
    return _verify(found, events, before, lambda done: show(done, len(models)))


def verify_recording(
    folder: Path,
    model: Sequence[str],
    runtime: Runtime,
    notify: Notify,
    show: Callable[[int, int], None],
) -> Verified:
    """Compute a recording again. Ctrl-C ends it early, with the results so far.

    Altered files are reported and not used. ``model`` has globs on ``suite/model``, none for all; ``show`` is
    called with the number of models so far, and of all.

    Raises:
        UsageError: The folder is not a recording, or has no such model.
    """
    found = Verified()
    recording = read_recording(folder)
    chosen = model_matcher(model)
    wanted = [one for one in recording.models if chosen(one.suite, one.model)]
    if not wanted:
        named = " or ".join(map(repr, model or ("*",)))
        what = f"no model of the recording matches {named}; it has {len(recording.models)} models"
        raise UsageError.at(folder, what)
    intact: dict[str, RecordedModel] = {}
    for one in wanted:
        altered = list(altered_files(folder, one))
        found.altered += altered
        if not altered:
            intact[f"{one.folder}/{GOLDEN_MODEL}"] = one
    recorded = {(one.suite, one.model): one for one in intact.values()}
    found.cross_checks = {
        f"{one.suite}/{one.model}": one.cross_checks for one in intact.values() if one.cross_checks
    }
    # The recording is a folder of models, too.
    suite = open_folder(folder)
    planned = PlannedModels.of_folder(suite)
    models = [(suite.name, name) for name in intact]

    def before(answered: Answered, case: Case) -> Iterator[tuple[Provenance, Golden]]:
        one = recorded[answered.suite, answered.model]
        outputs = tuple(data_set.expected for data_set in case.data_sets) if one.status == "ok" else ()
        yield (
            recording.provenance,
            Golden(status=one.status, message=one.message, disputed=one.disputed, outputs=outputs),
        )

    def events() -> Iterator[TargetReady | Answered]:
        for event in planned.answers(models, runtime, notify):
            if isinstance(event, Answered):
                one = intact[event.model]
                yield msgspec.structs.replace(event, suite=one.suite, model=one.model)
            else:
                yield event

    return _verify(found, events(), before, lambda done: show(done, len(models)))


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
                found.unasked.append(note_on(event, event.problem))
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


def _check(
    answered: Answered, case: Case, since: Provenance, before: Golden, now: Golden
) -> GoldenVerification:
    check = GoldenVerification(model=f"{answered.suite}/{answered.model}", outcome="same", since=since)
    if now.status != "ok":
        outcome: GoldenOutcome = "refused_before_too" if now.status == before.status else now.status
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
