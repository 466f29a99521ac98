"""The witnesses of a golden that somebody differs from, and what they say."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from harness.core.adjudicate import Ruling, adjudicate, dwarfed, rows_apart, rule
from harness.core.compare import Comparison, ToleranceFor
from harness.core.hearing import Adjudication, Witness
from harness.core.metrics import EXACT_FRONTIER
from harness.corpus.case import Case
from harness.engine.compare_sets import compare_sets, flat
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


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What came of hearing the witnesses.

    Attributes:
        ruling: Whether the golden stands.
        witnesses: Who spoke.
        adjudication: How far golden and EP lie from float64; of every output, those that agree too.
    """

    ruling: Ruling
    witnesses: tuple[Witness, ...]
    adjudication: tuple[Adjudication, ...]


def hear(
    case: Case,
    golden: Sequence[NamedValues],
    results: Sequence[NamedValues],
    compared: Comparison,
    witnesses: Mapping[str, Golden],
    compare: Compare,
    unit: ToleranceFor,
) -> Heard:
    """Hear everybody about a result that differs from its golden.

    Args:
        case: The model, with the suite's expected outputs.
        golden: For each data set the outputs that judge.
        results: For each data set what the EP computed.
        compared: How these compare.
        witnesses: Kind of question -> its answer; those without values have nothing to say.
        compare: The rule that judged.
        unit: Element type -> the unit of errors that are weighed against each other. It is no matter of the
            rule, so that what is said here holds under any.
    """
    heard = tuple(_witnesses(case, golden, results, compared, witnesses, compare, unit))
    adjudication: tuple[Adjudication, ...] = ()
    for kind, by in TRUTHS.items():
        truth = witnesses.get(kind)
        if not adjudication and truth is not None and truth.outputs:
            adjudication = adjudicate(flat(truth.outputs), flat(golden), flat(results), unit, by)
    return Heard(ruling=rule(compared, heard, adjudication), witnesses=heard, adjudication=adjudication)


def _witnesses(
    case: Case,
    golden: Sequence[NamedValues],
    results: Sequence[NamedValues],
    compared: Comparison,
    witnesses: Mapping[str, Golden],
    compare: Compare,
    unit: ToleranceFor,
) -> Iterator[Witness]:
    """By their rank: what the makers of the model expect comes first."""
    differ = {row.name for row in compared.outputs if row.mismatched or row.frontier != EXACT_FRONTIER}
    expected = tuple(data_set.expected for data_set in case.data_sets)
    answers = [(EXPECTED, expected, False)]
    for kind, name in NAMES.items():
        if kind in witnesses:
            answers.append((name, witnesses[kind].outputs, kind == UNOPTIMIZED))
    in_units = functools.partial(compare_sets, tolerance_for=unit, only_known=True)
    for name, outputs, is_golden_again in answers:
        if any(outputs):
            yield Witness(
                name=name,
                golden=rows_apart(compare(outputs, golden), differ),
                ep=rows_apart(compare(outputs, results), differ),
                is_golden_again=is_golden_again,
                dwarfed=dwarfed(
                    in_units(outputs, golden), in_units(golden, results), in_units(outputs, results)
                )
                if is_golden_again
                else (),
            )
