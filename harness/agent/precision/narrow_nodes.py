"""Which nodes of a graph compute in a narrow floating type, as far as the graph itself shows it."""

from __future__ import annotations

from typing import Any

IDLE = ("Cast", "Constant", "Shape", "Size")  # operators that compute nothing in the type that they read


def narrow_nodes(graph: Any, number: int) -> int:
    """Nodes that read a weight of a type or what a Cast has made such; those of ``IDLE`` do not count.

    Every region that computes in another type than the model's inputs begins with one of the two.

    Args:
        graph: Of a model.
        number: The element type, as ``onnx.TensorProto.DataType`` numbers it.
    """
    narrow = {tensor.name for tensor in graph.initializer if tensor.data_type == number}
    narrow.update(node.output[0] for node in graph.node if makes(node, number))
    return sum(node.op_type not in IDLE and not narrow.isdisjoint(node.input) for node in graph.node)


def makes(node: Any, number: int) -> bool:
    """Whether a node is a Cast to a type, or a constant of it."""
    if node.op_type not in ("Cast", "Constant"):
        return False
    return any(
        attribute.i == number if attribute.name == "to" else attribute.t.data_type == number
        for attribute in node.attribute
        if attribute.name in ("to", "value")
    )
