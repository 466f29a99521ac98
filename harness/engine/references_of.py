"""What others make of a model, for an EP whose result differs from the golden."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from harness.core.adjudicate import adjudicate, beyond_uncertainty, reference_distances
from harness.core.compare import Comparison
from harness.core.metrics import EXACT_FRONTIER
from harness.core.reference import EXPECTED, REFERENCE, Adjudication, Reference, ReferenceCheck
from harness.core.tolerance import default_tolerance
from harness.corpus.case import Case
from harness.engine.compare_sets import compare_sets, flat
from harness.engine.outcome import NamedValues
from harness.engine.question import Kind
from harness.golden.golden import Golden

OWN_CPU = "the CPU EP of the target's own runtime"

NAMES = {Kind.EVALUATED: REFERENCE, Kind.UNOPTIMIZED: "the CPU EP without optimizations"}
"""Kind of a question -> name of the reference, for people; the most trustworthy first."""

TRUTHS = {Kind.FLOAT64: "float64 on the CPU EP", Kind.FLOAT64_EVALUATED: "onnx.reference in float64"}
"""The same of the references that compute in float64."""

Compare = Callable[[Sequence[NamedValues], Sequence[NamedValues]], Comparison]
"""Answers and results of all data sets -> how they compare. Results without an answer are passed over."""


def references_of(
    case: Case,
    golden: Sequence[NamedValues],
    results: Sequence[NamedValues],
    compared: Comparison,
    answers: Mapping[Kind, Golden],
    compare: Compare,
    precision: str,
    doubts: Mapping[Kind, str],
) -> ReferenceCheck:
    """Compare golden and result with each reference that has values.

    Args:
        case: The model, with the suite's expected outputs.
        golden: For each data set the outputs that judge.
        results: For each data set what the EP computed.
        compared: How these compare.
        answers: Kind of question -> its answer; ``Kind.ANSWER`` is that of the target's own runtime.
        compare: The comparison of the cell.
        precision: What computes. Its default tolerance is the unit in which errors are weighed against each
            other, so that the result holds under any policy.
        doubts: Kind of question -> why its answer is not believed alone.
    """
    adjudication: tuple[Adjudication, ...] = ()
    unit = functools.partial(default_tolerance, precision=precision)
    for kind, by in TRUTHS.items():
        truth = answers.get(kind)
        if not adjudication and truth is not None and truth.outputs:
            rows = adjudicate(flat(truth.outputs), flat(golden), flat(results), unit, by)
            doubt = doubts.get(kind, "") if kind else ""
            adjudication = tuple(msgspec.structs.replace(row, doubt=doubt) for row in rows)
    in_units = functools.partial(compare_sets, tolerance_for=unit, only_known=True)
    return ReferenceCheck(
        references=tuple(_references(case, golden, results, compared, answers, compare, in_units, doubts)),
        adjudication=adjudication,
    )


def _references(
    case: Case,
    golden: Sequence[NamedValues],
    results: Sequence[NamedValues],
    compared: Comparison,
    answers: Mapping[Kind, Golden],
    compare: Compare,
    in_units: Compare,
    doubts: Mapping[Kind, str],
) -> Iterator[Reference]:
    """In the order of trust: what the makers of the model expect comes first."""
    differ = {row.name for row in compared.outputs if row.mismatched or row.frontier != EXACT_FRONTIER}
    known: list[tuple[Kind | None, str, Sequence[NamedValues]]] = [
        (None, EXPECTED, tuple(data_set.expected for data_set in case.data_sets))
    ]
    known += [
        (kind, name, answers[kind].outputs)
        for kind, name in ({Kind.ANSWER: OWN_CPU} | NAMES).items()
        if kind in answers
    ]
    for kind, name, outputs in known:
        if any(outputs):
            is_golden_again = kind is Kind.UNOPTIMIZED
            yield Reference(
                name=name,
                golden=reference_distances(compare(outputs, golden), differ),
                ep=reference_distances(compare(outputs, results), differ),
                is_golden_again=is_golden_again,
                dwarfed=beyond_uncertainty(
                    in_units(outputs, golden), in_units(golden, results), in_units(outputs, results)
                )
                if is_golden_again
                else (),
                doubt=doubts.get(kind, "") if kind else "",
            )
