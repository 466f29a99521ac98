"""The form of a model that quantizers need: its size, its opset, and its weights inside."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LARGEST_WEIGHT = 1 << 30  # bytes with its weights: converters hold several copies, and messages end at 2 GiB
TOO_LARGE = "it takes more than the %d MiB that are converted" % (LARGEST_WEIGHT >> 20)
_WEIGHTS_APART = 4  # the first IR version in which weights need not be inputs, too


def at_least(model: Any, opset: int) -> Any:
    """Return the model with ONNX's own domain at this opset or a later one."""
    from onnx import version_converter

    own = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not own or own[0] >= opset:
        return model
    raised = version_converter.convert_version(model, opset)
    raised.ir_version = max(raised.ir_version, model.ir_version, _WEIGHTS_APART)
    # Calibration would need a value for each weight that is an input.
    weights = {tensor.name for tensor in raised.graph.initializer}
    fed = [port for port in raised.graph.input if port.name not in weights]
    del raised.graph.input[:]
    raised.graph.input.extend(fed)
    return raised


def generated_bytes(model: Any) -> int:
    """Return the bytes of the weights that a model generates with ConstantOfShape, if each is float32."""
    return sum(4 * math.prod(shape) for _, shape in _makers(model))


def with_constant_weights(model: Any) -> Any:
    """Return the model, changed in place, with the weights that ConstantOfShape generates as initializers.

    ONNX's light models generate their weights in this way to be small, and quantizers accept only
    initializers as weights.
    """
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
    # Quantizers transpose weights, so the inferred shapes would contradict the result.
    inferred = [info for info in model.graph.value_info if info.name not in made]
    del model.graph.value_info[:]
    model.graph.value_info.extend(inferred)
    return model


def _makers(model: Any) -> list[tuple[Any, list[int]]]:
    """Return the nodes that generate weights, with the shapes of these."""
    from onnx import numpy_helper

    shapes = {tensor.name: tensor for tensor in model.graph.initializer}
    return [
        (node, numpy_helper.to_array(shapes[node.input[0]]).tolist())
        for node in model.graph.node
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes
    ]
