"""Types and shapes of odd models."""

import random
import re

import numpy as np
import onnx
from onnx import TensorProto, helper

SHAPES: tuple[tuple[int | str, ...], ...] = (
    (), (0,), (1,), (3,), ("n",), (2, 3), (0, 3), ("n", 4), ("n", "m"), (2, 0, 4), (2, 3, 4), ("n", 3, 4),
    (1, 3, 5, 5), ("n", 3, 8, 8), (2, 2, 2, 2, 2), (1,) * 9, (1,) * 33,
)  # fmt: skip
"""Open, empty, of no dimensions, and of more than numpy's older functions take."""

_TENSOR = re.compile(r"tensor\((\w+)\)")
_NUMBERS = {
    "float": TensorProto.FLOAT,
    "double": TensorProto.DOUBLE,
    **{
        name.lower(): number
        for name, number in TensorProto.DataType.items()
        if name not in ("FLOAT", "DOUBLE")
    },
}


def tensor_types(texts: "set[str] | list[str]") -> list[int]:
    """Element types among the types of a schema; sequences and the like are left out."""
    found = (_TENSOR.fullmatch(text) for text in sorted(texts))
    return [_NUMBERS[match[1]] for match in found if match and match[1] in _NUMBERS]


def declared(name: str, text: str, shape: tuple[int | str, ...]) -> onnx.ValueInfoProto | None:
    """A graph input of a schema's type, such as ``seq(tensor(float))``; None for a type that is not known."""
    for begin, wrap in (
        ("seq(", helper.make_sequence_type_proto),
        ("optional(", helper.make_optional_type_proto),
    ):
        if text.startswith(begin):
            inner = declared(name, text[len(begin) : -1], shape)
            return None if inner is None else helper.make_value_info(name, wrap(inner.type))
    numbers = tensor_types([text])
    return helper.make_tensor_value_info(name, numbers[0], shape) if numbers else None


def special_constant(rng: random.Random, name: str) -> onnx.TensorProto:
    """A small constant of zeros, NaN, infinities, or of no elements."""
    values = rng.choice(
        [[np.nan], [np.inf, -np.inf], [0.0], [-0.0, 0.0], [1e-45, 3e38], [], [np.nan, 1.0, np.inf]]
    )
    return onnx.numpy_helper.from_array(np.array(values, np.float32), name)
