"""float16 for weights and activations, and its common ground with bfloat16: nodes and roundings."""

from __future__ import annotations

from typing import Any

from harness.agent.precision.kept import kept_nodes

NOTHING = "no operator of it would compute in float16"
NUMBER = 10  # TensorProto.FLOAT16
FLOAT32_NUMBER = 1  # TensorProto.FLOAT
IDLE = ("Cast", "Constant", "Shape", "Size")  # operators that compute nothing in the type that they read
_UNTOUCHED = ("Cast", "Constant")


def converted(model: Any, feeds: list[dict[str, Any]]) -> Any:  # noqa: ARG001 - nothing is calibrated
    """Return the model as onnxruntime's transformer tools convert it, with its input and output types.

    Nodes that it lists to be kept stay in float32.
    """
    from onnxruntime.transformers import float16

    convert: Any = float16.convert_float_to_float16
    return convert(model, keep_io_types=True, node_block_list=kept_nodes(model) or None)


def narrow_nodes(graph: Any, number: int) -> int:
    """Return how many nodes compute in a type: they read a weight of it, or the output of a Cast to it.

    Every region that computes in another type than the model's inputs begins with such a node. ``number`` is
    the type in ``onnx.TensorProto.DataType``.
    """
    narrow = {tensor.name for tensor in graph.initializer if tensor.data_type == number}
    narrow.update(node.output[0] for node in graph.node if _makes(node, number))
    return sum(node.op_type not in IDLE and not narrow.isdisjoint(node.input) for node in graph.node)


def _makes(node: Any, number: int) -> bool:
    """Return whether a node is a Cast to a type, or a constant of it."""
    return node.op_type in _UNTOUCHED and any(
        attribute.i == number if attribute.name == "to" else attribute.t.data_type == number
        for attribute in node.attribute
        if attribute.name in ("to", "value")
    )


def tensor_types(graph: Any) -> dict[str, int]:
    """Return the element types of tensors by name; 0 for a value that is no tensor, nothing if unknown."""
    known = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for port in (*graph.input, *graph.value_info, *graph.output):
        known[port.name] = port.type.tensor_type.elem_type
    return known


def with_roundings(model: Any, number: int) -> Any:
    """Return a copy of a converted model in which Casts do every rounding, so that the CPU EP also rounds.

    The CPU EP has few kernels for float16, and none for bfloat16. It computes a float16 model in float32 and
    removes the Casts it inserted, so its answer does not show the precision. It keeps the model's own Casts.
    So here each operator computes in float32, and its inputs and outputs are cast to the narrow type and
    back; ``number`` is that type in ``onnx.TensorProto.DataType``. Operators with bodies (If, Loop, Scan)
    stay unchanged.
    """
    from onnx import helper, shape_inference

    model = shape_inference.infer_shapes(model)
    graph = model.graph
    narrow = {name for name, kind in tensor_types(graph).items() if kind == number}
    nodes: list[Any] = []
    for index, node in enumerate(graph.node):
        bodies = any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)
        if bodies or node.op_type in _UNTOUCHED:
            nodes.append(node)
            continue
        after = []
        for place, name in enumerate(node.input):
            if name in narrow:
                node.input[place] = "%s/wide-%d-%d" % (name, index, place)
                nodes.append(helper.make_node("Cast", [name], [node.input[place]], to=FLOAT32_NUMBER))
        nodes.append(node)
        for place, name in enumerate(node.output):
            if name in narrow:
                node.output[place] = "%s/wide" % name
                after.append(helper.make_node("Cast", [node.output[place]], [name], to=number))
        nodes += after
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.value_info[:]
    return model
