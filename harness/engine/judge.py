"""From an outcome to a record: the one place where verdicts are made.

Pure: what the target did, what the CPU provider did, and the tolerance come in; a record goes out.
"""

import re
from collections.abc import Callable

import msgspec

from harness.core.cell import Cell
from harness.core.compare import Comparison
from harness.core.errors import one_line
from harness.core.record import SCHEMA, OptionEffect, OutputMetrics, Placement, ProcessState, Record
from harness.core.tolerance import Tolerance, computing_precision, default_tolerance
from harness.core.verdict import Family, Phase, Verdict
from harness.corpus.case import Case
from harness.engine.compare_sets import compare_sets
from harness.engine.essence import essence
from harness.engine.outcome import (
    Died,
    Hung,
    NamedValues,
    Outcome,
    Raised,
    Ran,
    Rejected,
    Unavailable,
    Unfeedable,
)
from harness.golden.golden import Golden
from harness.plan.plan import Plan

ToleranceFor = Callable[[str], Tolerance]

_OUT_OF_MEMORY = re.compile(
    r"\bMemoryError\b|bad_alloc|bad allocation|out of memory|Failed to allocate memory|MemoryAllocation\b",
    re.IGNORECASE,
)
_FORM = frozenset({Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH})
_REFUSAL = re.compile(r"not (?:yet )?(?:supported|implemented)|unsupported|NOT_IMPLEMENTED", re.IGNORECASE)


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A verdict with its grounds; fields as in ``harness.core.record.Record``."""

    verdict: Verdict
    phase: Phase | None = None
    cause: str = ""
    reason: str = ""
    placement: Placement | None = None
    outputs: tuple[OutputMetrics, ...] = ()
    golden: str = ""
    timings_ms: dict[str, float] = {}
    effect: OptionEffect | None = None


def judge(
    outcome: Outcome, case: Case, golden: Golden, reference: Golden, tolerance_for: ToleranceFor
) -> Judgement:
    """Judge one outcome.

    Args:
        outcome: What the target did.
        case: The model, with the suite's expected outputs.
        golden: The answer of the CPU provider of the harness's own runtime.
        reference: What the CPU provider of the *target's* runtime makes of the model; often the golden.
        tolerance_for: Element type of an output -> tolerance.
    """
    if isinstance(outcome, Raised):
        return _raised(outcome, case, reference)
    if isinstance(outcome, Ran):
        return _ran(outcome, case, golden, tolerance_for)
    return judge_untried(outcome)


def judge_untried(outcome: Unavailable | Rejected | Died | Hung | Unfeedable) -> Judgement:
    """Judge an outcome that needs no answer to compare with."""
    if isinstance(outcome, Unavailable):
        phase = Phase.REGISTER if outcome.cause in {"no_device", "registration_failed"} else Phase.START
        return Judgement(
            verdict=Verdict.UNAVAILABLE, phase=phase, cause=outcome.cause, reason=essence(outcome.reason)
        )
    if isinstance(outcome, Rejected):
        reason = f"provider option {outcome.option!r} is refused: {outcome.reason}"
        return Judgement(verdict=Verdict.OPTION_REJECTED, phase=Phase.REGISTER, reason=essence(reason))
    if isinstance(outcome, Hung):
        reason = f"no end of phase {outcome.phase} within {outcome.limit_s:g} s; the process was killed"
        return Judgement(verdict=Verdict.HANG, phase=outcome.phase, reason=reason)
    if isinstance(outcome, Died):
        memory = _OUT_OF_MEMORY.search(outcome.printed)
        return Judgement(
            verdict=Verdict.OUT_OF_MEMORY if memory else Verdict.CRASH,
            phase=outcome.phase,
            cause=outcome.cause,
            reason=f"the process died in phase {outcome.phase}: {outcome.cause or 'it exited early'}",
        )
    return Judgement(verdict=Verdict.NO_GOLDEN, phase=Phase.RUN, reason=one_line(outcome.message))


def _raised(outcome: Raised, case: Case, reference: Golden) -> Judgement:
    text = f"{outcome.kind}: {outcome.message}"
    if reference.status == "refused":
        verdict = Verdict.INVALID_MODEL
        text = reference.message
    elif _OUT_OF_MEMORY.search(text):
        verdict = Verdict.OUT_OF_MEMORY
    elif outcome.phase is Phase.CREATE and (outcome.kind == "NotImplemented" or _REFUSAL.search(text)):
        verdict = Verdict.UNSUPPORTED
    else:
        verdict = Verdict.ERROR
    reason = essence(text, case.model_path)
    if outcome.sick:
        note = f"; the process was replaced: {one_line(essence(outcome.sick), 100)}"
        reason = one_line(reason, 300 - len(note)) + note
    return Judgement(verdict=verdict, phase=outcome.phase, reason=reason)


def _ran(outcome: Ran, case: Case, golden: Golden, tolerance_for: ToleranceFor) -> Judgement:
    expected = tuple(data_set.expected for data_set in case.data_sets)
    if golden.status == "ok":
        answers, judged_by = golden.outputs, "cpu"
    elif all({name for name, _ in known} >= set(case.outputs) for known in expected):
        answers, judged_by = expected, "expected"
    else:
        answers, judged_by = (), ""
    if judged_by:
        compared = compare_sets(answers, outcome.outputs, tolerance_for)
        verdict, reason = (
            _excused(outcome, case, golden, compared, tolerance_for)
            or _wrong(outcome, answers, compared, tolerance_for)
            or placed(outcome.placement, case.facts.shape_only_ops)
        )
        outputs = compared.outputs
    else:
        verdict, reason, outputs = Verdict.NO_GOLDEN, f"the CPU EP gives no golden: {golden.message}", ()
    return Judgement(
        verdict=verdict,
        phase=Phase.COMPARE,
        reason=one_line("; ".join(filter(None, (reason, outcome.teardown)))),
        placement=outcome.placement,
        outputs=outputs,
        golden=judged_by,
        timings_ms=outcome.timings_ms,
    )


def _excused(
    outcome: Ran, case: Case, golden: Golden, compared: Comparison, tolerance_for: ToleranceFor
) -> tuple[Verdict, str] | None:
    """A disputed golden judges no values; shapes and types it does, where the expected data agree."""
    if not golden.disputed:
        return None
    expected = tuple(data_set.expected for data_set in case.data_sets)
    if compared.verdict in _FORM:
        consent = compare_sets(expected, outcome.outputs, tolerance_for, only_known=True)
        if not any(expected) or consent.verdict in _FORM:
            return None
    return Verdict.REFERENCE_DISPUTED, golden.disputed


def _wrong(
    outcome: Ran, answers: tuple[NamedValues, ...], compared: Comparison, tolerance_for: ToleranceFor
) -> tuple[Verdict, str] | None:
    """What is wrong with the result itself."""
    if outcome.providers_changed:
        return Verdict.FALLBACK_AT_RUN, outcome.providers_changed
    if compared.verdict is not None:
        return compared.verdict, compared.message
    if outcome.second is not None:
        again = compare_sets(answers[:1], (outcome.second,), tolerance_for)
        if again.verdict is not None:
            return Verdict.NONDETERMINISTIC, f"a second run of the same session differs: {again.message}"
    return None


def placed(placement: Placement, shape_only_ops: frozenset[str]) -> tuple[Verdict, str]:
    """The verdict on a right answer: who computed it.

    Operators that only work on shapes stay on the CPU by design of onnxruntime
    (``fallback_cpu_capability.cc``) and do not demote a pass.
    """
    if not placement.ep_nodes and not placement.cpu_nodes:
        return Verdict.FOLDED, "no node was left to run"
    if not placement.ep_nodes:
        return Verdict.FALLBACK, f"no node ran on the EP; on the CPU: {_listed(placement.cpu_ops)}"
    compute = {op: count for op, count in placement.cpu_ops.items() if op not in shape_only_ops}
    # Along a chain, what the first provider does not take falls to the next one before it falls to the CPU.
    later = list(placement.chain_ops.items())[1:]
    left = [f"left to {provider}: {_listed(ops)}" for provider, ops in later if ops]
    if compute:
        left.append(f"left to the CPU: {_listed(compute)}")
    return Verdict.PASS_PARTIAL if compute else Verdict.PASS, "; ".join(left)


def record_of(
    plan: Plan,
    cell: Cell,
    judgement: Judgement,
    *,
    started: str,
    attempt: int,
    process: ProcessState | None = None,
) -> Record:
    """Complete a judgement to a record: whose it is, and whether the matrix expects it.

    A skipped cell is never unexpected: nothing was tried, and ``required`` targets speak for themselves.
    """
    expectation = plan.expectation(cell)
    family = judgement.verdict.family
    if family is Family.SKIPPED:
        expected = True
    elif expectation is not None:
        expected = judgement.verdict in expectation.verdicts
    else:
        expected = family is not Family.FAILED
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
        golden=judgement.golden,
        timings_ms=judgement.timings_ms,
        effect=judgement.effect,
        started=started,
        attempt=attempt,
        process=process,
    )


def tolerance_rule(plan: Plan, cell: Cell, case: Case) -> ToleranceFor:
    """Element type -> tolerance, for one cell: the matrix's entry, else the default of what computes."""
    mode = plan.target(cell.target).mode_at(cell)
    precision = computing_precision(case.facts.float_types, mode.computes if mode else "float32")
    chosen = plan.tolerance(cell)

    def tolerance_for(dtype: str) -> Tolerance:
        default = default_tolerance(dtype, precision)
        # A matrix entry speaks about rounding; what has one right answer keeps it.
        if chosen is None or default == Tolerance(rtol=0.0, atol=0.0):
            return default
        return Tolerance(rtol=chosen[0], atol=chosen[1])

    return tolerance_for


def _listed(ops: dict[str, int]) -> str:
    return ", ".join(f"{op} x{count}" if count > 1 else op for op, count in sorted(ops.items()))
