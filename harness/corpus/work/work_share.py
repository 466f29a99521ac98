"""The share of a model's work on an execution provider, by the nodes that it took."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

Nodes = Collection[tuple[str, str]]
"""Name and operator type of each node; the name may be empty."""


class NodeWork(msgspec.Struct, frozen=True, kw_only=True):
    """The work of the nodes of a model: multiply-adds, and bytes that are moved, in one run.

    Attributes:
        named: Name of a node -> its work. Bodies of loops count once for each iteration.
        mean: Operator type -> the mean work of its nodes, including unnamed ones and those in functions.
    """

    named: Mapping[str, float] = {}
    mean: Mapping[str, float] = {}

    def of(self, name: str, op_type: str) -> float | None:
        """Return the work of a node; None if the model has none of this name or type."""
        found = self.named.get(name) if name else None
        return self.mean.get(op_type) if found is None else found


def compute_share(work: NodeWork, ep: Nodes, cpu: Nodes, total: float) -> tuple[float, str]:
    """Return the share of the compute on the EP, from 0 to 1, and its unit: ``work`` or ``nodes``.

    An optimizer adds nodes that the model does not have: each counts as the mean of the model's nodes. If a
    runtime lists a compiled graph as one node, its contents are unknown: they count as all nodes but the
    CPU's. ``total`` is the work of the whole model.
    """
    on_cpu = _sum(work, cpu)
    fused = any("ExecutionProvider" in op_type or "ExecutionProvider" in name for name, op_type in ep)
    on_ep = max(0.0, total - on_cpu) if fused and total else _sum(work, ep)
    if on_ep + on_cpu > 0:
        return on_ep / (on_ep + on_cpu), "work"
    return len(ep) / max(1, len(ep) + len(cpu)), "nodes"


def _sum(work: NodeWork, nodes: Iterable[tuple[str, str]]) -> float:
    known = [work.of(name, op_type) for name, op_type in nodes]
    mean = sum(work.mean.values()) / max(1, len(work.mean))
    return sum(mean if one is None else one for one in known)
