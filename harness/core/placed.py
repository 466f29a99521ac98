"""The verdict on a right answer: who computed it."""

from harness.core.record import Placement
from harness.core.verdict import Verdict

CONVERSIONS = frozenset({"Cast", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear"})
"""Operators that a conversion to another precision adds around those that compute."""


def placed(placement: Placement, *, converted: bool = False) -> tuple[Verdict, str]:
    """The verdict on a right answer, and in words what ran elsewhere.

    Operators that only work on shapes stay on the CPU by design of onnxruntime
    (``fallback_cpu_capability.cc``) and do not demote a pass.

    Args:
        placement: Where the nodes went.
        converted: Whether the model was converted to another precision. An EP that takes no more of such a
            model than what was added around its operators has computed nothing of it.
    """
    if not placement.ep_nodes and not placement.cpu_nodes:
        return Verdict.FOLDED, "no node was left to run"
    if not placement.ep_nodes:
        return Verdict.FALLBACK, f"no node ran on the EP; on the CPU: {_listed(placement.cpu_ops)}"
    compute = {op: count for op, count in placement.cpu_ops.items() if op not in placement.shape_ops}
    if converted and placement.ep_ops.keys() <= CONVERSIONS and not compute.keys() <= CONVERSIONS:
        left = {op: count for op, count in compute.items() if op not in CONVERSIONS}
        return Verdict.FALLBACK, f"only conversions ran on the EP; on the CPU: {_listed(left)}"
    # Along a chain, what the first provider does not take falls to the next one before it falls to the CPU.
    later = list(placement.chain_ops.items())[1:]
    left_to = [f"left to {provider}: {_listed(ops)}" for provider, ops in later if ops]
    if compute:
        left_to.append(f"left to the CPU: {_listed(compute)}")
    return Verdict.PASS_PARTIAL if compute else Verdict.PASS, "; ".join(left_to)


def _listed(ops: dict[str, int]) -> str:
    return ", ".join(f"{op} x{count}" if count > 1 else op for op, count in sorted(ops.items()))
