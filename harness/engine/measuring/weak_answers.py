"""Why a right answer does not show that the EP computes rightly: a wrong one would have passed as well."""

from collections.abc import Mapping, Sequence

from harness.core.comparison import wording
from harness.core.comparison.output_kind import OutputKind
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.noise.spread import Spread
from harness.core.records.facts import Facts
from harness.core.text.errors import one_line
from harness.core.values.value import NamedValues, leaves_of
from harness.core.verdicts.half_zero import passes_for_half, passes_for_half_of_own
from harness.engine.answers.compare_sets import by_name, flat
from harness.engine.answers.evidence import CellRule, Evidence
from harness.engine.answers.noise_rules import noise_rule


def why_undecided(
    answers: Sequence[NamedValues],
    rows: Sequence[OutputMetrics],
    kinds: Sequence[Mapping[str, OutputKind]],
    evidence: Evidence,
    policy: Policy,
) -> str:
    """Return why an answer is no better than a wrong one: noise excuses both. Empty if it is better."""
    right, of_kind = dict(leaves_of(flat(answers))), by_name(kinds)
    noise = noise_rule(evidence.noise) if isinstance(evidence.noise, Spread) else None
    for row in rows:
        golden = right.get(row.name)
        if golden is not None and passes_for_half(row, golden, policy, of_kind.get(row.name), noise):
            return wording.undecided(row, _excuse(row, policy))
    return ""


def _excuse(row: OutputMetrics, policy: Policy) -> str:
    """Return what makes an answer pass, in words."""
    if row.details is not None and row.details.steps is not None:
        return "a step of its quantization"
    by_noise = row.noise is not None and policy.judge_by == "noise"
    return "its rounding noise" if by_noise else "the tolerance"


def why_converted_undecided(
    answers: Sequence[NamedValues],
    owns: Sequence[NamedValues] | None,
    results: Sequence[NamedValues],
    rows: Sequence[OutputMetrics],
    rule: CellRule,
) -> str:
    """Return the same for a converted model, whose conversion costs the CPU EP as much."""
    right, own, found = (dict(leaves_of(flat(sets or ()))) for sets in (answers, owns, results))
    for row in rows:
        golden, other, actual = right.get(row.name), own.get(row.name), found.get(row.name)
        if golden is None or other is None or actual is None:
            continue
        if passes_for_half_of_own(row, golden, other, actual, rule.policy, rule.most_apart):
            return wording.undecided(row, "the CPU EP's own error at this precision")
    return ""


def why_insensitive(evidence: Evidence, facts: Facts) -> str:
    """Return why some wrong results of the EP would not be noticed; empty if none is known."""
    on_the_ep = facts.placement.ep_ops if facts.placement is not None else {}
    operators = [operator for operator in evidence.zeroed or () if operator in on_the_ep]
    if not operators:
        return ""
    return one_line(f"zeros in place of what the EP computes would go unnoticed: {', '.join(operators)}")
