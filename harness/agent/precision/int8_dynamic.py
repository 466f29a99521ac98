"""Dynamic quantization: eight bits for weights, and for activations with ranges measured at run time."""

from __future__ import annotations

import os
from typing import Any

from harness.agent.precision.weights import (
    LARGEST_WEIGHT,
    TOO_LARGE,
    at_least,
    generated_bytes,
    with_constant_weights,
)
from harness.agent.system import scratch_folder
from harness.agent.target_errors import DoesNotApplyError

NOTHING = "it has no operator with constant weights that dynamic quantization takes"
OPSET = 13
INTEGER = ("MatMulInteger", "ConvInteger", "DynamicQuantizeLSTM", "QAttention", "DequantizeLinear")


def converted(model: Any, feeds: list[dict[str, Any]]) -> Any:  # noqa: ARG001 - nothing is calibrated
    """Return the model with its products with constant weights computed in integers.

    Weights are uint8: products of uint8 and int8 saturate at 16 bits on processors with AVX2 only, so the CPU
    EP's results would depend on the machine.
    """
    import onnx
    from onnxruntime.quantization.quant_utils import QuantType
    from onnxruntime.quantization.quantize import quantize_dynamic

    if generated_bytes(model) > LARGEST_WEIGHT:
        raise DoesNotApplyError(TOO_LARGE)
    with scratch_folder() as folder:
        path = os.path.join(folder, "made.onnx")
        raised = with_constant_weights(at_least(model, OPSET))
        quantize_dynamic(raised, path, weight_type=QuantType.QUInt8)
        return onnx.load(path)


def reduced_nodes(model: Any) -> int:
    """Return how many nodes read integers from quantization."""
    return sum(node.op_type in INTEGER for node in model.graph.node)
