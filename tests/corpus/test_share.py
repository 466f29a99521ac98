"""The share of compute on an EP, by the work of the nodes that it took."""

import numpy as np
import onnx.parser
import pytest

from harness.core.values.value import tensor
from harness.corpus.work.estimate import work_of
from harness.corpus.work.work_share import NodeWork, compute_share

WORK = NodeWork(named={"conv": 900.0, "a": 50.0, "b": 50.0}, mean={"Conv": 900.0, "Add": 50.0})


@pytest.mark.parametrize(
    ("ep", "cpu", "share"),
    [
        ([("a", "Add"), ("b", "Add")], [("conv", "Conv")], 0.1),
        ([("conv", "Conv")], [("a", "Add"), ("b", "Add")], 0.9),
        ([("", "Add")], [("", "Conv"), ("", "Add")], 0.05),  # an agent that tells types alone
        ([("NpuExecutionProvider_0", "NpuExecutionProvider_0")], [("a", "Add")], 0.95),  # a compiled graph
        ([("made", "Made")], [("conv", "Conv")], 475 / 1375),  # by an optimizer: as the mean
    ],
)
def test_nodes_count_by_their_work(
    ep: list[tuple[str, str]], cpu: list[tuple[str, str]], share: float
) -> None:
    found, counted = compute_share(WORK, ep, cpu, total=1000.0)
    assert found == pytest.approx(share)
    assert counted == "work"


def test_without_known_work_nodes_count() -> None:
    assert compute_share(NodeWork(), [("a", "Add")], [("b", "Add")] * 3, total=0.0) == (0.25, "nodes")


def test_bodies_count_once_for_each_turn() -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 17]>
        agraph (float[50] x) => (float[50] y) <int64 count = {100}, bool true = {1}> {
            [first] a = Relu(x)
            y = Loop <body = body (int64 i, bool go, float[50] v) => (bool on, float[50] next) {
                on = Identity(go)  [inside] next = Sqrt(v)
            }> (count, true, a)
        }""")
    work, nodes = work_of(model, (("x", tensor(np.zeros(50, np.float32))),))
    assert nodes.named["first"] == 50 + 400
    assert nodes.named["inside"] == pytest.approx(100 * nodes.named["first"])
    assert work.multiply_adds + work.nbytes >= sum(nodes.named.values())
