"""Weights that a model makes with ConstantOfShape as it runs, as ONNX's light models do to be small.

Quantizers take for weights only what a model brings along.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def generated_bytes(model: Any) -> int:
    """What these weights take once they are there, float32 each."""
    return sum(4 * math.prod(shape) for _, shape in _makers(model))


def with_weights(model: Any) -> Any:
    """The model, changed in place, with these weights among those that it brings along."""
    from onnx import numpy_helper

    made = set()
    for node, shape in _makers(model):
        fill = next((numpy_helper.to_array(one.t) for one in node.attribute), np.zeros(1, np.float32))
        weight = np.full(shape, fill.reshape(-1)[0], fill.dtype)
        made.add(node.output[0])
        model.graph.initializer.append(numpy_helper.from_array(weight, node.output[0]))
    nodes = [node for node in model.graph.node if made.isdisjoint(node.output)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    # Quantizers transpose weights, and what was inferred of them here would contradict the result.
    inferred = [info for info in model.graph.value_info if info.name not in made]
    del model.graph.value_info[:]
    model.graph.value_info.extend(inferred)
    return model


def _makers(model: Any) -> list[tuple[Any, list[int]]]:
    """The nodes, with the shapes that they make."""
    from onnx import numpy_helper

    shapes = {tensor.name: tensor for tensor in model.graph.initializer}
    return [
        (node, numpy_helper.to_array(shapes[node.input[0]]).tolist())
        for node in model.graph.node
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes
    ]
