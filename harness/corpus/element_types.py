"""ONNX's element types by number, readable without importing onnx."""

ELEMENT_TYPES: dict[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
    27: "float6e2m3",
    28: "float6e3m2",
}
"""``TensorProto.DataType`` -> the name used throughout; ``TensorProto.UNDEFINED`` (0) has none."""

NUMBERS: dict[str, int] = {name: number for number, name in ELEMENT_TYPES.items()}


def is_floating(dtype: str) -> bool:
    """True for the real floating-point types, the narrow ones included; complex types do not count."""
    return "float" in dtype
