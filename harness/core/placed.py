"""The verdict on a right answer, by the providers that computed it."""

from harness.core.precision import PRECISION_CASTS
from harness.core.record import Placement
from harness.core.verdict import Verdict


def verdict_by_placement(placement: Placement, *, converted: bool) -> tuple[Verdict, str]:
    """Return the verdict on a right answer, and in words what ran elsewhere.

    Operators that only work on shapes stay on the CPU by design of onnxruntime
    (``fallback_cpu_capability.cc``) and do not demote a pass. An EP that takes only the casts that a
    conversion added has computed nothing of the model.
    """
    if placement.is_unknown:
        return Verdict.FALLBACK, "nothing shows which provider ran the nodes"
    if not placement.ep_nodes and not placement.cpu_nodes:
        return Verdict.FOLDED, "no node was left to run"
    if not placement.ep_nodes:
        return Verdict.FALLBACK, f"no node ran on the EP; on the CPU: {_counts(placement.cpu_ops)}"
    compute = {op: count for op, count in placement.cpu_ops.items() if op not in placement.shape_ops}
    if converted and placement.ep_ops.keys() <= PRECISION_CASTS and not compute.keys() <= PRECISION_CASTS:
        left = {op: count for op, count in compute.items() if op not in PRECISION_CASTS}
        return Verdict.FALLBACK, f"only conversions ran on the EP; on the CPU: {_counts(left)}"
    # Along a chain, a node that the first provider does not take falls to the next one before the CPU.
    later = list(placement.chain_ops.items())[1:]
    left_to = [f"left to {provider}: {_counts(ops)}" for provider, ops in later if ops]
    if compute:
        left_to.append(f"left to the CPU: {_counts(compute)}")
    return Verdict.PASS_PARTIAL if compute else Verdict.PASS, "; ".join(left_to)


def _counts(ops: dict[str, int]) -> str:
    return ", ".join(f"{op} x{count}" if count > 1 else op for op, count in sorted(ops.items()))
