"""Nodes side by side: no tensor passes from one to another, and each gives what it gives in the model."""

import numpy as np
import onnx
import onnx.parser

from harness.annex.trace.nodes_apart import nodes_apart, read_results
from harness.annex.triage.net import load
from harness.annex.triage.net_tensors import NetTensors
from harness.annex.triage.subject import Subject
from harness.core.values.value import Tensor, tensor
from tests.kit import cpu_session

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[3,2] y) <float[3] w = {1.0, 2.0, 3.0}, int64[2] s = {3, 2}> {
    k = Add(w, w)
    [first] a = Add(x, k)
    [second] b = Mul(a, a)
    [shape] t = Identity(s)
    [third] y = Reshape(b, t)
}"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def subject() -> Subject:
    model = onnx.parser.parse_model(MODEL)
    return Subject(model=model.SerializeToString(), inputs=(("x", tensor(X)),))


def golden() -> dict[str, Tensor]:
    k = np.array([2.0, 4.0, 6.0], np.float32)
    a, t = X + k, np.array([3, 2])
    values = {"k": k, "a": a, "b": a * a, "t": t, "y": (a * a).reshape(3, 2)}
    return {name: tensor(value) for name, value in values.items()}


def test_every_node_reads_golden_tensors_alone() -> None:
    net = load(subject())
    known = NetTensors(net, lambda _, names: {name: golden()[name] for name in names})
    apart = nodes_apart(net, [1, 2, 4], known)
    assert apart is not None
    made = {name for node in apart.nodes for name in node.made}
    assert made == {"a", "b", "y"} == set(apart.outputs)
    assert not made & apart.read_names()
    # A constant of the model stays one: the EP may need it, as a shape.
    assert {"t.golden", "k.golden"} <= apart.weights.keys()
    assert set(apart.inputs) == {"x", "a.golden", "b.golden"}
    told = apart.subject()
    onnx.checker.check_model(told.model)
    fed = {name: value.array for name, value in told.inputs if isinstance(value, Tensor)}
    results = dict(zip(apart.outputs, cpu_session(told.model).run(list(apart.outputs), fed), strict=True))
    for name in made:
        assert np.array_equal(results[name], golden()[name].array)


def test_a_result_that_nothing_reads_is_no_output() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[4] x) => (float[2] v) { k = Constant<value_ints = [2]>() v, i = TopK(x, k) }""")
    net = load(Subject(model=model.SerializeToString(), inputs=(("x", tensor(np.zeros(4, np.float32))),)))
    assert read_results(net, net.nodes[1]) == ("v",)


def test_an_unknown_tensor_gives_no_net() -> None:
    net = load(subject())
    assert nodes_apart(net, [2], NetTensors(net, lambda *_: {})) is None


def test_a_name_that_is_taken_gets_another_one() -> None:
    model = onnx.parser.parse_model(MODEL)
    taken = model.graph.node[0].output[0] = model.graph.node[1].input[1] = "a.golden"
    net = load(Subject(model=model.SerializeToString(), inputs=(("x", tensor(X)),)))
    values = golden() | {taken: golden()["k"]}
    apart = nodes_apart(net, [2], NetTensors(net, lambda _, names: {one: values[one] for one in names}))
    assert apart is not None
    assert list(apart.inputs) == ["a.golden.golden"]
