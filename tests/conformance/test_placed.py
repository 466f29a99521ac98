"""Counts of placements: what contradicts itself, and what only looks like it."""

from typing import Literal

import pytest

from harness.conformance.verify.placed import placement_faults
from harness.core.facts import Placement

CPU = "CPUExecutionProvider"


def faults(source: Literal["assignment", "log"], *, ep_nodes: int = 0, **ops: int) -> list[str]:
    placement = Placement(
        ep_nodes=ep_nodes, cpu_nodes=0, ep_ops=ops, cpu_ops={}, partitions=ep_nodes, source=source
    )
    return list(placement_faults(placement, CPU))


@pytest.mark.parametrize(("nodes", "ops"), [(7, {"MatMul": 1}), (1, {"Conv": 1, "Relu": 1}), (2, {})])
def test_a_log_that_has_the_number_of_nodes_alone_is_honest(nodes: int, ops: dict[str, int]) -> None:
    """onnxruntime-web and -node list no nodes where all of them went to one provider: here after fusions."""
    assert faults("log", ep_nodes=nodes, **ops) == []
    assert faults("assignment", ep_nodes=nodes, **ops) == [
        f"ep_nodes is {nodes}, and ep_ops has {sum(ops.values())}"
    ]


def test_operators_without_any_node_are_made_up() -> None:
    assert faults("log", Conv=1) == ["ep_nodes is 0, and ep_ops has 1"]
