"""Four bits for the constant weights of MatMul, in blocks, as language models use them."""

from __future__ import annotations

from typing import Any

from harness.agent.precision.weights import at_least

NOTHING = "it has no MatMul with a constant weight of two dimensions"
OPSET = 21  # the first with int4, and with blocks in DequantizeLinear
IR_VERSION = 10  # the first with int4
BLOCK = 32  # weights along the sum that share a scale
INT4, UINT4 = 22, 21  # TensorProto's numbers


def converted(model: Any, feeds: list[dict[str, Any]]) -> Any:  # noqa: ARG001 - nothing is calibrated
    """Return the model with symmetric int4 weights and DequantizeLinear, which a provider may fuse."""
    from onnxruntime.quantization import matmul_nbits_quantizer
    from onnxruntime.quantization.quant_utils import QuantFormat

    raised = at_least(model, OPSET)
    recipe = matmul_nbits_quantizer.DefaultWeightOnlyQuantConfig(
        block_size=BLOCK, is_symmetric=True, quant_format=QuantFormat.QDQ, op_types_to_quantize=("MatMul",)
    )
    quantizer: Any = matmul_nbits_quantizer.MatMulNBitsQuantizer(raised, algo_config=recipe)
    quantizer.process()
    made = quantizer.model.model
    made.ir_version = max(made.ir_version, IR_VERSION)
    return made


def reduced_nodes(model: Any) -> int:
    """Return how many nodes read a weight of four bits."""
    narrow = {tensor.name for tensor in model.graph.initializer if tensor.data_type in (INT4, UINT4)}
    return sum(
        node.op_type == "DequantizeLinear" and not narrow.isdisjoint(node.input) for node in model.graph.node
    )
