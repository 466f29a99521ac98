"""The share of a model that the EP computed: the one place where it is read from a record."""

from harness.core.record import Placement, Record
from harness.core.verdict import Verdict

LEAST_SHARE = 0.01
"""Below this share of the nodes on the EP, times are those of the CPU EP under another name."""


def share_on_ep(record: Record) -> float | None:
    """Return the share of the compute nodes on the EP, from 0 to 1; None where no placement is known."""
    placed = record.placement
    if placed is None or placed.is_unknown:
        return None
    return 1.0 if record.verdict is Verdict.PASS else _part(placed)


def nodes_on_ep(record: Record) -> str:
    """Return ``82/84`` for a record that passes in part; empty for all others."""
    placed = record.placement
    if record.verdict is not Verdict.PASS_PARTIAL or placed is None:
        return ""
    return f"{placed.ep_nodes:,}/{placed.ep_nodes + placed.cpu_nodes:,}"


def is_the_cpus(record: Record) -> bool:
    """Whether so little of the model is on the EP that the time says nothing about it."""
    share = share_on_ep(record)
    return share is not None and share < LEAST_SHARE


def _part(placed: Placement) -> float:
    nodes = placed.ep_nodes + placed.cpu_nodes
    return placed.ep_nodes / nodes if nodes else 0.0
