"""Goldens compared with expected data, ``onnx.reference``, and the CPU EP without optimizations."""

from collections.abc import Callable, Iterator, Mapping

from harness.core.comparison import wording
from harness.core.comparison.tolerance import Tolerance, computing_precision, default_tolerance
from harness.core.records.reference_answer import EXPECTED
from harness.core.text.errors import one_line
from harness.core.values.value import NamedValues
from harness.corpus.case import Case
from harness.engine.answers.compare_sets import compare_sets
from harness.engine.answers.references import References
from harness.engine.measuring.output_kinds import output_kinds_of
from harness.engine.measuring.reference_check import NAMES
from harness.engine.questions.answer import forgiving
from harness.engine.tasks.events import Answered
from harness.engine.tasks.task import HOME, Question
from harness.golden.golden_answer import Golden
from harness.golden.recording import CrossCheck
from harness.studies.ask import Notify, PlannedModels


def compute_references(
    models: PlannedModels, goldens: Mapping[tuple[str, str], Case], references: References, notify: Notify
) -> Iterator[None]:
    """Compute the references that the cache lacks for models with a golden, and keep them.

    Yields:
        Do so once for each reference; each model has ``len(NAMES)``.

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
        for event in models.answers(unknown, HOME, notify, kind):
            if isinstance(event, Answered):
                if event.case and event.golden:
                    question = Question(suite=event.suite, model=event.model, kind=kind)
                    references.keep(question, event.case, event.golden)
                yield


def cross_checks(
    suite: str, model: str, case: Case, golden: Golden, references: References
) -> tuple[CrossCheck, ...]:
    """Return the comparisons of a golden; none if it has no values, or random ones."""
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
        yield _compared_with(EXPECTED, expected, case, golden, forgiving(case, default))
    for kind, name in NAMES.items():
        answer = references.find(Question(suite=suite, model=model, kind=kind), case)
        if answer is None:
            continue
        if answer.status == "ok":
            yield _compared_with(name, answer.outputs, case, golden, default)
        else:
            yield CrossCheck(by=name, result="cannot", message=one_line(answer.message))


def _compared_with(
    by: str,
    reference: tuple[NamedValues, ...],
    case: Case,
    golden: Golden,
    tolerance_for: Callable[[str], Tolerance],
) -> CrossCheck:
    kinds = output_kinds_of(case, golden.outputs)
    compared = compare_sets(reference, golden.outputs, tolerance_for, kinds=kinds, only_known=True)
    headrooms = [row.headroom for row in compared.outputs]
    finite = [headroom for headroom in headrooms if headroom is not None]
    worst = max(finite, default=0.0) if len(finite) == len(headrooms) else None
    if compared.verdict:
        message = one_line(wording.first_difference(compared.outputs))
        return CrossCheck(by=by, result="differs", headroom=worst, message=message)
    return CrossCheck(by=by, result="agrees" if worst else "same", headroom=worst)
