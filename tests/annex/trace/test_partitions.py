"""Which nodes are one partition, as far as the counts of a placement show it."""

import numpy as np
import onnx.parser
import pytest

from harness.annex.trace.partitions import partitions_of
from harness.annex.triage.net import load
from harness.annex.triage.subject import Subject
from harness.core.records.facts import Placement
from harness.core.values.value import tensor

MODEL = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 2]>
g (float[4] x) => (float[4] y, float[4] z) {
    [zero] a = Exp(x)
    [one] b = Neg(a)
    [two] c = ai.onnx.ml.Binarizer<threshold = 0.5>(b)
    [three] d = Tanh(c)
    [four] y = Add(d, a)
    [five] z = Sqrt(x)
}"""


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        # Two groups of connected nodes; as one partition, the first would need its own result.
        (2, {0: 0, 1: 0, 3: 1, 4: 1, 5: 0}),  # all that waits for no node on the CPU EP
        (3, {0: 0, 1: 0, 3: 1, 4: 1, 5: 2}),  # of those, what is connected
        (1, {}),
        (5, {}),  # each node by itself: an EP of kernels
    ],
)
def test_partitions_around_a_node_on_the_cpu(partitions: int, expected: dict[int, int]) -> None:
    model = onnx.parser.parse_model(MODEL)
    net = load(Subject(model=model.SerializeToString(), inputs=(("x", tensor(np.ones(4, np.float32))),)))
    placement = Placement(
        ep_nodes=5,
        cpu_nodes=1,
        ep_ops={"Exp": 1, "Neg": 1, "Tanh": 1, "Add": 1, "Sqrt": 1},
        cpu_ops={"Binarizer": 1},
        partitions=partitions,
        source="assignment",
    )
    assert partitions_of(net, range(6), placement) == expected
