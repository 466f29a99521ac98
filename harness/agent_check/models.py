"""Small models whose answers need no runtime to be known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT
NUMBERS = {name.lower(): number for name, number in TensorProto.DataType.items()}
"""Element type of ``harness.core.value`` -> its number in ONNX."""
NUMBERS |= {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}

# Opset and IR version with which ONNX introduced an element type; others are older than 13 and 7.
_SINCE = {
    **dict.fromkeys(("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"), (19, 9)),
    **dict.fromkeys(("int4", "uint4"), (21, 10)),
    "float4e2m1": (23, 11),
    "float8e8m0": (24, 12),
    **dict.fromkeys(("int2", "uint2"), (25, 13)),
}

PACKED = ("int4", "uint4", "int2", "uint2")


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    version: tuple[int, int] = (13, 7),
) -> onnx.ModelProto:
    """Return a model; ``version`` is its opset and its IR version."""
    opset, ir_version = version
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    domains = {node.domain for node in nodes if node.domain}
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 3) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)


def tensor(name: str, dtype: str = "float32", shape: Sequence[Any] | None = ("N",)) -> onnx.ValueInfoProto:
    """Return the declaration of a tensor; without a shape its rank is open."""
    return helper.make_tensor_value_info(name, NUMBERS[dtype], shape)


def identity(dtype: str) -> onnx.ModelProto:
    """Return y = x, for any shape; runtimes have packed integers in quantization only."""
    x, y = (tensor(name, dtype, None) for name in "xy")
    if dtype in PACKED:
        one = helper.make_tensor("one", FLOAT, [], [1.0])
        zero = helper.make_tensor("zero", NUMBERS[dtype], [], [0])
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "one"], ["t"]),
            helper.make_node("QuantizeLinear", ["t", "one", "zero"], ["y"]),
        ]
        return model(nodes, [x], [y], [one, zero], version=_SINCE[dtype])
    return model([helper.make_node("Identity", ["x"], ["y"])], [x], [y], version=_SINCE.get(dtype, (13, 7)))


def negated() -> onnx.ModelProto:
    """Return y = Abs(Neg(x)): two nodes, neither of which can be left out."""
    nodes = [helper.make_node("Neg", ["x"], ["t"]), helper.make_node("Sqrt", ["a"], ["y"])]
    nodes.insert(1, helper.make_node("Abs", ["t"], ["a"]))
    return model(nodes, [tensor("x", shape=None)], [tensor("y", shape=None)])


def two_outputs() -> onnx.ModelProto:
    """Return b = -x and a = Abs(x), declared in this order."""
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Neg", ["x"], ["b"])]
    return model(nodes, [tensor("x")], [tensor("b"), tensor("a")])


def subtracted() -> onnx.ModelProto:
    """Return y = p - q: inputs that must not be mixed up."""
    return model([helper.make_node("Sub", ["p", "q"], ["y"])], [tensor("p"), tensor("q")], [tensor("y")])


def weighted() -> onnx.ModelProto:
    """Return y = x + w with a weight of four numbers."""
    weight = helper.make_tensor("w", FLOAT, [4], [1.0, 2.0, 3.0, 4.0])
    return model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x")], [tensor("y")], [weight])


def constant() -> onnx.ModelProto:
    """Return y = [1, 2] without an input."""
    value = helper.make_tensor("v", FLOAT, [2], [1.0, 2.0])
    return model([helper.make_node("Constant", [], ["y"], value=value)], [], [tensor("y")])


def odd_names(name: str) -> onnx.ModelProto:
    """Return a model whose input and output have an odd name."""
    node = helper.make_node("Neg", [f"{name}in"], [f"{name}out"])
    return model([node], [tensor(f"{name}in")], [tensor(f"{name}out")])


def unknown_operator() -> onnx.ModelProto:
    """Return a model that no runtime has a kernel for."""
    node = helper.make_node("NoSuchOperatorAnywhere", ["x"], ["y"])
    return model([node], [tensor("x")], [tensor("y")])


def endless() -> onnx.ModelProto:
    """Return a model that counts for hours: a Loop over squares and roots."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Mul", ["v", "v"], ["s"]),
            helper.make_node("Sqrt", ["s"], ["next"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            tensor("v"),
        ],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), tensor("next")],
    )
    count = helper.make_tensor("count", TensorProto.INT64, [], [1 << 40])
    true = helper.make_tensor("true", TensorProto.BOOL, [], [True])
    node = helper.make_node("Loop", ["count", "true", "x"], ["y"], body=body)
    return model([node], [tensor("x")], [tensor("y")], [count, true])


def sequence_out() -> onnx.ModelProto:
    """Return the sequence [x, -x]."""
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("SequenceConstruct", ["x", "n"], ["y"])]
    y = helper.make_tensor_sequence_value_info("y", FLOAT, None)
    return model(nodes, [tensor("x")], [y])


def sequence_in() -> onnx.ModelProto:
    """Return how many tensors a sequence has."""
    s = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [])
    return model([helper.make_node("SequenceLength", ["s"], ["y"])], [s], [y])


def map_out() -> onnx.ModelProto:
    """Return a sequence of maps from 10 and 20 to the two columns of x."""
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[10, 20])
    kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(FLOAT, []))
    y = helper.make_value_info("y", helper.make_sequence_type_proto(kind))
    return model([node], [tensor("x", shape=["N", 2])], [y])


def map_in() -> onnx.ModelProto:
    """Return the numbers of a map for the words a, b and c."""
    vocabulary = ["a", "b", "c"]
    node = helper.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml", string_vocabulary=vocabulary)
    kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(FLOAT, []))
    return model([node], [helper.make_value_info("m", kind)], [tensor("y", shape=[1, 3])])


def optional_in() -> onnx.ModelProto:
    """Return whether an optional tensor is there."""
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    y = helper.make_tensor_value_info("y", TensorProto.BOOL, [])
    node = helper.make_node("OptionalHasElement", ["o"], ["y"])
    return model([node], [helper.make_value_info("o", kind)], [y], version=(15, 8))


def with_external_weights(content: onnx.ModelProto, location: str) -> bytes:
    """Move the weights of a model to a file beside it; return that file's bytes."""
    data = b""
    for weight in content.graph.initializer:
        array = onnx.numpy_helper.to_array(weight)
        raw = np.ascontiguousarray(array).tobytes()
        weight.ClearField("float_data")
        weight.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", len(data)), ("length", len(raw))):
            weight.external_data.add(key=key, value=str(value))
        data += raw
    return data
