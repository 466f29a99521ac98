"""ONNX's element types by number, readable without importing onnx."""

import re

_NAMES = """
float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 uint32 uint64 complex64 complex128
bfloat16 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz uint4 int4 float4e2m1 float8e8m0 uint2 int2
float6e2m3 float6e3m2
"""

ELEMENT_TYPES: dict[int, str] = dict(enumerate(_NAMES.split(), start=1))
"""``TensorProto.DataType`` -> the name used throughout; ``TensorProto.UNDEFINED`` (0) has none."""

NUMBERS: dict[str, int] = {name: number for number, name in ELEMENT_TYPES.items()}


NARROWER = frozenset({"float32", "float16", "bfloat16"})
"""The types that become float64 in a model that shows the exact answer."""


def is_floating(dtype: str) -> bool:
    """Return whether a type is a real floating-point type, narrow ones included."""
    return "float" in dtype


def limits_of(dtype: str) -> tuple[int, int]:
    """Return the least and the greatest number of an integer type."""
    bits = int(re.sub(r"\D", "", dtype))
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
