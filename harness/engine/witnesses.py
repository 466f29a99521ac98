"""The witnesses of a golden that somebody failed against, and what they say."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from harness.core.adjudicate import Ruling, Witness, adjudicate, rule
from harness.core.compare import Comparison, ToleranceFor
from harness.core.record import Adjudication
from harness.corpus.case import Case
from harness.engine.compare_sets import flat
from harness.engine.outcome import NamedValues
from harness.engine.question import EVALUATED, FLOAT64, FLOAT64_EVALUATED, UNOPTIMIZED
from harness.golden.golden import Golden

NAMES = {EVALUATED: "onnx.reference", UNOPTIMIZED: "the CPU EP without optimizations"}
"""Kind of a question -> who answers it, for people; by their rank."""

EXPECTED = "the expected data"

TRUTHS = {FLOAT64: "float64 on the CPU EP", FLOAT64_EVALUATED: "onnx.reference in float64"}
"""The same of those who answer in float64."""

Compare = Callable[[Sequence[NamedValues], Sequence[NamedValues]], Comparison]
"""Answers and results of all data sets -> how they compare, by the rule that judged.

Results to which there is no answer are passed over."""


class Hearing(msgspec.Struct, frozen=True, kw_only=True):
    """What came of hearing the witnesses.

    Attributes:
        ruling: Whether the golden stands.
        adjudications: How far golden and EP lie from float64; of every output, those that agree too.
    """

    ruling: Ruling
    adjudications: tuple[Adjudication, ...]


def hear(
    case: Case,
    golden: Sequence[NamedValues],
    results: Sequence[NamedValues],
    compared: Comparison,
    witnesses: Mapping[str, Golden],
    compare: Compare,
    tolerance_for: ToleranceFor,
) -> Hearing:
    """Hear everybody about a result that fails against its golden.

    Args:
        case: The model, with the suite's expected outputs.
        golden: For each data set the outputs that judge.
        results: For each data set what the EP computed.
        compared: How these compare.
        witnesses: Kind of question -> its answer; those without values have nothing to say.
        compare: The rule that judged.
        tolerance_for: Element type -> tolerance: the unit of errors against float64.
    """
    heard = tuple(_witnesses(case, golden, results, witnesses, compare))
    adjudications: tuple[Adjudication, ...] = ()
    for kind, by in TRUTHS.items():
        truth = witnesses.get(kind)
        if not adjudications and truth is not None and truth.outputs:
            adjudications = adjudicate(flat(truth.outputs), flat(golden), flat(results), tolerance_for, by)
    return Hearing(ruling=rule(compared, heard, adjudications), adjudications=adjudications)


def _witnesses(
    case: Case,
    golden: Sequence[NamedValues],
    results: Sequence[NamedValues],
    witnesses: Mapping[str, Golden],
    compare: Compare,
) -> Iterator[Witness]:
    """By their rank: what the makers of the model expect comes first."""
    expected = tuple(data_set.expected for data_set in case.data_sets)
    answers = [(EXPECTED, expected, False)]
    for kind, name in NAMES.items():
        if kind in witnesses:
            answers.append((name, witnesses[kind].outputs, kind == UNOPTIMIZED))
    for name, outputs, is_golden_again in answers:
        if any(outputs):
            yield Witness(
                name=name,
                golden=compare(outputs, golden),
                ep=compare(outputs, results),
                is_golden_again=is_golden_again,
            )
