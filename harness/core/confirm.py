"""Confirm wrong values by float64, or clear the EP.

A golden is rounded, too, and may be the worse of the two answers. So a failure by values stands only if
float64 confirms it: the EP is far from float64, and the golden is near. Pure: judged rows in, a finding out.
"""

from collections.abc import Mapping, Sequence

import msgspec

from harness.core.dispute import AgainstReference
from harness.core.judgement import is_rounded
from harness.core.output_metrics import OutputMetrics
from harness.core.reference import ReferenceCheck


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """The finding of float64 about outputs with wrong values.

    Attributes:
        cleared: Why the EP is right; empty where it is not.
        disputed: Why the golden cannot judge the EP: it is as far from float64 as the EP. Empty where it can.
        unconfirmed: Why float64 does not confirm that the EP is wrong; empty where it does, or where no
            confirmation is needed.
    """

    cleared: str = ""
    disputed: str = ""
    unconfirmed: str = ""


def confirm(
    failed: Sequence[OutputMetrics], check: ReferenceCheck | None, found: Mapping[str, AgainstReference]
) -> Confirmation:
    """Confirm that outputs are wrong, or clear the EP.

    The EP is cleared if all of these outputs are within the limits of float64. The failure is confirmed if,
    in an output that is rounded, the golden is within these limits, or is clearly nearer to float64 than the
    EP. If the golden is beyond the limits in all of them, and not clearly nearer, it cannot judge the EP.
    Outputs with one right answer need no confirmation.

    Args:
        failed: The outputs that fail against the golden.
        check: What references show; None if they have not been asked.
        found: Output -> golden and EP against float64, under the policy.
    """
    rounded = [row.name for row in failed if is_rounded(row)]
    truth = next((one for one in check.references if one.in_float64), None) if check is not None else None
    if truth is not None and not truth.doubt and all(_is_right(found.get(row.name)) for row in failed):
        return Confirmation(cleared=f"right by {truth.name}{_distances(failed, found)}")
    # The golden of a float64 model is the float64 answer itself.
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
    """Return the largest distances of golden and EP; empty where they are unknown."""
    known = [found[row.name] for row in failed if row.name in found]
    sides = [(one.golden.row.max_abs, one.ep.row.max_abs) for one in known]
    golden, ep = (max((one or 0.0 for one in side), default=0.0) for side in zip(*sides, strict=True))
    return f": the golden is off by {golden:.2g} at most, the EP by {ep:.2g}"
