"""Weights that are whole numbers: what is computed of such numbers alone is not rounded."""

import math
from typing import TYPE_CHECKING

import numpy as np

from harness.corpus.element_types import ELEMENT_TYPES, is_floating
from harness.corpus.protos import tensor_value

if TYPE_CHECKING:
    import onnx

ELEMENTS = 64
"""A weight of more elements is data."""

LARGEST = 256
"""Up to here even bfloat16 has all whole numbers."""


def is_whole(weight: "onnx.TensorProto") -> bool:
    """Whether a weight is small, of floats, and made of small whole numbers."""
    dtype = ELEMENT_TYPES.get(weight.data_type, "")
    if math.prod(weight.dims) > ELEMENTS or not is_floating(dtype):
        return False
    if weight.data_location == weight.EXTERNAL:
        return False
    numbers = tensor_value(weight).array.astype(np.float64)
    return bool(np.all((numbers == np.rint(numbers)) & (np.abs(numbers) <= LARGEST)))
