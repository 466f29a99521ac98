"""Goldens of a matrix' models, computed where the cache has none, and written into a folder where asked."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from harness.core.errors import UsageError, one_line
from harness.core.own_error import own_error
from harness.corpus.errors import ModelError
from harness.corpus.protos import TooLargeError
from harness.corpus.suites import Suite
from harness.engine.events import Answered
from harness.engine.question import HOME, Question
from harness.engine.references import References, Stores
from harness.engine.references_of import NAMES
from harness.engine.trials import try_inputs
from harness.golden.cross_check import CrossCheck
from harness.golden.provenance import provenance
from harness.golden.recording import Recorder
from harness.plan.plan import Plan
from harness.studies.ask import Models, Told, answers, models_of, planned_case, told
from harness.studies.cross_checks import ask_witnesses, cross_checks


class Recorded(msgspec.Struct, kw_only=True):
    """What came of recording.

    Attributes:
        computed: Goldens that were computed now.
        known: Goldens that the cache had.
        refused: Models that the CPU EP refuses, which is an answer that is kept as well.
        disputed: Models whose values judge nobody.
        lost: Models that have no golden because the CPU EP crashed, hung or could not be fed.
        unasked: Models that could not be read, or for which there was nobody to ask.
        cross_checks: ``suite/model`` -> what others make of it, held against its golden.
        complete: Whether it was not broken off.
    """

    computed: int = 0
    known: int = 0
    refused: list[Told] = []
    disputed: list[Told] = []
    lost: list[Told] = []
    unasked: list[Told] = []
    cross_checks: dict[str, tuple[CrossCheck, ...]] = {}
    complete: bool = True


def record(
    plan: Plan,
    suites: Mapping[str, Suite],
    recorder: Recorder | None,
    tell: Callable[[str], None],
    show: Callable[[int, int], None],
) -> Recorded:
    """Compute the goldens of a plan's models that the cache does not have, and ask others about these models.

    Ctrl-C ends it early.

    Args:
        plan: Whose models; with the data that they have anyway, whatever the scenarios.
        suites: Suite name -> suite.
        recorder: What writes them into a folder, too; finished where nothing broke it off.
        tell: Called with a line for people.
        show: Called with how many answers there are, and of how many.

    Raises:
        UsageError: The cache or the folder cannot be written.
    """
    found = Recorded()
    pairs = models_of(plan)
    references = References(Stores.of_cache())
    known: list[Answered] = []
    try:
        for done, (answered, is_new) in enumerate(_goldens(plan, suites, pairs, references, tell), 1):
            _note(found, answered, is_new=is_new)
            known.append(answered)
            show(done, len(pairs))
        goldens = {(one.suite, one.model): one.case for one in known if one.case and _has_values(one)}
        heard = ask_witnesses(plan, suites, goldens, references, tell)
        for done, _ in enumerate(heard, 1):
            show(done, len(NAMES) * len(goldens))
        for answered in known:
            try:
                _write(found, answered, recorder, references)
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - it costs this golden alone
                found.unasked.append(told(answered, own_error(error).reason))
    except KeyboardInterrupt:
        found.complete = False
    for told_ones in (found.refused, found.disputed, found.lost, found.unasked):
        told_ones.sort(key=lambda one: one.model)
    if recorder and found.complete:
        recorder.finish(provenance())
    return found


def _has_values(answered: Answered) -> bool:
    return answered.golden is not None and answered.golden.status == "ok"


def _goldens(
    plan: Plan,
    suites: Mapping[str, Suite],
    pairs: Models,
    references: References,
    tell: Callable[[str], None],
) -> Iterator[tuple[Answered, bool]]:
    """The golden of each model, and whether it was computed now: those that the cache has come first."""
    while pairs:
        unknown = []
        for suite, model in pairs:
            try:
                trial = try_inputs(planned_case(plan, suites, suite, model), references.golden)
            except ModelError as error:
                yield Answered(suite=suite, model=model, problem=one_line(error)), False
                continue
            except Exception as error:  # noqa: BLE001 - it costs this golden alone
                yield Answered(suite=suite, model=model, problem=own_error(error).reason), False
                continue
            golden = None if trial.is_open else references.golden(trial.case)
            if golden is None:
                unknown.append((suite, model))
            else:
                yield Answered(suite=suite, model=model, case=trial.case, golden=golden), False
        pairs = []
        for event in answers(plan, suites, unknown, HOME, tell):
            if isinstance(event, Answered):
                if event.case and event.golden:
                    question = Question(suite=event.suite, model=event.model)
                    references.keep(question, event.case, event.golden)
                    if event.golden.status != "lost" and _is_open(plan, suites, event, references):
                        pairs.append((event.suite, event.model))
                        continue
                yield event, True


def _is_open(plan: Plan, suites: Mapping[str, Suite], answered: Answered, references: References) -> bool:
    """Whether the inputs of an answer are not those that the model is run with."""
    try:
        first = planned_case(plan, suites, answered.suite, answered.model)
    except ModelError:  # it has gone meanwhile
        return False
    trial = try_inputs(first, references.golden)
    return trial.is_open or answered.case is None or trial.case.digest != answered.case.digest


def _write(found: Recorded, answered: Answered, recorder: Recorder | None, references: References) -> None:
    """Hold a golden against what others say, and put it into the recording."""
    suite, model, case, golden = answered.suite, answered.model, answered.case, answered.golden
    if case is None or golden is None or golden.status == "lost":
        return
    checks = cross_checks(suite, model, case, golden, references)
    found.cross_checks[f"{suite}/{model}"] = checks
    if recorder is not None:
        try:
            recorder.add(suite, model, case, golden, checks)
        except (TypeError, TooLargeError) as error:
            found.lost.append(told(answered, one_line(error)))


def _note(found: Recorded, answered: Answered, *, is_new: bool) -> None:
    golden = answered.golden
    if golden is None:
        found.unasked.append(told(answered, answered.problem))
    elif golden.status == "lost":
        found.lost.append(told(answered, golden.message))
    else:
        found.computed += is_new
        found.known += not is_new
        if golden.status == "refused":
            found.refused.append(told(answered, golden.message))
        elif golden.disputed:
            found.disputed.append(told(answered, golden.disputed))
