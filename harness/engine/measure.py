"""From an outcome and the answers of the CPU provider to facts; pure.

Whatever the facts are worth is decided in ``harness.core.decide``.
"""

import functools
import re
from collections.abc import Mapping, Sequence

import msgspec

from harness.agent.native_stack.block import without_stacks
from harness.core.compare import Comparison
from harness.core.errors import one_line
from harness.core.facts import Facts
from harness.core.noise import NoiseRule, with_noise
from harness.core.output_kind import OutputKind
from harness.core.output_metrics import OutputMetrics
from harness.core.precise import judge_precision
from harness.core.record import Ended, How, OwnCpu, Placement
from harness.core.spread import Spread
from harness.core.value import leaves
from harness.core.verdict import Phase
from harness.core.weak_golden import why_weak
from harness.corpus.case import Case
from harness.engine.clean_error import clean_error
from harness.engine.compare_sets import by_name, compare_sets, flat
from harness.engine.evidence import Evidence
from harness.engine.other_rows import other_rows
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
    Unsupported,
)
from harness.engine.output_kinds import draws, output_kinds_of
from harness.engine.references_of import references_of
from harness.engine.rule import Rule
from harness.golden.golden import Golden

_OUT_OF_MEMORY = re.compile(
    r"\bMemoryError\b|bad_alloc|bad allocation|out of memory|Failed to allocate memory|MemoryAllocation\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(r"not (?:yet )?(?:supported|implemented)|unsupported|NOT_IMPLEMENTED", re.IGNORECASE)


def measure(outcome: Outcome, case: Case, evidence: Evidence, rule: Rule, provider: str) -> Facts:
    """Measure what came of a cell.

    Args:
        outcome: What the target did.
        case: The model, with the suite's expected outputs.
        evidence: The answers that are known by now.
        rule: What the cell is judged by; metrics count elements under its tolerance.
        provider: The first preferred provider of the target.
    """
    if not isinstance(outcome, Ran):
        facts = ended(outcome, case)
    elif evidence.golden is None:
        raise TypeError("a cell that ran is measured against a golden")
    elif evidence.full is not None:
        facts = _converted(outcome, case, evidence.full, evidence.golden, evidence, rule)
    else:
        facts = _ran(outcome, case, evidence.golden, evidence, rule)
    return msgspec.structs.replace(
        facts,
        provider=provider,
        precision=rule.policy.precision,
        converted=rule.policy.converted,
        delivers=rule.delivers,
        undefined=dict(evidence.undefined or {}),
        own_cpu=None if evidence.own is None else _own_cpu(evidence.own),
        answered=evidence.answered,
    )


def ended(outcome: Outcome, case: Case | None = None) -> Facts:
    """The facts of a cell that did not run to its end."""
    how: How
    match outcome:
        case Raised():
            return _raised(outcome, case)
        case Unavailable():
            late = outcome.cause in {"no_device", "registration_failed"}
            phase, how = (Phase.REGISTER if late else Phase.START), "unavailable"
            reason = clean_error(outcome.reason)
        case Rejected():
            reason = clean_error(f"provider option {outcome.option!r} is refused: {outcome.reason}")
            phase, how = Phase.REGISTER, "rejected"
        case Unsupported():
            phase, how, reason = outcome.phase, "unsupported", clean_error(outcome.message)
        case Hung():
            phase, how = outcome.phase, "hung"
            reason = f"no end of phase {phase} within {outcome.limit_s:g} s; the process was killed"
        case Died():
            phase, how = outcome.phase, "died"
            reason = f"the process died in phase {phase}: {outcome.cause or 'it exited early'}"
        case Unfeedable():
            phase, how, reason = Phase.RUN, "unfeedable", one_line(outcome.message)
        case Ran():
            raise TypeError("a cell that ran did not end early")
    memory = isinstance(outcome, Died) and _OUT_OF_MEMORY.search(without_stacks(outcome.printed)) is not None
    return Facts(
        phase=phase,
        cause=getattr(outcome, "cause", ""),
        scenario=getattr(outcome, "scenario", {}),
        ended=Ended(how=how, message=reason, out_of_memory=memory),
    )


def untried(how: Ended, phase: Phase | None = None) -> Facts:
    """The facts of a cell of which nothing was tried."""
    return Facts(phase=phase, ended=how)


def at_data_set(case: Case, number: int | None) -> str:
    """Which data set was at work, to stand before a reason; empty where there is only one."""
    if number is None or not 0 <= number < len(case.data_sets) > 1:
        return ""
    return f"with {case.data_sets[number].name}: "


def with_shapes(facts: Facts, case: Case, refused: Mapping[str, str]) -> Facts:
    """Facts that tell which shapes were run, and which the CPU provider refuses."""
    told: dict[str, tuple[str, ...]] = {"shapes": tuple(data_set.name for data_set in case.data_sets)}
    if refused:
        told["refused"] = tuple(refused.values())
    return msgspec.structs.replace(facts, scenario={**told, **facts.scenario})


def _raised(outcome: Raised, case: Case | None) -> Facts:
    text = f"{outcome.kind}: {outcome.message}"
    message = clean_error(text, case.model_path if case else None)
    if case is not None:
        message = one_line(at_data_set(case, outcome.data_set) + message)
    note = ""
    if outcome.sick:
        note = f"; the process was replaced: {one_line(clean_error(outcome.sick), 100)}"
        message = one_line(message, 300 - len(note))
    how = Ended(
        how="raised",
        kind=one_line(outcome.kind, 100),
        message=message,
        out_of_memory=_OUT_OF_MEMORY.search(text) is not None,
        refused=_REFUSAL.search(text) is not None,
        note=note,
    )
    return Facts(phase=outcome.phase, ended=how, scenario=outcome.scenario)


def _own_cpu(own: Golden) -> OwnCpu:
    if own.status == "lost":
        return OwnCpu(status="died" if own.died else "lost", message=own.message)
    return OwnCpu(status=own.status, message=own.message)


def _ran(outcome: Ran, case: Case, golden: Golden, evidence: Evidence, rule: Rule) -> Facts:
    expected = tuple(data_set.expected for data_set in case.data_sets)
    answers: tuple[NamedValues, ...] = ()
    facts = _common(outcome, case)
    if golden.status == "ok":
        answers = golden.outputs
        facts = msgspec.structs.replace(
            facts, golden="cpu", dispute=golden.disputed or evidence.unrepeatable or ""
        )
    elif all({name for name, _ in known} >= set(case.outputs) for known in expected):
        answers = expected
        facts = msgspec.structs.replace(facts, golden="expected", dispute=golden.disputed)
    else:
        return msgspec.structs.replace(facts, no_golden=f"the CPU EP gives no golden: {golden.message}")
    kinds = _kinds(case, answers, evidence, rule)
    outcome = _with_demand(outcome, rule, by_lot=draws(case, kinds))
    noise = noise_rule(evidence.spread) if isinstance(evidence.spread, Spread) else None
    compare = functools.partial(
        compare_sets, tolerance_for=rule.policy.tolerance_for, kinds=kinds, noise=noise
    )
    compared = compare(answers, outcome.outputs)
    again = None
    if outcome.second is not None:
        again = compare(answers[:1], (outcome.second,), kinds=kinds[:1])
    other: tuple[OutputMetrics, ...] = ()
    if outcome.other and golden.other:
        other = other_rows(golden, outcome, rule.policy.tolerance_for, kinds)
    reference_check = None
    if evidence.references is not None:
        known = functools.partial(compare, only_known=True)
        reference_check = references_of(
            case,
            answers,
            outcome.outputs,
            compared,
            evidence.references,
            known,
            rule.policy.precision,
            evidence.doubts,
        )
    return msgspec.structs.replace(
        facts,
        outputs=compared.outputs,
        again=again.outputs if again is not None else (),
        other=other,
        reference_check=reference_check,
        repeats=outcome.repeats,
        weak_golden=why_weak(answers, rule.policy.tolerance_for)
        or _why_insensitive(evidence.unnoticed or (), facts.placement),
        no_spread=evidence.spread if isinstance(evidence.spread, str) else "",
    )


def _converted(outcome: Ran, case: Case, full: Golden, own: Golden, evidence: Evidence, rule: Rule) -> Facts:
    """The outputs of a model that was converted to another precision; see ``harness.core.precise``."""
    facts = _common(outcome, case)
    if full.status != "ok":
        return msgspec.structs.replace(facts, no_golden=f"the CPU EP gives no golden: {full.message}")
    kinds = _kinds(case, full.outputs, evidence, rule)
    outcome = _with_demand(outcome, rule, by_lot=draws(case, kinds))
    owns = own.outputs if own.status == "ok" else None
    compared = _compare_precision(full.outputs, owns, outcome.outputs, rule, kinds)
    again = None
    if outcome.second is not None:
        again = _compare_precision(full.outputs[:1], owns and owns[:1], (outcome.second,), rule, kinds[:1])
    if isinstance(evidence.spread, Spread):
        compared = _with_told_noise(compared, full.outputs, outcome.outputs, evidence.spread)
    reference_check = None
    if evidence.references is not None:
        known = functools.partial(
            compare_sets, tolerance_for=rule.policy.tolerance_for, kinds=kinds, only_known=True
        )
        reference_check = references_of(
            case,
            full.outputs,
            outcome.outputs,
            compared,
            evidence.references,
            known,
            rule.policy.precision,
            evidence.doubts,
        )
    return msgspec.structs.replace(
        facts,
        golden="cpu",
        dispute=full.disputed or own.disputed,
        weak_golden=why_weak(full.outputs, rule.policy.tolerance_for),
        outputs=compared.outputs,
        again=again.outputs if again is not None else (),
        reference_check=reference_check,
        repeats=outcome.repeats,
    )


def _common(outcome: Ran, case: Case) -> Facts:
    return Facts(
        phase=Phase.COMPARE,
        placement=_with_shape_ops(outcome.placement, case),
        providers_changed=outcome.providers_changed,
        teardown=outcome.teardown,
        timings_ms=outcome.timings_ms,
        latency=outcome.latency,
        scenario=outcome.scenario,
        repeats=outcome.repeats,
    )


def _compare_precision(
    golden: Sequence[NamedValues],
    own: Sequence[NamedValues] | None,
    results: Sequence[NamedValues],
    rule: Rule,
    kinds: Sequence[Mapping[str, OutputKind]],
) -> Comparison:
    """Compare all data sets at once; beyond the first, names carry the data set's number."""
    return judge_precision(
        flat(golden),
        None if own is None else flat(own),
        flat(results),
        rule.policy.tolerance_for,
        rule.policy.precision,
        by_name(kinds),
    )


def _why_insensitive(unnoticed: Sequence[str], placement: Placement | None) -> str:
    """Why a golden would not show all that the EP may do wrong; empty where it would, as far as is known."""
    on_the_ep = placement.ep_ops if placement is not None else {}
    operators = [operator for operator in unnoticed if operator in on_the_ep]
    if not operators:
        return ""
    return one_line(f"zeros in place of what the EP computes would go unnoticed: {', '.join(operators)}")


def noise_rule(spread: Spread) -> NoiseRule:
    """The noise of a model as ``compare_sets`` takes it."""
    return NoiseRule(precision=spread.precision, spreads=by_name(spread.outputs))


def _with_told_noise(
    compared: Comparison,
    answers: Sequence[NamedValues],
    results: Sequence[NamedValues],
    spread: Spread,
) -> Comparison:
    """A comparison of a converted model with the noise of the model as it came in its rows."""
    rule = noise_rule(spread)
    right, found = (
        {leaf: part for name, value in flat(sets) for leaf, part in leaves(name, value)}
        for sets in (answers, results)
    )
    rows = []
    for row in compared.outputs:
        golden, actual = right.get(row.name), found.get(row.name)
        error = row.precision_error
        measured = error is not None and error.error is not None
        if golden is None or actual is None or row.name not in rule.spreads or not measured:
            rows.append(row)
        else:
            rows.append(with_noise(row, golden, actual, rule))
    return msgspec.structs.replace(compared, outputs=tuple(rows))


def _kinds(
    case: Case, answers: tuple[NamedValues, ...], evidence: Evidence, rule: Rule
) -> tuple[Mapping[str, OutputKind], ...]:
    revealed = evidence.revealed
    return output_kinds_of(
        case,
        answers,
        revealed=revealed.outputs if revealed and revealed.status == "ok" else (),
        exact_inputs=rule.exact_inputs,
    )


def _with_demand(outcome: Ran, rule: Rule, *, by_lot: bool) -> Ran:
    """An outcome that says whether its runs have to give equal bits; random numbers cannot."""
    if outcome.repeats is None or rule.repeat is None:
        return outcome
    repeats = msgspec.structs.replace(outcome.repeats, bit_equal=rule.repeat.bit_equal and not by_lot)
    return msgspec.structs.replace(outcome, repeats=repeats)


def _with_shape_ops(placement: Placement, case: Case) -> Placement:
    """A placement that says which operators on the CPU are there by design."""
    kept = placement.cpu_ops.keys() & case.facts.shape_only_ops if placement.cpu_ops else ()
    return msgspec.structs.replace(placement, shape_ops=tuple(sorted(kept))) if kept else placement
