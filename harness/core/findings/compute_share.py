"""The share of a model's compute on the EP, as a record has it."""

from harness.core.records.facts import Placement
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.verdicts.placement_verdict import LEAST_SHARE


def share_on_ep(placed: Placement | None) -> float | None:
    """Return the share of the compute on the EP, from 0 to 1; None where no placement is known.

    Records of older versions lack the share where a part is on the CPU EP: then the nodes count.
    """
    if placed is None or placed.is_unknown or not (placed.ep_nodes or placed.cpu_nodes):
        return None
    if not placed.ep_nodes:
        return 0.0
    if not placed.cpu_nodes or (placed.cpu_ops and placed.cpu_ops.keys() <= set(placed.shape_ops)):
        return 1.0
    if placed.ep_share is not None:
        return placed.ep_share
    return placed.ep_nodes / (placed.ep_nodes + placed.cpu_nodes)


def nodes_on_ep(record: Record) -> str:
    """Return ``82/84`` for a record that passes in part; empty for all others."""
    placed = record.placement
    if record.verdict is not Verdict.PASS_PARTIAL or placed is None:
        return ""
    return f"{placed.ep_nodes:,}/{placed.ep_nodes + placed.cpu_nodes:,}"


def is_the_cpus(record: Record) -> bool:
    """Return whether so little of the compute is on the EP that a time says nothing about the EP.

    Such a cell is a ``fallback``, except in records of older versions.
    """
    share = share_on_ep(record.placement)
    return share is not None and share < LEAST_SHARE
