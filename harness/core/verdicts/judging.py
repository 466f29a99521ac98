"""A cell under a policy, the input of the rules: each judged output, and a check of a failed golden."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from harness.core.comparison.output_metrics import LOST, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.records.facts import COMPUTES_IN, UNREPEATABLE, Facts
from harness.core.records.reference_answer import (
    AS_USED,
    EXPECTED,
    Reference,
    ReferenceCheck,
    ReferenceDistance,
)
from harness.core.records.verdict import WRONG_NUMBERS, Verdict
from harness.core.verdicts.compare import OutputComparison
from harness.core.verdicts.dispute import AgainstReference, GoldenCheck, Resolution, check_golden, resolve
from harness.core.verdicts.judge_output import judge_row, judge_rows, worst
from harness.core.verdicts.judgement import OutputJudgement, is_rounded

WRONG_VALUES = frozenset(
    {
        Verdict.SHAPE_MISMATCH,
        Verdict.DTYPE_MISMATCH,
        Verdict.NAN_MISMATCH,
        Verdict.MISMATCH,
        Verdict.PRECISION_LOSS,
    }
)
"""Verdicts that rest on a golden alone."""

OF_FORM = frozenset({Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH})
"""Verdicts on the form of an output, not on its values."""


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """The finding of float64 on outputs with wrong values.

    Attributes:
        cleared: Why the EP is right; empty where it is not.
        disputed: Why the golden accuses nobody: it is as far from float64 as the EP. Empty where it is not.
        unconfirmed: Why float64 does not confirm that the EP is wrong; empty where it does, or need not.
    """

    cleared: str = ""
    disputed: str = ""
    unconfirmed: str = ""


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a rule: the facts, the policy, and each output under the policy.

    Attributes:
        fault: The fault that decides among the outputs, without the values of those in ``Facts.drawn``; None
            where all are right.
        fault_again: The same of the second run, without outputs that ONNX leaves undefined for this input.
        golden_check: Whether references dispute the golden that an output fails against.
        resolution: The finding of float64, or of the expected data where the golden is disputed; None where
            they do not decide. If they find the EP right, ``fault`` is None.
        unconfirmed: Why float64 does not confirm wrong values; empty if it does, or if no confirmation is
            needed.
    """

    facts: Facts
    policy: Policy
    outputs: tuple[OutputJudgement, ...] = ()
    again: tuple[OutputJudgement, ...] = ()
    fault: tuple[Verdict, str] | None = None
    fault_again: tuple[Verdict, str] | None = None
    golden_check: GoldenCheck = GoldenCheck()
    resolution: Resolution | None = None
    unconfirmed: str = ""

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the outputs that fail."""
        return tuple(one.row.name for one in self.outputs if one.fault is not None)

    @property
    def dispute(self) -> str:
        """Why the golden cannot judge values; empty where it can."""
        check = self.golden_check
        return self.facts.dispute or ": ".join(filter(None, (check.disputed, check.difference)))


def judging_of(facts: Facts, policy: Policy) -> Judging:
    """Judge each output of a cell, and the golden where an output fails against it."""
    policy = policy_at(facts, policy)
    outputs, again = judge_rows(facts.outputs, policy), judge_rows(facts.again, policy)
    judging = Judging(
        facts=facts,
        policy=policy,
        outputs=outputs,
        again=again,
        fault=worst(one for one in outputs if one.row.name not in facts.drawn or one.fault in OF_FORM),
        fault_again=worst(one for one in again if one.row.name not in (*facts.undefined, *facts.drawn)),
    )
    confirmation = _confirmation(judging)
    if confirmation.cleared:
        found = Resolution(finding="right", reason=confirmation.cleared)
        return msgspec.structs.replace(judging, resolution=found, fault=None)
    golden_check = _golden_check(judging)
    if confirmation.disputed and not golden_check.disputed:
        golden_check = GoldenCheck(disputed=confirmation.disputed)
    judging = msgspec.structs.replace(
        judging, golden_check=golden_check, unconfirmed=confirmation.unconfirmed
    )
    resolution = _resolution(judging)
    is_right = resolution is not None and resolution.finding == "right"
    return msgspec.structs.replace(judging, resolution=resolution, fault=None if is_right else judging.fault)


def policy_at(facts: Facts, policy: Policy) -> Policy:
    """Return a policy with what a cell computes in."""
    return msgspec.structs.replace(policy, **{name: getattr(facts, name) for name in COMPUTES_IN})


def by_expected_data(judging: Judging) -> dict[str, AgainstReference]:
    """Compare golden and EP with the expected data, under the policy; by output."""
    return _against(judging, lambda one: one.name == EXPECTED)


def is_as_used(judging: Judging) -> bool:
    """Return whether the CPU EP alone, as applications use it, is as wrong in each output that fails.

    It is if it gives the EP's answer, or if its own is further from the golden.
    """
    used = _against(judging, lambda one: one.name == AS_USED)
    failed = [one.row for one in judging.outputs if one.fault is not None]
    return all(row.name in used and _is_no_better(used[row.name], row) for row in failed)


def _is_no_better(used: AgainstReference, row: OutputMetrics) -> bool:
    if used.ep.fault is None:
        return True
    alone, with_ep = used.golden.row.relative_error, row.relative_error
    return used.golden.fault is not None and with_ep is not None and (alone or 0.0) >= with_ep


def _against(judging: Judging, of: Callable[[Reference], bool]) -> dict[str, AgainstReference]:
    """Compare golden and EP with a reference, under the policy; by output."""
    check = judging.facts.reference_check
    policy = msgspec.structs.replace(judging.policy, converted=False)
    return {
        row.name: AgainstReference(golden=judge_row(golden[row.name], policy), ep=judge_row(row, policy))
        for reference in (check.references if check is not None else ())
        if of(reference) and (golden := {row.name: row for row in reference.golden})
        for row in reference.ep
        if row.name in golden
    }


def _confirmation(judging: Judging) -> Confirmation:
    """Confirm wrong values by float64, which does not apply to a converted model."""
    facts, fault = judging.facts, judging.fault
    if fault is None or fault[0] not in WRONG_NUMBERS or facts.golden != "cpu" or facts.converted:
        return Confirmation()
    failed = [one.row for one in judging.outputs if one.fault is not None]
    return _confirm(failed, facts.reference_check, _against(judging, lambda one: one.in_float64))


def _confirm(
    failed: Sequence[OutputMetrics], check: ReferenceCheck | None, found: Mapping[str, AgainstReference]
) -> Confirmation:
    """Confirm that outputs are wrong by float64, or clear the EP.

    A golden is rounded, too, and may be the worse of the two answers. So a failure by values stands when
    float64 confirms it: the EP is far from float64, and the golden is near.

    It is cleared if it is within the limits of float64 in all of them. It is confirmed if the golden is so in
    an output that is rounded, or clearly nearer to float64 than the EP. If the golden is beyond the limits,
    and not clearly nearer, in all of them, it accuses nobody. Outputs with one right answer need no
    confirmation.

    Args:
        failed: The outputs that fail against the golden.
        check: What references show; None if they have not been asked.
        found: Output -> golden and EP against float64, under the policy.
    """
    rounded = [row.name for row in failed if is_rounded(row)]
    truth = next((one for one in check.references if one.in_float64), None) if check is not None else None
    if truth is not None and not truth.doubt and all(_is_right(found.get(row.name)) for row in failed):
        return Confirmation(cleared=f"right by {truth.name}{_distances(failed, found)}")
    # The golden of a model in float64 is that answer itself.
    in_float64 = check is not None and not check.no_float64 and truth is None
    if not rounded or (in_float64 and all(row.dtype == "float64" for row in failed)):
        return Confirmation()
    if truth is None or not found.keys() >= set(rounded):
        why = "the references were not asked" if check is None else check.no_float64
        return Confirmation(unconfirmed=": ".join(filter(None, ("there is no answer in float64", why))))
    if truth.doubt:
        return Confirmation(unconfirmed=f"{truth.name} is not believed alone: {truth.doubt}")
    nearer = {} if check is None else {one.output: one.nearer for one in check.adjudication if not one.doubt}
    if any(found[name].golden.fault is None or nearer.get(name) == "golden" for name in rounded):
        return Confirmation()
    far = f"golden and EP are both far from {truth.name}{_distances(failed, found)}"
    return Confirmation(disputed=far) if len(rounded) == len(failed) else Confirmation(unconfirmed=far)


def _is_right(against: AgainstReference | None) -> bool:
    return against is not None and against.ep.fault is None


def _distances(failed: Sequence[OutputMetrics], found: Mapping[str, AgainstReference]) -> str:
    """Return how far golden and EP are off at most; empty where that is not known."""
    known = [found[row.name] for row in failed if row.name in found]
    sides = [(one.golden.row.max_abs, one.ep.row.max_abs) for one in known]
    golden, ep = (max((one or 0.0 for one in side), default=0.0) for side in zip(*sides, strict=True))
    return f": the golden is off by {golden:.2g} at most, the EP by {ep:.2g}"


def _golden_check(judging: Judging) -> GoldenCheck:
    """Check the golden against the references for the outputs that fail under the policy."""
    check, fault = judging.facts.reference_check, judging.fault
    if fault is None or fault[0] not in WRONG_VALUES or check is None or judging.facts.golden != "cpu":
        return GoldenCheck()
    policy = msgspec.structs.replace(judging.policy, converted=False)
    references = tuple(
        msgspec.structs.replace(
            reference,
            golden=tuple(_under(policy, row) for row in reference.golden),
            ep=tuple(_under(policy, row) for row in reference.ep),
        )
        for reference in check.references
    )
    failed = OutputComparison(verdict=fault[0], message="", outputs=tuple(one.row for one in judging.outputs))
    return check_golden(failed, references, check.adjudication)


def _resolution(judging: Judging) -> Resolution | None:
    """Resolve a dispute by expected data and float64, which do not apply to a converted model."""
    facts, fault = judging.facts, judging.fault
    if not judging.dispute or facts.reference_check is None or facts.golden != "cpu" or facts.converted:
        return None
    if fault is not None and fault[0] not in WRONG_VALUES:
        return None
    # If the CPU EP has several answers, one of them does not measure an error, unless the EP's answer is
    # lost.
    excused = LOST if facts.dispute == UNREPEATABLE else 0.0
    found = resolve(
        judging.outputs,
        by_expected_data(judging),
        facts.reference_check.adjudication,
        whole=bool(facts.dispute),
        excused=excused,
    )
    # A further run that differs was not compared with the expected data.
    return None if found is not None and found.finding == "right" and facts.again else found


def _under(policy: Policy, row: ReferenceDistance) -> ReferenceDistance:
    """Return a row whose ``mismatched`` is 0 if the two answers agree under the policy."""
    judged = judge_row(row, policy)
    return msgspec.structs.replace(row, mismatched=judged.row.mismatched if judged.fault else 0)
