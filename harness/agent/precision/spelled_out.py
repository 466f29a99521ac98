"""A converted model in which every rounding is spelled out, so that the CPU EP makes it.

The CPU EP has hardly a kernel for float16, and none for bfloat16: it computes a float16 model in float32 and
leaves out the Casts between, so that its answer shows nothing of the precision. Casts that the model itself
has it keeps. So here each operator is one of float32, and what it reads and makes goes through the narrow
type.
"""

from __future__ import annotations

from typing import Any

from harness.agent.precision.tensor_types import tensor_types

FLOAT = 1  # TensorProto.FLOAT
UNTOUCHED = ("Cast", "Constant")


def spelled_out(model: Any, number: int) -> Any:
    """A copy of a model that computes in a narrow floating type, with Casts around its operators.

    Operators with bodies (If, Loop, Scan) stay as they are.

    Args:
        model: As a converter made it.
        number: The narrow type, as ``onnx.TensorProto.DataType`` numbers it.
    """
    from onnx import helper, shape_inference

    model = shape_inference.infer_shapes(model)
    graph = model.graph
    narrow = {name for name, kind in tensor_types(graph).items() if kind == number}
    nodes: list[Any] = []
    for index, node in enumerate(graph.node):
        bodies = any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)
        if bodies or node.op_type in UNTOUCHED:
            nodes.append(node)
            continue
        after = []
        for place, name in enumerate(node.input):
            if name in narrow:
                node.input[place] = "%s/wide-%d-%d" % (name, index, place)
                nodes.append(helper.make_node("Cast", [name], [node.input[place]], to=FLOAT))
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
