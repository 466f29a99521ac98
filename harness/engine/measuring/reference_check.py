"""The reference check: compares golden and result with other references, if the two differ."""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from harness.core.comparison.metrics import EXACT_FRONTIER
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.tolerance import ToleranceFor, default_tolerance
from harness.core.records.reference_answer import (
    AS_USED,
    EXPECTED,
    REFERENCE,
    Adjudication,
    Reference,
    ReferenceCheck,
)
from harness.core.values.value import DTYPES, STRING, Array, NamedValues, Tensor
from harness.core.verdicts.adjudicate import adjudicate, beyond_uncertainty, reference_distances
from harness.core.verdicts.compare import OutputComparison
from harness.corpus.case import Case
from harness.corpus.model.element_types import NARROWER
from harness.engine.answers.compare_sets import compare_sets, flat
from harness.engine.answers.evidence import Evidence
from harness.engine.tasks.task import QuestionKind
from harness.golden.golden_answer import Golden

OWN_CPU = "the CPU EP of the target's own runtime"

NAMES = {QuestionKind.EVALUATED: REFERENCE, QuestionKind.UNOPTIMIZED: "the CPU EP without optimizations"}
"""Kind of a question -> name of the reference, for people; the most trustworthy first."""

TRUTHS = {
    QuestionKind.FLOAT64_EVALUATED: "float64, node by node",
    QuestionKind.FLOAT64: "float64 on the CPU EP",
}
"""The same for references that compute in float64; the first that answers counts."""

Compare = Callable[[Sequence[NamedValues], Sequence[NamedValues]], OutputComparison]
"""Answers and results of all data sets -> how they compare. Results without an answer are left out."""


def check_references(
    case: Case,
    golden: Sequence[NamedValues],
    results: Sequence[NamedValues],
    rows: Collection[OutputMetrics],
    evidence: Evidence,
    compare: Compare,
    precision: str,
) -> ReferenceCheck | None:
    """Compare golden and result with each reference that has values; None if none has been asked.

    The golden are the outputs that judge, for each data set; ``rows`` are how the results compare with them,
    as ``compare`` does. The default tolerance of ``precision``, which computes, is the unit in which errors
    are weighed against each other, so that the result holds under any policy.
    """
    if evidence.references is None:
        return None
    unit = functools.partial(default_tolerance, precision=precision)
    in_units = functools.partial(compare_sets, tolerance_for=unit, only_known=True)
    differ = {row.name for row in rows if row.mismatched or row.frontier != EXACT_FRONTIER}
    references: list[Reference] = []
    for kind, name, outputs in _with_values(case, evidence.references):
        is_golden_again = kind is QuestionKind.UNOPTIMIZED
        dwarfs: tuple[str, ...] = ()
        if is_golden_again:
            dwarfs = beyond_uncertainty(
                in_units(outputs, golden), in_units(golden, results), in_units(outputs, results)
            )
        references.append(
            Reference(
                name=name,
                golden=reference_distances(compare(outputs, golden), differ),
                ep=reference_distances(compare(outputs, results), differ),
                is_golden_again=is_golden_again,
                dwarfed=dwarfs,
                doubt=evidence.doubts.get(kind, "") if kind else "",
            )
        )
    if (truth := _truth(golden, results, evidence, compare, differ)) is not None:
        references.append(truth)
    adjudication = _adjudication(golden, results, evidence, unit)
    return ReferenceCheck(
        references=tuple(references),
        adjudication=adjudication,
        no_float64=_why_none(case, evidence.references, differ - {row.output for row in adjudication}),
    )


def _truth(
    golden: Sequence[NamedValues],
    results: Sequence[NamedValues],
    evidence: Evidence,
    compare: Compare,
    outputs: Collection[str],
) -> Reference | None:
    """Return how golden and result compare with the first reference that computes in float64."""
    for kind, name in TRUTHS.items():
        truth = (evidence.references or {}).get(kind)
        if truth is None or not any(truth.outputs):
            continue
        rounded = [_as_types_of(answer, right) for answer, right in zip(golden, truth.outputs, strict=True)]
        return Reference(
            name=name,
            golden=reference_distances(compare(rounded, golden), outputs),
            ep=reference_distances(compare(rounded, results), outputs),
            in_float64=True,
            doubt=evidence.doubts.get(kind, ""),
        )
    return None


def _as_types_of(golden: NamedValues, truth: NamedValues) -> NamedValues:
    """Return the tensors of a float64 answer in the golden's element types; others are left out."""
    types = {name: value.dtype for name, value in golden if isinstance(value, Tensor)}
    return tuple(
        (name, Tensor(dtype=types[name], array=_cast(value.array, types[name])))
        for name, value in truth
        if isinstance(value, Tensor) and name in types and STRING not in {value.dtype, types[name]}
    )


def _cast(array: Array, dtype: str) -> Array:
    with np.errstate(all="ignore"):
        return array.astype(DTYPES[dtype])


def _why_none(case: Case, answers: Mapping[QuestionKind, Golden], left: Collection[str]) -> str:
    """Return why float64 adjudicates none of the outputs in ``left``.

    Empty if there are none, or if equality judges.
    """
    if not left or not case.facts.float_types & NARROWER:
        return ""
    asked = [answers[kind] for kind in TRUTHS if kind in answers]
    if any(any(truth.outputs) for truth in asked):
        return f"nothing can be measured against it in output {min(left)!r}"
    return next((truth.message for truth in asked if truth.message), "it has not been asked")


def _adjudication(
    golden: Sequence[NamedValues], results: Sequence[NamedValues], evidence: Evidence, unit: ToleranceFor
) -> tuple[Adjudication, ...]:
    """Compare golden and result with the first reference that computes in float64."""
    for kind, by in TRUTHS.items():
        truth = (evidence.references or {}).get(kind)
        if truth is not None and truth.outputs:
            doubt = evidence.doubts.get(kind, "")
            rows = adjudicate(flat(truth.outputs), flat(golden), flat(results), unit, by)
            if rows:
                return tuple(msgspec.structs.replace(row, doubt=doubt) for row in rows)
    return ()


def _with_values(
    case: Case, answers: Mapping[QuestionKind, Golden]
) -> Iterator[tuple[QuestionKind | None, str, Sequence[NamedValues]]]:
    """Yield kind, name and outputs of references that have any: first the expected data of the makers."""
    expected = tuple(data_set.expected for data_set in case.data_sets)
    if any(expected):
        yield None, EXPECTED, expected
    for kind, name in ({QuestionKind.ANSWER: OWN_CPU} | NAMES | {QuestionKind.FUSED: AS_USED}).items():
        if kind in answers and any(answers[kind].outputs):
            yield kind, name, answers[kind].outputs
