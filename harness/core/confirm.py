"""Confirm wrong values by float64, or clear the EP of them.

A golden is rounded, too, and may be the worse of the two answers. So a failure by values stands when float64
confirms it: the EP is far from float64, and the golden is near. Pure: judged rows in, a finding out.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.core.dispute import AgainstReference
from harness.core.judged import is_rounded
from harness.core.output_metrics import OutputMetrics
from harness.core.reference import Reference, ReferenceCheck


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """The finding of float64 on outputs with wrong values.

    Attributes:
        cleared: Why the EP is right; empty where it is not.
        unconfirmed: Why float64 does not confirm that it is wrong; empty where it does, or need not.
    """

    cleared: str = ""
    unconfirmed: str = ""


def confirm(
    failed: Sequence[OutputMetrics], check: ReferenceCheck | None, found: Mapping[str, AgainstReference]
) -> Confirmation:
    """Confirm that outputs are wrong, or clear the EP.

    It is cleared if it is within the limits of float64 in all of them. It is confirmed if the golden is so in
    each output that is rounded, or clearly nearer to float64 than the EP. Outputs with one right answer need
    no confirmation.

    Args:
        failed: The outputs that fail against the golden.
        check: What references show; None if they have not been asked.
        found: Output -> golden and EP against float64, under the policy.
    """
    rounded = [row.name for row in failed if is_rounded(row)]
    truth = next((one for one in check.references if one.in_float64), None) if check is not None else None
    if truth is not None and not truth.doubt and all(_is_right(found.get(row.name)) for row in failed):
        return Confirmation(cleared=f"right by {truth.name}{_distances(failed, found)}")
    check = check or ReferenceCheck(no_float64="the references were not asked")
    return Confirmation(unconfirmed=next(_reasons(rounded, truth, found, check), ""))


def _is_right(against: AgainstReference | None) -> bool:
    return against is not None and against.ep.fault is None


def _distances(failed: Sequence[OutputMetrics], found: Mapping[str, AgainstReference]) -> str:
    """Return how far golden and EP are off at most; empty where that is not known."""
    sides = [(found[row.name].golden.row.max_abs, found[row.name].ep.row.max_abs) for row in failed]
    golden, ep = (max((one or 0.0 for one in side), default=0.0) for side in zip(*sides, strict=True))
    return f": the golden is off by {golden:.2g} at most, the EP by {ep:.2g}"


def _reasons(
    rounded: Sequence[str],
    truth: Reference | None,
    found: Mapping[str, AgainstReference],
    check: ReferenceCheck,
) -> Iterator[str]:
    """Yield why float64 does not confirm that rounded outputs are wrong."""
    if not rounded:
        return
    if truth is None or not found.keys() >= set(rounded):
        why = f": {check.no_float64}" if check.no_float64 else ""
        yield f"there is no answer in float64{why}"
        return
    if truth.doubt:
        yield f"{truth.name} is not believed alone: {truth.doubt}"
    nearer = {one.output: one.nearer for one in check.adjudication if not one.doubt}
    if any(found[name].golden.fault is not None and nearer.get(name) != "golden" for name in rounded):
        yield f"golden and EP are both far from {truth.name}"
