"""Goldens of a matrix' models: computed if the cache lacks them, and written into a recording if asked."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from harness.core.text.errors import UsageError, one_line
from harness.core.verdicts.own_error import own_error
from harness.corpus.model.model_errors import ModelError
from harness.corpus.model.protos import TooLargeError
from harness.corpus.suites.suite import Suite
from harness.engine.answers.references import References, Stores
from harness.engine.measuring.reference_check import NAMES
from harness.engine.tasks.events import Answered
from harness.engine.tasks.task import HOME, Question
from harness.golden.provenance import provenance
from harness.golden.recording import CrossCheck, Recorder
from harness.golden.trials import try_inputs
from harness.plan.plan import Plan
from harness.studies.ask import ModelNote, Notify, PlannedModels, note_on
from harness.studies.cross_checks import compute_references, cross_checks


class Recorded(msgspec.Struct, kw_only=True):
    """The result of recording.

    Attributes:
        computed: Goldens computed now.
        known: Goldens that the cache had.
        refused: Models that the CPU EP refuses; the refusal is kept as their golden.
        disputed: Models whose goldens are not used for judging.
        lost: Models without a golden: the CPU EP crashed or hung, or their inputs could not be made.
        unasked: Models that could not be read, or that no runtime could compute.
        cross_checks: ``suite/model`` -> the golden compared with references.
        complete: False if interrupted.
    """

    computed: int = 0
    known: int = 0
    refused: list[ModelNote] = []
    disputed: list[ModelNote] = []
    lost: list[ModelNote] = []
    unasked: list[ModelNote] = []
    cross_checks: dict[str, tuple[CrossCheck, ...]] = {}
    complete: bool = True


def record_goldens(
    plan: Plan,
    suites: Mapping[str, Suite],
    recorder: Recorder | None,
    notify: Notify,
    show: Callable[[int, int], None],
) -> Recorded:
    """Compute the goldens of a plan's models that the cache lacks, and references for all of them.

    The models have their own data, whatever the scenarios. Ctrl-C ends it early; a recording is finished only
    without that. ``show`` is called with the number of results so far, and of all.

    Raises:
        UsageError: The cache or the folder cannot be written.
    """
    found = Recorded()
    models = PlannedModels(plan=plan, suites=suites)
    total = len(models.pairs())
    references = References(Stores.of_here())
    known: list[Answered] = []
    try:
        for done, (answered, is_new) in enumerate(_goldens(models, references, notify), 1):
            _note(found, answered, is_new=is_new)
            known.append(answered)
            show(done, total)
        goldens = {
            (one.suite, one.model): one.case
            for one in known
            if one.case and one.golden and one.golden.status == "ok"
        }
        for done, _ in enumerate(compute_references(models, goldens, references, notify), 1):
            show(done, len(NAMES) * len(goldens))
        for answered in known:
            try:
                _write(found, answered, recorder, references)
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - affects this golden alone
                found.unasked.append(note_on(answered, own_error(error).reason))
    except KeyboardInterrupt:
        found.complete = False
    for notes in (found.refused, found.disputed, found.lost, found.unasked):
        notes.sort(key=lambda one: one.model)
    if recorder and found.complete:
        recorder.finish(provenance())
    return found


def _goldens(
    models: PlannedModels, references: References, notify: Notify
) -> Iterator[tuple[Answered, bool]]:
    """Yield the golden of each model, and whether it was computed now: those of the cache first."""
    pairs = models.pairs()
    while pairs:
        unknown = []
        for suite, model in pairs:
            try:
                trial = try_inputs(models.case(suite, model), references.golden)
            except Exception as error:  # noqa: BLE001 - affects this golden alone
                problem = one_line(error) if isinstance(error, ModelError) else own_error(error).reason
                yield Answered(suite=suite, model=model, problem=problem), False
                continue
            golden = None if trial.is_open else references.golden(trial.case)
            if golden is None:
                unknown.append((suite, model))
            else:
                yield Answered(suite=suite, model=model, case=trial.case, golden=golden), False
        pairs = []
        for event in models.answers(unknown, HOME, notify):
            if isinstance(event, Answered):
                if event.case and event.golden:
                    question = Question(suite=event.suite, model=event.model)
                    references.keep(question, event.case, event.golden)
                    if event.golden.status != "lost" and _is_open(models, event, references):
                        pairs.append((event.suite, event.model))
                        continue
                yield event, True


def _is_open(models: PlannedModels, answered: Answered, references: References) -> bool:
    """Return whether the inputs of an answer differ from those with which the model is run."""
    try:
        first = models.case(answered.suite, answered.model)
    except ModelError:  # the file is gone meanwhile
        return False
    trial = try_inputs(first, references.golden)
    return trial.is_open or answered.case is None or trial.case.digest != answered.case.digest


def _write(found: Recorded, answered: Answered, recorder: Recorder | None, references: References) -> None:
    """Compare a golden with references, and add it to the recording."""
    suite, model, case, golden = answered.suite, answered.model, answered.case, answered.golden
    if case is None or golden is None or golden.status == "lost":
        return
    checks = cross_checks(suite, model, case, golden, references)
    found.cross_checks[f"{suite}/{model}"] = checks
    if recorder is not None:
        try:
            recorder.add(suite, model, case, golden, checks)
        except (TypeError, TooLargeError) as error:
            found.lost.append(note_on(answered, one_line(error)))


def _note(found: Recorded, answered: Answered, *, is_new: bool) -> None:
    golden = answered.golden
    if golden is None:
        found.unasked.append(note_on(answered, answered.problem))
    elif golden.status == "lost":
        found.lost.append(note_on(answered, golden.message))
    else:
        found.computed += is_new
        found.known += not is_new
        if golden.status == "refused":
            found.refused.append(note_on(answered, golden.message))
        elif golden.disputed:
            found.disputed.append(note_on(answered, golden.disputed))
