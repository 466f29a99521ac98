"""The element types of a model's values before they were widened to float64."""

from __future__ import annotations

from typing import Any

import numpy as np

FLOAT32 = "float32"
KIND_BY_NUMBER = {1: FLOAT32, 10: "float16", 11: "float64", 16: "bfloat16"}  # of TensorProto.DataType
NARROWER_KINDS = ("float32", "float16", "bfloat16")
_SPELLED = {"float": FLOAT32, "float16": "float16", "double": "float64", "bfloat16": "bfloat16"}
_TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype", "output_dtype")


def widened(value: Any) -> Any:
    """Return a value with its floats in float64; other values, and floats narrower than 16 bits, stay."""
    if isinstance(value, list):
        return [widened(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.name in NARROWER_KINDS:
        return value.astype(np.float64)
    return value


def kind_of(value: Any) -> str:
    """Return the type of a value's elements; for a list, that of its first item; empty if there is none."""
    if isinstance(value, list):
        return kind_of(value[0]) if value else ""
    return str(value.dtype.name) if isinstance(value, np.ndarray) else ""


def round_to_type(values: Any, kind: str) -> Any:
    """Return float64 values rounded to the numbers of a narrower type."""
    if kind == "float64":
        return values
    if kind == "bfloat16":
        from onnx import helper

        narrow = helper.tensor_dtype_to_np_dtype(16)
        return values.astype(narrow).astype(np.float64)
    return values.astype(kind).astype(np.float64)


def output_kind(node: Any, schema: Any, index: int, given: list[str]) -> str:
    """Return the type that an output of floats has in the original model.

    ``given`` has the types of its inputs; empty for absent ones.
    """
    for name in _TYPE_ATTRIBUTES:
        if node.has(name) and node.get(name) in KIND_BY_NUMBER:
            return KIND_BY_NUMBER[node.get(name)]
    if schema is not None and schema.outputs:
        formal = schema.outputs[min(index, len(schema.outputs) - 1)]
        if len(formal.types) == 1:
            return _SPELLED.get(next(iter(formal.types))[len("tensor(") : -1], FLOAT32)
        for at, kind in enumerate(given):
            same = schema.inputs[min(at, len(schema.inputs) - 1)].type_str == formal.type_str
            if same and kind in KIND_BY_NUMBER.values():
                return kind
    return next((kind for kind in given if kind in KIND_BY_NUMBER.values()), FLOAT32)
