"""Measure a cell: turns its outcome and the answers of the CPU provider into facts. Pure.

``harness.core.verdicts.decide`` derives the verdict from the facts.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harness.core.comparison.output_kind import OutputKind
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.weak_golden import why_weak
from harness.core.noise.noise import NoiseRule, with_noise
from harness.core.records.cell_end import OwnCpu
from harness.core.records.facts import CPU_PROVIDER, Facts, Placement, Repeats, RunFacts, shared
from harness.core.records.reference_answer import ReferenceCheck
from harness.core.records.run_work import OTHER_BRANCH, OTHER_INPUTS, SECOND_RUN, Unchecked, short_of
from harness.core.records.verdict import Phase
from harness.core.text.errors import one_line
from harness.core.values.value import NamedValues, Tensor, leaves_of
from harness.core.values.value_digest import short_digest
from harness.core.verdicts.compare import OutputComparison
from harness.core.verdicts.missing import Need
from harness.core.verdicts.precise import judge_precision
from harness.corpus.case import Case
from harness.corpus.work.work_share import compute_share
from harness.engine.answers.compare_sets import by_name, compare_sets, flat
from harness.engine.answers.evidence import CellRule, Evidence
from harness.engine.answers.noise_rules import noises
from harness.engine.measuring.agreement_measure import goldens_of
from harness.engine.measuring.defined_elements import (
    partly_defined,
    wholly_undefined,
    with_count,
    with_defined,
)
from harness.engine.measuring.early_end import ended, tells_no_memory
from harness.engine.measuring.generation_measure import playing_of, ways_figures, with_worst_positions
from harness.engine.measuring.output_kinds import draws, output_kinds_of
from harness.engine.measuring.reference_check import check_references
from harness.engine.measuring.weak_answers import why_converted_undecided, why_insensitive, why_undecided
from harness.engine.tasks.outcome import Outcome, Ran
from harness.golden.golden_answer import Golden

_COMPILED = "EPContext"
_ADD_SOURCE = "put the model that it was made of beside it, as a variant for CPUExecutionProvider"


def measure(outcome: Outcome, case: Case, evidence: Evidence, rule: CellRule, provider: str) -> Facts:
    """Return the facts of a cell."""
    if not isinstance(outcome, Ran):
        facts = ended(outcome, case)
    elif evidence.golden is None:
        raise TypeError("a cell that ran is measured against a golden")
    elif rule.generation is not None:
        playing = playing_of(case, outcome, evidence, rule, is_cpu=provider == CPU_PROVIDER)
        facts = _compared(playing.outcome, case, playing.evidence, rule)
        facts = with_worst_positions(facts, playing)
    else:
        facts = _compared(outcome, case, evidence, rule)
    return msgspec.structs.replace(
        facts,
        provider=provider,
        precision=rule.policy.precision,
        converted=rule.policy.converted,
        own_precision=rule.policy.own_precision,
        finest=rule.policy.finest,
        delivers=rule.delivers,
        remedy=rule.policy.remedy if evidence.wider or rule.policy.is_coarser(rule.policy.noise_at) else "",
        undefined=wholly_undefined(evidence, rule),
        own_cpu=None if evidence.own_cpu is None else own_cpu_of(evidence.own_cpu, evidence.broken),
        answered=evidence.answered,
        unchecked=_unchecked(outcome, case, evidence, rule) if isinstance(outcome, Ran) else (),
    )


def with_answer(
    need: Need, facts: Facts, outcome: Outcome, case: Case, evidence: Evidence, rule: CellRule
) -> Facts:
    """Return the facts of a cell with one more answer: ``measure`` of this evidence, for less work.

    Outputs are compared again only after an answer that they are compared with.
    """
    changed: dict[str, Any]
    match need:
        case Need.OWN_CPU if evidence.own_cpu is not None:
            changed = {"own_cpu": own_cpu_of(evidence.own_cpu, evidence.broken)}
        case Need.UNDEFINED if not partly_defined(evidence, rule):
            changed = {"undefined": wholly_undefined(evidence, rule)}
        case Need.REPEATED:
            changed = {"dispute": facts.dispute or evidence.repeated or ""}
        case Need.ZEROED:
            changed = {"weak_golden": facts.weak_golden or why_insensitive(evidence, facts)}
        case Need.REFERENCES if isinstance(outcome, Ran) and rule.generation is None:
            answers = goldens_of(case, evidence)
            settled = with_defined(outcome, answers, partly_defined(evidence, rule))
            check = _references(settled, case, answers, facts.outputs, evidence, rule)
            changed = {"reference_check": check}
        case _:
            return measure(outcome, case, evidence, rule, facts.provider)
    return msgspec.structs.replace(facts, answered=evidence.answered, **changed)


def with_generation(facts: Facts, case: Case, outcome: Outcome, evidence: Evidence, rule: CellRule) -> Facts:
    """Return the final facts of a cell, with what is known about its ways; unchanged in another scenario."""
    if rule.generation is None or not isinstance(outcome, Ran):
        return facts
    playing = playing_of(case, outcome, evidence, rule, is_cpu=facts.is_cpu)
    return msgspec.structs.replace(facts, generation=ways_figures(facts.outputs, playing))


def with_shapes(facts: Facts, case: Case, refused: Mapping[str, str]) -> Facts:
    """Return facts with the shapes that ran, and the errors of shapes that the CPU provider refuses."""
    shapes: dict[str, tuple[str, ...]] = {"shapes": tuple(data_set.name for data_set in case.data_sets)}
    if refused:
        shapes["refused"] = tuple(refused.values())
    return msgspec.structs.replace(facts, scenario={**shapes, **facts.scenario})


def own_cpu_of(own: Golden, broken: str | None = None) -> OwnCpu:
    """Return the answer of the CPU provider of a target's runtime, with what onnx's checker says."""
    if own.status == "lost":
        return OwnCpu(status="died" if own.died else "lost", message=own.message)
    return OwnCpu(
        status=own.status, message=own.message, out_of_memory=tells_no_memory(own.message), rule=broken
    )


def _compared(outcome: Ran, case: Case, evidence: Evidence, rule: CellRule) -> Facts:
    assert evidence.golden is not None  # noqa: S101 - ``measure`` has seen it
    if evidence.full is not None:
        return _converted(outcome, case, evidence.full, evidence.golden, evidence, rule)
    return _ran(outcome, case, evidence.golden, evidence, rule)


def _ran(outcome: Ran, case: Case, golden: Golden, evidence: Evidence, rule: CellRule) -> Facts:
    expected = tuple(data_set.expected for data_set in case.data_sets)
    facts = _common(outcome, case)
    if golden.status == "ok":
        answers: tuple[NamedValues, ...] = golden.outputs
        dispute = golden.disputed or evidence.repeated or ""
        source = "cpu" if case.frozen is None else "profile"
        drawn = case.facts.origins.drawn
        others_too = len(drawn) < len(case.outputs)
        facts = msgspec.structs.replace(
            facts, golden=source, dispute=dispute, drawn=drawn if others_too else ()
        )
    elif all({name for name, _ in known} >= set(case.outputs) for known in expected):
        answers = expected
        facts = msgspec.structs.replace(facts, golden="expected", dispute=golden.disputed)
    else:
        told = f"the CPU EP gives no golden: {golden.message}"
        if _COMPILED in case.facts.op_types:
            told = f"it is compiled, and no other variant is here to compare with: {_ADD_SOURCE}"
        return msgspec.structs.replace(facts, no_golden=told)
    policy = rule.policy
    kinds = _kinds(case, answers, evidence, rule)
    noise = noises(evidence)
    compare = functools.partial(compare_sets, tolerance_for=policy.tolerance_for, kinds=kinds, noise=noise)
    partly = partly_defined(evidence, rule)
    outcome = with_defined(outcome, answers, partly)
    compared = compare(answers, outcome.outputs)
    again: tuple[OutputMetrics, ...] = ()
    if outcome.second is not None:
        again = compare(answers[:1], (outcome.second,), kinds=kinds[:1]).outputs
    facts = msgspec.structs.replace(
        facts, golden_digest=golden.digest if golden.status == "ok" else short_digest(answers)
    )
    return msgspec.structs.replace(
        facts,
        outputs=tuple(with_count(row, partly) for row in compared.outputs),
        again=again,
        reference_check=_references(outcome, case, answers, compared.outputs, evidence, rule),
        repeats=_repeats(outcome, rule, draws_numbers=draws(case, kinds)),
        weak_golden=why_weak(answers, policy.tolerance_for)
        or why_undecided(answers, compared.outputs, kinds, evidence, policy)
        or why_insensitive(evidence, facts),
        no_spread=evidence.noise if isinstance(evidence.noise, str) else "",
    )


def _converted(
    outcome: Ran, case: Case, full: Golden, own: Golden, evidence: Evidence, rule: CellRule
) -> Facts:
    """Measure the outputs of a converted model; see ``harness.core.verdicts.precise``."""
    facts = _common(outcome, case)
    if full.status != "ok":
        return msgspec.structs.replace(facts, no_golden=f"the CPU EP gives no golden: {full.message}")
    policy = rule.policy
    kinds = _kinds(case, full.outputs, evidence, rule)
    owns = own.outputs if own.status == "ok" else None
    reference = "" if case.sibling is None else case.sibling.reference
    compared = _compare_precision(full.outputs, owns, outcome.outputs, rule, kinds, reference)
    again: tuple[OutputMetrics, ...] = ()
    if outcome.second is not None:
        seconds = (outcome.second,)
        again = _compare_precision(
            full.outputs[:1], owns and owns[:1], seconds, rule, kinds[:1], reference
        ).outputs
    if (noise := noises(evidence)) is not None:
        compared = _with_noise(compared, full.outputs, outcome.outputs, noise)
    return msgspec.structs.replace(
        facts,
        golden="cpu",
        golden_digest=full.digest + own.digest,
        dispute=full.disputed or own.disputed,
        weak_golden=why_weak(full.outputs, policy.tolerance_for)
        or why_converted_undecided(full.outputs, owns, outcome.outputs, compared.outputs, rule),
        outputs=compared.outputs,
        again=again,
        reference_check=_references(outcome, case, full.outputs, compared.outputs, evidence, rule),
        repeats=_repeats(outcome, rule, draws_numbers=draws(case, kinds)),
    )


def _references(
    outcome: Ran,
    case: Case,
    answers: Sequence[NamedValues],
    rows: Sequence[OutputMetrics],
    evidence: Evidence,
    rule: CellRule,
) -> ReferenceCheck | None:
    """Compare golden and result with references; ``rows`` are how these two compare.

    The noise of a given model excuses nothing of a converted one.
    """
    if evidence.references is None:
        return None
    policy = rule.policy
    compare = functools.partial(
        compare_sets,
        tolerance_for=policy.tolerance_for,
        kinds=_kinds(case, answers, evidence, rule),
        noise=noises(evidence) if evidence.full is None else None,
        only_known=True,
    )
    return check_references(case, answers, outcome.outputs, rows, evidence, compare, policy.precision)


def _common(outcome: Ran, case: Case) -> Facts:
    """Return the facts that a run has by itself."""
    own = shared(outcome, RunFacts) | {"placement": placement_of(outcome, case)}
    return Facts(phase=Phase.COMPARE, **own)


def _compare_precision(
    golden: Sequence[NamedValues],
    own: Sequence[NamedValues] | None,
    results: Sequence[NamedValues],
    rule: CellRule,
    kinds: Sequence[Mapping[str, OutputKind]],
    reference: str,
) -> OutputComparison:
    return judge_precision(
        flat(golden),
        None if own is None else flat(own),
        flat(results),
        rule.policy.tolerance_for,
        rule.policy.precision,
        by_name(kinds),
        reference=reference,
        most_apart=rule.most_apart,
    )


def _with_noise(
    compared: OutputComparison,
    answers: Sequence[NamedValues],
    results: Sequence[NamedValues],
    rule: NoiseRule,
) -> OutputComparison:
    """Return a comparison of a converted model whose rows have the noise of the unconverted model."""
    right, found = (dict(leaves_of(flat(sets))) for sets in (answers, results))
    rows = []
    for row in compared.outputs:
        golden, actual = right.get(row.name), found.get(row.name)
        error = row.precision_error
        measured = error is not None and error.error is not None
        if golden is None or actual is None or not rule.knows(row.name) or not measured:
            rows.append(row)
        else:
            rows.append(with_noise(row, golden, actual, rule))
    return msgspec.structs.replace(compared, outputs=tuple(rows))


def _kinds(
    case: Case, answers: Sequence[NamedValues], evidence: Evidence, rule: CellRule
) -> tuple[Mapping[str, OutputKind], ...]:
    revealed = evidence.revealed
    return output_kinds_of(
        case,
        answers,
        revealed=revealed.outputs if revealed and revealed.status == "ok" else (),
        exact_inputs=rule.exact_inputs,
        rounds_freely=rule.rounds_freely,
    )


def _repeats(outcome: Ran, rule: CellRule, *, draws_numbers: bool) -> Repeats | None:
    """Return the repeats, with whether all must have equal bits; random numbers cannot."""
    if outcome.repeats is None or rule.repeat is None:
        return outcome.repeats
    bit_equal = rule.repeat.bit_equal and not draws_numbers
    return msgspec.structs.replace(outcome.repeats, bit_equal=bit_equal)


def _unchecked(outcome: Ran, case: Case, evidence: Evidence, rule: CellRule) -> tuple[Unchecked, ...]:
    """Return the checks that were not made, by the harness's or the agent's decision."""
    further, golden = rule.further, evidence.golden
    found = [*further.unchecked, *short_of(further.scenario, outcome.scenario), *_other_branches(case)]
    wanted = further.repeat
    if wanted is not None and (wanted.runs > 1 or wanted.sessions > 1) and outcome.repeats is None:
        found.append(Unchecked(check=SECOND_RUN, because="the agent does not tell of repeated runs"))
    has_others = further.other and golden is not None and bool(golden.other)
    if has_others and outcome.other is None and evidence.full is None:
        why = "there are no outputs for them: the run with them failed, or the agent makes none"
        found.append(Unchecked(check=OTHER_INPUTS, because=why))
    return tuple(found)


def _other_branches(case: Case) -> Iterator[Unchecked]:
    """Yield the branches that no data set takes, as far as inputs alone choose them."""
    for flag in case.facts.branch_inputs:
        values = [value for one in case.data_sets for name, value in one.inputs if name == flag]
        chosen = {bool(one.array.any()) for one in values if isinstance(one, Tensor) and one.array.size == 1}
        if len(chosen) == 1:
            because = one_line(f"{flag} is {str(chosen.pop()).lower()} in every data set")
            yield Unchecked(check=OTHER_BRANCH, because=because)


def placement_of(outcome: Ran, case: Case) -> Placement:
    """Return the placement of a run, with the operators that are on the CPU by design, and the EP's share."""
    placed = outcome.placement
    if not placed.cpu_ops:
        return placed
    shape_ops = placed.cpu_ops.keys() & case.facts.shape_only_ops
    share, counted = None, ""
    if placed.ep_nodes and not placed.cpu_ops.keys() <= shape_ops:
        on_ep, on_cpu = outcome.named
        if not on_ep or not on_cpu:  # this agent sends no names
            on_ep, on_cpu = _unnamed(placed.ep_ops), _unnamed(placed.cpu_ops)
        compute = tuple(node for node in on_cpu if node[1] not in shape_ops)
        total = case.work.multiply_adds + case.work.nbytes
        share, counted = compute_share(case.node_work, on_ep, compute, total)
    return msgspec.structs.replace(
        placed, shape_ops=tuple(sorted(shape_ops)), ep_share=share, share_of=counted
    )


def _unnamed(ops: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    return tuple(("", op_type) for op_type, count in ops.items() for _ in range(count))
