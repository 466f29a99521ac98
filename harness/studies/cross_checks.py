"""Goldens held against what others make of the models: the suite, ``onnx.reference``, the CPU EP again."""

from collections.abc import Callable, Iterator, Mapping

from harness.core.adjudicate import apart
from harness.core.errors import one_line
from harness.core.hearing import EXPECTED
from harness.core.tolerance import Tolerance, computing_precision, default_tolerance
from harness.corpus.case import Case
from harness.corpus.suites import Suite
from harness.engine.answer import forgiving
from harness.engine.compare_sets import compare_sets
from harness.engine.events import Answered
from harness.engine.outcome import NamedValues
from harness.engine.output_kinds import output_kinds_of
from harness.engine.question import HOME, Question
from harness.engine.references import References
from harness.engine.references_of import NAMES
from harness.golden.cross_check import CrossCheck
from harness.golden.golden import Golden
from harness.plan.plan import Plan
from harness.studies.ask import answers


def ask_witnesses(
    plan: Plan,
    suites: Mapping[str, Suite],
    goldens: Mapping[tuple[str, str], Case],
    references: References,
    tell: Callable[[str], None],
) -> Iterator[None]:
    """Ask for what is not known yet about models with goldens, and keep it.

    Args:
        plan: What it says of the models counts.
        suites: Suite name -> suite.
        goldens: Suite and model -> its case.
        references: Where answers are kept.
        tell: Called with a line for people.

    Yields:
        Once for each answer, known or asked for; there are ``len(NAMES)`` of each model.

    Raises:
        UsageError: The cache cannot be written.
    """
    for kind in NAMES:
        unknown: list[tuple[str, str]] = []
        for (suite, model), case in goldens.items():
            if references.find(Question(suite=suite, model=model, kind=kind), case) is None:
                unknown.append((suite, model))
            else:
                yield
        for event in answers(plan, suites, unknown, HOME, tell, kind):
            if isinstance(event, Answered):
                if event.case and event.golden:
                    question = Question(suite=event.suite, model=event.model, kind=kind)
                    references.keep(question, event.case, event.golden)
                yield


def cross_checks(
    suite: str, model: str, case: Case, golden: Golden, references: References
) -> tuple[CrossCheck, ...]:
    """What is known about a golden from others; nothing of one without values, or whose values are a draw."""
    if golden.status != "ok" or case.facts.origins.by_chance:
        return ()
    return tuple(_checks(suite, model, case, golden, references))


def _checks(
    suite: str, model: str, case: Case, golden: Golden, references: References
) -> Iterator[CrossCheck]:
    precision = computing_precision(case.facts.float_types, "float32")
    default = lambda dtype: default_tolerance(dtype, precision)  # noqa: E731
    expected = tuple(data_set.expected for data_set in case.data_sets)
    if any(expected):
        yield _held_against(EXPECTED, expected, case, golden, forgiving(case, default))
    for kind, name in NAMES.items():
        answer = references.find(Question(suite=suite, model=model, kind=kind), case)
        if answer is None:
            continue
        if answer.status == "ok":
            yield _held_against(name, answer.outputs, case, golden, default)
        else:
            yield CrossCheck(by=name, result="cannot", message=one_line(answer.message))


def _held_against(
    by: str,
    says: tuple[NamedValues, ...],
    case: Case,
    golden: Golden,
    tolerance_for: Callable[[str], Tolerance],
) -> CrossCheck:
    kinds = output_kinds_of(case, golden.outputs)
    compared = compare_sets(says, golden.outputs, tolerance_for, kinds=kinds, only_known=True)
    headrooms = [row.headroom for row in compared.outputs]
    finite = [headroom for headroom in headrooms if headroom is not None]
    worst = max(finite, default=0.0) if len(finite) == len(headrooms) else None
    if compared.verdict:
        return CrossCheck(by=by, result="differs", headroom=worst, message=one_line(apart(compared.outputs)))
    return CrossCheck(by=by, result="agrees" if worst else "same", headroom=worst)
