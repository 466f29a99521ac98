"""Transformations of outputs, nodes, constants and what nothing needs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from harness.annex.triage.net import Net
from harness.annex.triage.subject import Subject
from harness.annex.triage.transform.arguments import fewer_arguments
from harness.annex.triage.transform.attributes import default_attributes
from harness.annex.triage.transform.bypass import bypassed_nodes
from harness.annex.triage.transform.constants import constants
from harness.annex.triage.transform.fewer_nodes import fewer_nodes, frozen_branches
from harness.annex.triage.transform.outputs import fewer_outputs
from harness.annex.triage.transform.unused import unused_parts
from harness.core.values.value import Array, Tensor
from tests.annex.triage.reducing.reductions import apply, subject
from tests.kit import run_on_cpu

CHAIN = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2,3] x) => (float[2,3] y) {
        [abs] a = Abs(x)
        [neg] b = Neg(a)
        [exp] c = Exp(b)
        [sin] d = Sin(c)
        [add] y = Add(d, a)
    }
"""
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def has(*names: str) -> Callable[[onnx.ModelProto, Any], bool]:
    return lambda model, _: set(names) <= {node.name for node in model.graph.node}


def names(net: Net) -> list[str]:
    return [node.name for node in net.nodes]


def test_a_node_is_cut_out_with_what_it_was_fed() -> None:
    net = apply(fewer_nodes, subject(CHAIN, x=X), has("exp"))
    assert names(net) == ["exp"]
    assert list(net.inputs) == ["b"]
    assert list(net.outputs) == ["c"]
    fed = net.fed["b"]
    assert isinstance(fed, Tensor)
    np.testing.assert_array_equal(fed.array, -abs(X))


def test_nodes_far_apart_stay_connected_by_known_values() -> None:
    start = subject(CHAIN, x=X)
    net = apply(fewer_nodes, start, has("abs", "sin"))
    assert names(net) == ["abs", "sin"]
    assert list(net.inputs) == ["x", "c"]
    found = run_on_cpu(net.subject().proto(), {"x": X, "c": np.exp(-abs(X))})
    np.testing.assert_allclose(found[1], np.sin(np.exp(-abs(X))), rtol=1e-6)


def test_values_that_cannot_be_had_are_not_made_up_where_they_are_computed() -> None:
    def failing(model: onnx.ModelProto, _: Any) -> bool:
        return any(node.name == "exp" for node in model.graph.node)

    start = subject(CHAIN, x=X)
    net = apply(fewer_nodes, start, failing)
    assert net.fed.keys() == {"b"}


def test_a_branch_is_frozen_where_its_end_must_be_a_constant() -> None:
    def constant_b(model: onnx.ModelProto, _: Any) -> bool:
        inputs = {info.name for info in model.graph.input}
        (mul,) = [node for node in model.graph.node if node.name == "mul"] or [onnx.NodeProto()]
        return bool(mul.input) and mul.input[1] not in inputs

    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x, float[2,3] w) => (float[2,3] y) {
            [prep] v = Exp(w)
            [prep2] u = Sqrt(v)
            [mul] y = Mul(x, u)
        }""",
        x=X,
        w=X,
    )
    assert names(apply(fewer_nodes, start, constant_b)) == ["prep2", "mul"]
    net = apply(frozen_branches, start, constant_b)
    assert names(net) == ["mul"]
    np.testing.assert_allclose(net.weights["u"].value(None).array, np.sqrt(np.exp(X)), rtol=1e-6)


def test_what_depends_on_no_input_stays_a_constant() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x) => (float[6] y)
        <int64[1] six = {6}> {
            [same] shape = Identity(six)
            [reshape] y = Reshape(x, shape)
        }""",
        x=X,
    )
    net = apply(fewer_nodes, start, has("reshape"))
    assert list(net.inputs) == ["x"]
    assert list(net.weights) == ["shape"]


@pytest.mark.parametrize("ir_version", [3, 8])
def test_before_ir_4_a_new_initializer_is_an_input_as_well(ir_version: int) -> None:
    start = subject(
        f"""<ir_version: {ir_version}, opset_import: ["": 9]>
        g (float[2,3] x) => (float[6] y) {{
            [six] shape = Constant <value = int64[1] {{6}}> ()
            [reshape] y = Reshape(x, shape)
        }}""",
        x=X,
    )
    net = apply(constants, start)
    assert names(net) == ["reshape"]
    assert list(net.inputs) == (["x", "shape"] if ir_version == 3 else ["x"])


def test_quantize_and_dequantize_stay_together() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x) => (float[2,3] y)
        <float s = {0.1}, uint8 z = {128}> {
            [abs] a = Abs(x)
            [q] b = QuantizeLinear(a, s, z)
            [dq] c = DequantizeLinear(b, s, z)
            [dq2] d = DequantizeLinear(b, s, z)
            [add] e = Add(c, d)
            [neg] y = Neg(e)
        }""",
        x=X,
    )
    assert names(apply(fewer_nodes, start, has("dq"))) == ["q", "dq", "dq2"]
    bypassed = apply(bypassed_nodes, start, has("add"))
    assert names(bypassed) == ["add"]
    assert bypassed.nodes[0].inputs == ("x", "x")


def test_outputs_are_bisected_with_what_they_depend_on() -> None:
    lines = "\n".join(f"[n{number}] y{number} = Abs(x)" for number in range(32))
    outputs = ", ".join(f"float[2,3] y{number}" for number in range(32))
    start = subject(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => ({outputs}) {{ {lines} }}', x=X
    )
    tried = 0

    def judge(model: onnx.ModelProto, fed: dict[str, Array]) -> bool:
        nonlocal tried
        tried += 1
        return has("n19")(model, fed)

    net = apply(fewer_outputs, start, judge)
    assert names(net) == ["n19"]
    assert tried <= 12


def test_a_node_is_replaced_by_an_input_of_its_shape() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x) => (float[2,2] y) {
            [abs] a = Abs(x)
            [t] b = Transpose <perm = [1, 0]> (a)
            [neg] c = Neg(b)
            [mm] d = MatMul(a, c)
            [out] y = Relu(d)
        }""",
        x=X,
    )
    net = apply(bypassed_nodes, start, has("mm"))
    assert names(net) == ["t", "mm"]
    assert list(net.outputs) == ["d"]


def test_nothing_is_left_of_what_no_node_needs() -> None:
    start = subject(CHAIN, x=X)
    model = onnx.shape_inference.infer_shapes(start.proto())
    model.producer_name, model.doc_string, model.graph.doc_string = "somebody", "secret", "secret"
    model.graph.node[0].doc_string = "secret"
    model.graph.node[1].metadata_props.add(key="path", value="secret")
    model.metadata_props.add(key="author", value="secret")
    model.opset_import.add(domain="ai.onnx.ml", version=3)
    model.graph.node.append(onnx.helper.make_node("Cos", ["a"], ["dead"], name="dead"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(X, "dead weight"))
    net = apply(unused_parts, Subject(model=model.SerializeToString(), inputs=start.inputs))
    left = net.subject()
    assert b"secret" not in left.model
    assert b"somebody" not in left.model
    assert names(net) == ["abs", "neg", "exp", "sin", "add"]
    assert not net.infos
    assert not net.weights
    assert [one.domain for one in left.proto().opset_import] == [""]


def test_attributes_go_that_have_a_default() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[1,1,4,4] x, float[1,1,3,3] w) => (float[1,1,3,3] y) {
            [conv] y = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2], group = 1> (x, w)
        }""".replace("float[1,1,3,3] y", "float[1,1,2,2] y"),
        x=np.ones((1, 1, 4, 4), np.float32),
        w=np.ones((1, 1, 3, 3), np.float32),
    )

    def has_pads(model: onnx.ModelProto, _: Any) -> bool:
        return any(attribute.name == "pads" for attribute in model.graph.node[0].attribute)

    net = apply(default_attributes, start, has_pads)
    assert [one.name for one in net.nodes[0].proto().attribute] == ["pads"]
    (dims,) = [[dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in net.outputs.values()]
    assert dims == [1, 1, 4, 4]


def test_optional_inputs_and_outputs_go() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[1,1,4] x, float[1,1,3] w, float[1] b) => (float[1,1,2] y) {
            [conv] c = Conv(x, w, b)
            [pool] p, i = MaxPool <kernel_shape = [1]> (c)
            [clip] d = Clip(p, low, high)
            [cat] y = Concat <axis = 1> (d)
        }""".replace("Clip(p, low, high)", "Clip(p)"),
        x=np.ones((1, 1, 4), np.float32),
        w=np.ones((1, 1, 3), np.float32),
        b=np.ones(1, np.float32),
    )
    net = apply(fewer_arguments, start)
    assert [node.inputs for node in net.nodes] == [("x", "w"), ("c",), ("p",), ("d",)]
    assert net.nodes[1].outputs == ("p",)
    assert list(net.inputs) == ["x", "w"]


def test_of_any_number_of_inputs_the_least_stay() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x, float[2,3] z) => (float[N,M] y) { [cat] y = Concat <axis = 0> (x, z, x, z) }""",
        x=X,
        z=X,
    )
    net = apply(fewer_arguments, start)
    assert len(net.nodes[0].inputs) == 1


def test_a_loop_keeps_what_ends_it() -> None:
    """Without both of them it would go on for ever, in every trial."""
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x, int64 n) => (float[2,3] y) {
            [loop] y = Loop (n, , x) <body = b (int64 i, bool on, float[2,3] s) => (bool go, float[2,3] t) {
                go = Identity(on) t = Neg(s)
            }>
        }""",
        x=X,
        n=np.array(2, np.int64),
    )
    net = apply(fewer_arguments, start)
    assert net.nodes[0].inputs[0] == "n"


def test_kept_nodes_stay() -> None:
    net = apply(fewer_nodes, subject(CHAIN, x=X), lambda *_: True, keep={"neg", "sin"}.__contains__)
    assert names(net) == ["neg", "sin"]
