"""The verdict on a right answer, by the providers that computed it."""

from typing import NamedTuple

from harness.core.records.facts import Placement
from harness.core.records.precision import PRECISION_CASTS
from harness.core.records.verdict import Verdict

LEAST_SHARE = 0.1
"""Share of the compute below which the EP is not tested: a right answer is then the CPU EP's."""

TOO_LITTLE = "too_little"
"""Cause of a ``fallback`` in which the EP computed something, but less than ``LEAST_SHARE``."""


INCOMPLETE = "assignment incomplete"
"""Cause of a ``pass_partial`` in which nothing shows that the CPU EP computed none of the nodes."""


class Placed(NamedTuple):
    """A verdict on a right answer, the nodes that ran elsewhere in words, and the cause."""

    verdict: Verdict
    reason: str
    cause: str = ""


def verdict_by_placement(placement: Placement, *, converted: bool) -> Placed:
    """Return the verdict on a right answer.

    Operators that only work on shapes stay on the CPU by design of onnxruntime
    (``fallback_cpu_capability.cc``) and do not demote a pass. An EP that takes only casts that a conversion
    added has computed nothing of the model. One that takes less than ``LEAST_SHARE`` of the compute has
    computed almost nothing.
    """
    if placement.is_unknown:
        return Placed(Verdict.FALLBACK, "nothing shows which provider ran the nodes")
    if not placement.ep_nodes and not placement.cpu_nodes:
        return Placed(Verdict.FOLDED, "no node was left to run")
    if not placement.ep_nodes:
        return Placed(Verdict.FALLBACK, f"no node ran on the EP; on the CPU: {_counts(placement.cpu_ops)}")
    compute = {op: count for op, count in placement.cpu_ops.items() if op not in placement.shape_ops}
    if converted and placement.ep_ops.keys() <= PRECISION_CASTS and not compute.keys() <= PRECISION_CASTS:
        left = {op: count for op, count in compute.items() if op not in PRECISION_CASTS}
        return Placed(Verdict.FALLBACK, f"only conversions ran on the EP; on the CPU: {_counts(left)}")
    # Along a chain, a node that the first provider does not take goes to the next one before the CPU.
    later = list(placement.chain_ops.items())[1:]
    left_to = [f"left to {provider}: {_counts(ops)}" for provider, ops in later if ops]
    if compute:
        left_to.append(f"left to the CPU: {_counts(compute)}")
    share = placement.ep_share
    if compute and share is not None:
        left_to.insert(0, f"{share_words(placement)} on the EP")
    if compute and share is not None and share < LEAST_SHARE:
        return Placed(Verdict.FALLBACK, f"too little to be tested: {'; '.join(left_to)}", TOO_LITTLE)
    cause = INCOMPLETE if placement.source == "incomplete" and not compute else ""
    if cause:
        left_to.append(
            "onnxruntime's record lacks float16 nodes on the CPU before 1.27, and there is no profile"
        )
    return Placed(Verdict.PASS_PARTIAL if compute or cause else Verdict.PASS, "; ".join(left_to), cause)


def share_words(placement: Placement) -> str:
    """Return how much is on the EP: ``0.4% of the work, 2 of 408 nodes``; empty if unknown."""
    if placement.ep_share is None:
        return ""
    nodes = placement.ep_nodes + placement.cpu_nodes
    percent = 100 * placement.ep_share
    shown = f"{percent:.0f}%" if percent >= 1 else "less than 1%"
    of_work = f"{shown} of the work, " if placement.share_of == "work" else ""
    return f"{of_work}{placement.ep_nodes:,} of {nodes:,} nodes"


def _counts(ops: dict[str, int]) -> str:
    return ", ".join(f"{op} x{count}" if count > 1 else op for op, count in sorted(ops.items()))
