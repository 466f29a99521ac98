"""Counts of placements: what contradicts itself, and what only looks like it."""

from typing import Literal

import msgspec
import pytest

from harness.annex.conformance.verify.placement_check import placement_faults
from harness.core.records.facts import Placement

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


@pytest.mark.parametrize(
    ("share", "share_of", "fault"),
    [
        (None, "", ""),
        (0.93, "work", ""),
        (0.25, "nodes", ""),
        (0.93, "nodes", "ep_share is 0.93 of the nodes: 1 on the EP, 3 on the CPU"),
        (None, "work", "share_of is 'work', and there is no ep_share"),
        (1.5, "work", "ep_share is 1.5 of 'work', not 0 to 1 of 'work' or 'nodes'"),
        (0.5, "", "ep_share is 0.5 of '', not 0 to 1 of 'work' or 'nodes'"),
    ],
)
def test_a_share_of_the_compute_agrees_with_the_counts(
    share: float | None, share_of: str, fault: str
) -> None:
    placement = Placement(
        ep_nodes=1,
        cpu_nodes=4,
        ep_ops={"Conv": 1},
        cpu_ops={"Relu": 3, "Shape": 1},
        partitions=1,
        source="assignment",
        shape_ops=("Shape",),
        ep_share=share,
        share_of=share_of,
    )
    assert list(placement_faults(placement, "AcmeExecutionProvider")) == ([fault] if fault else [])
    wholly = msgspec.structs.replace(placement, cpu_nodes=1, cpu_ops={"Shape": 1})
    found = list(placement_faults(wholly, "AcmeExecutionProvider"))
    assert bool(found) is (share is not None or bool(share_of))


def test_operators_without_any_node_are_made_up() -> None:
    assert faults("log", Conv=1) == ["ep_nodes is 0, and ep_ops has 1"]
