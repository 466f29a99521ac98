"""Precisions that a model is converted to before any provider sees it."""

import msgspec

AS_IS = "fp32"
"""The value of the axis that leaves models as they come, whatever precision that is."""


class InModel(msgspec.Struct, frozen=True):
    """One precision on the model's side.

    Attributes:
        computes: What a converted model computes in: a key of ``FLOORS`` in ``harness.core.tolerance``.
        what: What becomes of the model, in a few words.
        by: What converts it.
    """

    computes: str
    what: str
    by: str


CONVERSIONS: dict[str, InModel] = {
    "fp16": InModel(
        "float16",
        "weights and activations in float16; inputs and outputs keep their types",
        "`onnxruntime.transformers.float16.convert_float_to_float16`",
    ),
    "bf16": InModel(
        "bfloat16",
        "weights and activations in bfloat16 where ONNX's schema of the operator has that; "
        "inputs and outputs keep their types",
        "the harness: onnxruntime has no converter",
    ),
    "int8-static": InModel(
        "int8",
        "QDQ: activations uint8 with ranges measured on the model's own inputs, weights uint8, "
        "by channel in models with convolutions",
        "`onnxruntime.quantization`: `quant_pre_process`, `get_qdq_config`, `quantize`",
    ),
    "int8-dynamic": InModel(
        "int8",
        "products by constant weights in integers, activations quantized at run time, weights uint8",
        "`onnxruntime.quantization.quantize_dynamic`",
    ),
    "int4-weights": InModel(
        "int4",
        "constant weights of MatMul in symmetric int4, blocks of 32, behind `DequantizeLinear`",
        "`onnxruntime.quantization.matmul_nbits_quantizer`",
    ),
}
"""Precision of the axis -> what it makes of a model."""

IN_MODEL: dict[str, str] = {name: conversion.computes for name, conversion in CONVERSIONS.items()}
"""Precision of the axis -> what a model converted to it computes in: a key of ``FLOORS`` in ``tolerance``."""


def made_for(precision: str) -> str:
    """What a model is converted to for a value of the axis; ``AS_IS`` where that is the provider's affair."""
    return precision if precision in IN_MODEL else AS_IS
