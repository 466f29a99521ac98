"""From a judgement to a record: whose it is, whether the matrix expects it, and what the model is made of."""

from collections.abc import Iterator

from harness.core.cell import Cell
from harness.core.errors import one_line
from harness.core.record import SCHEMA, GeneratedInputs, ModelContent, ProcessState, Record
from harness.corpus.case import Case
from harness.corpus.port import ValueType
from harness.corpus.recipe import Recipe
from harness.engine.judge import Judgement
from harness.plan.plan import Plan, is_expected


def record_of(
    plan: Plan,
    cell: Cell,
    judgement: Judgement,
    *,
    started: str,
    attempt: int,
    process: ProcessState | None = None,
    case: Case | None = None,
    given: Case | None = None,
) -> Record:
    """Complete a judgement to a record: whose it is, and whether the matrix expects it.

    Args:
        plan: Where the cell is from.
        cell: The cell.
        judgement: Its verdict.
        started: UTC time, ISO 8601.
        attempt: As in the record.
        process: What it ran in.
        case: The model as it was run, where it is to be shown.
        given: The model as it came.
    """
    expectation = plan.expectation(cell)
    family = judgement.verdict.family
    expected = is_expected(expectation, judgement.verdict)
    reason = judgement.reason
    if expectation is not None and not expected:
        wanted = " or ".join(expectation.verdicts)
        reason = one_line(f"expected {wanted} ({expectation.reason}); got: {reason or family}")
    return Record(
        schema=SCHEMA,
        cell=cell.id,
        suite=cell.suite,
        model=cell.model,
        target=cell.target,
        provider=plan.target(cell.target).provider[0],
        axes=dict(cell.axes),
        verdict=judgement.verdict,
        family=family,
        expected=expected,
        phase=judgement.phase,
        cause=judgement.cause,
        reason=reason,
        placement=judgement.placement,
        outputs=judgement.outputs,
        again=judgement.again,
        golden=judgement.golden,
        timings_ms=judgement.timings_ms,
        effect=judgement.effect,
        latency=judgement.latency,
        scenario=judgement.scenario,
        repeats=judgement.repeats,
        no_spread=judgement.no_spread,
        adjudication=judgement.adjudication,
        hearing=judgement.hearing,
        started=started,
        attempt=attempt,
        process=process,
        content=None if case is None else _content(case),
        model_digest="" if given is None else given.model_digest,
    )


def _content(case: Case) -> ModelContent:
    return ModelContent(
        opsets=case.facts.opsets,
        ops=case.facts.op_types,
        types=tuple(sorted({dtype for port in case.ports for dtype in _dtypes(port.type)})),
        generated=None if case.recipe is None else _generated(case.recipe),
    )


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
