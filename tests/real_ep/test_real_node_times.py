"""The time of nodes on a real plugin EP with a memory of its own."""

from pathlib import Path

import onnx
import pytest

from harness.core.timing.node_times import middle
from tests.kit import parse, records_of, run_matrix

pytestmark = [pytest.mark.real_ep, pytest.mark.long]

COPIES = "g (float[400, 400] x) => (float[1, 1] y) { [taken] a = Relu(x) [left] y = ReduceMax(a) }"
"""The result of the first node, which the provider takes, has to go to the CPU EP."""


def test_copies_between_memories_are_told_apart_from_nodes_with_their_boundary(
    crooked_ep: Path, tmp_path: Path, own_cache: Path
) -> None:
    assert own_cache
    folder = tmp_path / "models"
    folder.mkdir()
    onnx.save(onnx.load_from_string(parse(COPIES)), folder / "copies.onnx")
    table = {
        "schema": 1,
        "models": {"folders": ["models"]},
        "target": [
            {
                "name": "npu",
                "provider": "CrookedExecutionProvider",
                "plugin": str(crooked_ep),
                "device": {"type": "NPU"},
            }
        ],
        "latency": [{"nodes": True, "repeats": 10, "warm_up": 2}],
    }
    (found,) = records_of(run_matrix(tmp_path, table))
    times = found.node_times
    assert times is not None, found.reason
    assert times.problem == ""
    sides = [node.side for node in times.nodes]
    assert sides == ["ep", "copy", "cpu"], times.nodes
    assert min(times.parts["copy"]) > 0
    (boundary,) = times.boundaries
    assert (boundary.before, boundary.copies, boundary.nbytes) == ("left", 1, 640_000)
    assert middle(boundary.ms) >= middle(times.parts["copy"])
