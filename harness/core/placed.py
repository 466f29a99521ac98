"""The verdict on a right answer: who computed it."""

from harness.core.record import Placement
from harness.core.verdict import Verdict


def placed(placement: Placement) -> tuple[Verdict, str]:
    """The verdict on a right answer, and in words what ran elsewhere.

    Operators that only work on shapes stay on the CPU by design of onnxruntime
    (``fallback_cpu_capability.cc``) and do not demote a pass.
    """
    if not placement.ep_nodes and not placement.cpu_nodes:
        return Verdict.FOLDED, "no node was left to run"
    if not placement.ep_nodes:
        return Verdict.FALLBACK, f"no node ran on the EP; on the CPU: {_listed(placement.cpu_ops)}"
    compute = {op: count for op, count in placement.cpu_ops.items() if op not in placement.shape_ops}
    # Along a chain, what the first provider does not take falls to the next one before it falls to the CPU.
    later = list(placement.chain_ops.items())[1:]
    left = [f"left to {provider}: {_listed(ops)}" for provider, ops in later if ops]
    if compute:
        left.append(f"left to the CPU: {_listed(compute)}")
    return Verdict.PASS_PARTIAL if compute else Verdict.PASS, "; ".join(left)


def _listed(ops: dict[str, int]) -> str:
    return ", ".join(f"{op} x{count}" if count > 1 else op for op, count in sorted(ops.items()))
