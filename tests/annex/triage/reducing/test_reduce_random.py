"""Reductions of random graphs: whatever is asked for, the result has it, is valid, and is the end."""

from typing import Any

import numpy as np
import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.annex.triage.net import load
from harness.annex.triage.net_size import is_smaller
from harness.annex.triage.subject import Subject
from harness.core.values.value import Tensor
from tests.annex.triage.reducing.reductions import reduced

UNARY = ("Abs", "Sin", "Neg", "Identity", "Transpose", "Tanh")
BINARY = ("Add", "Mul", "MatMul")


@st.composite
def graphs(draw: st.DrawFn) -> Subject:
    """Square matrices, so that any operator takes any tensor; branches, constants and several outputs."""
    size = draw(st.integers(2, 3))
    tensors = ["x", "w"]
    nodes: list[onnx.NodeProto] = []
    for number in range(draw(st.integers(1, 14))):
        made = f"t{number}"
        kind = draw(st.sampled_from(("unary", "binary", "if", "constant")))
        first = draw(st.sampled_from(tensors))
        if kind == "unary":
            nodes.append(onnx.helper.make_node(draw(st.sampled_from(UNARY)), [first], [made]))
        elif kind == "binary":
            second = draw(st.sampled_from(tensors))
            nodes.append(onnx.helper.make_node(draw(st.sampled_from(BINARY)), [first, second], [made]))
        elif kind == "if":
            nodes.append(_choice(first, made, size))
        else:
            value = onnx.numpy_helper.from_array(np.full((size, size), number, np.float32))
            nodes.append(onnx.helper.make_node("Constant", [], [made], value=value))
        if draw(st.booleans()):
            nodes[-1].name = f"n{number}"
        tensors.append(made)
    outputs = draw(st.lists(st.sampled_from(tensors[2:]), min_size=1, max_size=3, unique=True))
    declared = [onnx.helper.make_tensor_value_info(name, 1, [size, size]) for name in outputs]
    x = onnx.helper.make_tensor_value_info("x", 1, [size, "n"])
    c = onnx.helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
    w = onnx.numpy_helper.from_array(np.arange(size * size, dtype=np.float32).reshape(size, size) - 2, "w")
    graph = onnx.helper.make_graph(nodes, "g", [x, c], declared, [w])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    fed = (
        ("x", Tensor(dtype="float32", array=np.eye(size, dtype=np.float32) / 3)),
        ("c", Tensor(dtype="bool", array=np.array(draw(st.booleans())))),
    )
    return Subject(model=model.SerializeToString(), inputs=fed)


def _choice(first: str, made: str, size: int) -> onnx.NodeProto:
    branches = {}
    for branch, kind in (("then_branch", "Exp"), ("else_branch", "Cos")):
        inner = f"{made}_{branch}"
        info = onnx.helper.make_tensor_value_info(inner, 1, [size, size])
        nodes = [
            onnx.helper.make_node("Neg", [first], [f"{inner}_0"]),
            onnx.helper.make_node(kind, [f"{inner}_0"], [inner]),
        ]
        branches[branch] = onnx.helper.make_graph(nodes, branch, [], [info])
    return onnx.helper.make_node("If", ["c"], [made], **branches)


def operators(model: onnx.ModelProto) -> list[str]:
    found = []
    pending = list(model.graph.node)
    while pending:
        node = pending.pop()
        found.append(node.op_type)
        for attribute in node.attribute:
            pending += attribute.g.node
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(subject=graphs(), data=st.data(), batch=st.integers(1, 3))
def test_the_result_is_interesting_valid_and_final(subject: Subject, data: st.DataObject, batch: int) -> None:
    there = operators(subject.proto())
    wanted = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=2))

    def judge(model: onnx.ModelProto, _: Any) -> bool:
        left = operators(model)
        return all(left.count(kind) >= wanted.count(kind) for kind in wanted)

    if not judge(subject.proto(), {}):
        return
    smallest, tried = reduced(subject, judge, batch=batch)
    model = smallest.proto()
    assert judge(model, {})
    assert smallest is subject or is_smaller(load(smallest), load(subject))
    for one in (smallest, *tried):
        onnx.checker.check_model(one.proto(), full_check=True)
        assert {name for name, _ in one.inputs} == {info.name for info in one.proto().graph.input}
    again, _ = reduced(smallest, judge, batch=batch)
    assert again.proto() == model
    assert again.inputs == smallest.inputs
