"""The record of a cell, from the decision."""

from collections.abc import Iterator
from typing import NamedTuple

from harness.core.records.cell import Cell
from harness.core.records.facts import shared
from harness.core.records.record import SCHEMA, Decision, GeneratedInputs, ModelContent, ProcessState, Record
from harness.core.text.errors import one_line
from harness.core.values.value import leaves_of
from harness.corpus.case import Case
from harness.corpus.derived.looped_copy import ITERATIONS
from harness.corpus.input_words import fed_words
from harness.corpus.inputs.recipe import Recipe
from harness.corpus.model.port import ValueType
from harness.operators.book import rounds_by_default
from harness.plan.expectation import Expectation, is_expected
from harness.plan.plan import Plan


class CellAttempt(NamedTuple):
    """One attempt at a cell, 0 for the first; ``started`` is the UTC time in ISO 8601.

    ``expectation`` is the ``[[expect]]`` entry that applies where it ran.
    """

    number: int
    started: str
    process: ProcessState | None = None
    place: str = ""
    expectation: Expectation | None = None


def record_of(
    plan: Plan,
    cell: Cell,
    decision: Decision,
    attempt: CellAttempt,
    *,
    case: Case | None = None,
    given: Case | None = None,
) -> Record:
    """Return the record of a cell."""
    expectation = attempt.expectation
    verdict, reason = decision.verdict, decision.reason
    expected = is_expected(expectation, verdict)
    if expectation is not None and not expected:
        why = f"expected {expectation.wanted} ({expectation.reason})"
        reason = one_line(f"{why}; got: {reason or verdict.family}")
    fields = shared(decision, Decision) | {
        "reason": reason,
        "provider": plan.target(cell.target).provider[0],
    }
    return Record(
        schema=SCHEMA,
        cell=cell.id,
        suite=cell.suite,
        model=cell.model,
        target=cell.target,
        axes=dict(cell.axes),
        family=verdict.family,
        expected=expected,
        started=attempt.started,
        attempt=attempt.number,
        process=attempt.process,
        place=attempt.place,
        content=None if case is None else model_content(case),
        model_digest="" if given is None else _digest(given, case),
        fed="" if given is None or case is None else fed_words(given, case),
        **fields,
    )


def _digest(given: Case, case: Case | None) -> str:
    """Return the digest of a model, or of all models of a folder that were played together."""
    if case is not None and case.chain is not None and case.recipe is not None:
        return case.recipe.of
    return given.model_digest


def model_content(case: Case) -> ModelContent:
    """Return the operators and inputs of a model, as its record has them; without what a scenario adds."""
    ports = (port for port in case.ports if port.name != ITERATIONS)
    return ModelContent(
        opsets=case.facts.opsets,
        ops=case.facts.op_types,
        types=tuple(sorted({dtype for port in ports for dtype in _dtypes(port.type)})),
        ranks=_ranks(case),
        generated=None if case.recipe is None else _generated(case.recipe),
        default_noise=tuple(name for name in case.facts.operators if rounds_by_default(name)),
    )


def _ranks(case: Case) -> tuple[int, ...]:
    given = case.data_sets[0].inputs if case.data_sets else ()
    inputs = [(name, value) for name, value in given if name != ITERATIONS]
    return tuple(sorted({tensor.array.ndim for _, tensor in leaves_of(inputs) if tensor is not None}))


def _generated(recipe: Recipe) -> GeneratedInputs:
    return GeneratedInputs(
        dimensions=recipe.dimensions,
        sizes=str(recipe.attempt.sizes),
        values=recipe.attempt.values,
        seed=recipe.seed,
    )


def _dtypes(declared: ValueType | None) -> Iterator[str]:
    while declared is not None:
        if declared.dtype:
            yield declared.dtype
        declared = declared.item
