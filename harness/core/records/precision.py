"""Precisions: the conversions of a model before a provider gets it, and the operators that show them."""

import math

import msgspec

from harness.operators.book import operators_with

AS_IS = "fp32"
"""The value of the axis that leaves models unconverted, whatever their precision."""


class Conversion(msgspec.Struct, frozen=True):
    """A conversion of models to one precision: its result in a few words, and the converter.

    ``computes`` is the computing precision of the result: a key of ``FLOORS`` in
    ``harness.core.comparison.tolerance``. ``most_apart`` is how far two implementations of the result may be
    apart, in multiples of what the precision costs: they have the same weights of few bits, and those of
    integer products the same steps.
    """

    computes: str
    what: str
    by: str
    most_apart: float = math.inf


CONVERSIONS: dict[str, Conversion] = {
    "fp16": Conversion(
        "float16",
        "weights and activations in float16; inputs and outputs keep their types",
        "`onnxruntime.transformers.float16.convert_float_to_float16`",
    ),
    "bf16": Conversion(
        "bfloat16",
        "weights and activations in bfloat16 where ONNX's schema of the operator has that; "
        "inputs and outputs keep their types",
        "the harness: onnxruntime has no converter",
    ),
    "int8-static": Conversion(
        "int8",
        "QDQ: activations uint8 with ranges measured on the model's own inputs, weights uint8, "
        "by channel in models with convolutions",
        "`onnxruntime.quantization`: `quant_pre_process`, `get_qdq_config`, `quantize`",
        most_apart=4.0,
    ),
    "int8-dynamic": Conversion(
        "int8",
        "products by constant weights in integers, activations quantized at run time, weights uint8",
        "`onnxruntime.quantization.quantize_dynamic`",
        most_apart=1.5,
    ),
    "int4-weights": Conversion(
        "int4",
        "constant weights of MatMul in symmetric int4, blocks of 32, behind `DequantizeLinear`",
        "`onnxruntime.quantization.matmul_nbits_quantizer`",
        most_apart=0.25,
    ),
}
"""Precision of the axis -> conversion of the model.

``most_apart`` was measured with the zoo on the CPU EP, OpenVINO, QNN's simulator and WebGPU: at most 1.3 in
static int8; 0.8 in dynamic int8, and 0.5 without detections, of which one more or less counts; 0.08 with int4
weights, where the CPU EP rounds the other factor to int8.
"""

IN_MODEL: dict[str, str] = {name: conversion.computes for name, conversion in CONVERSIONS.items()}
"""Precision of the axis -> computing precision of a converted model."""

COMPUTE_HEAVY = operators_with(lambda row: row.shows_precision)
"""Operators that sum many products: the precision of the arithmetic shows in their results."""

BYTE_PRODUCTS = operators_with(lambda row: row.byte_products)
"""Operators that add products of 8-bit integers, which saturate in the CPU EP on some processors."""

INTEGER_KERNELS = BYTE_PRODUCTS | {"DequantizeLinear"}
"""The same, and the operator of every model whose quantized operators the CPU EP fuses into them."""

PRECISION_CASTS = operators_with(lambda row: row.added_by_conversion)
"""Operators that a conversion to another precision adds around those that compute."""


def made_for(precision: str) -> str:
    """Return the precision that a value of the axis converts a model to; ``AS_IS`` if it does not."""
    return precision if precision in IN_MODEL else AS_IS
