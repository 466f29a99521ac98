"""Inputs for a model that comes without any: seeded, so that every machine makes the same."""

import hashlib
import math
from typing import Any

import numpy as np

from harness.core.value import BITS, DTYPES, STRING, Array, Map, Sequence, Tensor, Value
from harness.corpus.port import Port, ValueType

UNKNOWN_SIZE = 1
"""Stands for every dimension that neither the model nor the matrix gives a size; a batch of one is sane."""

LIMIT_BYTES = 4 << 30
"""A generated tensor above this is taken for a mistake in a size."""

WORDS = ("alpha", "beta", "gamma", "delta", "a longer text", "")

_FULL_RANGE = {"uint8", "int8", "uint16", "int16", "int4", "uint4", "int2", "uint2"}
"""Integers that carry quantized data; the wider ones are indices, shapes and lengths more often than not."""


def generate(model: str, port: Port, seed: int) -> Value:
    """One input.

    Floating types are standard normal, rounded to the type (``float8e8m0``, which has no sign, holds 0.25
    to 4); integers of at most 16 bits take their whole range; int32, uint32, int64 and uint64 are 0 or 1,
    which is within range where they index an axis of two or more; bool is either; strings are a few words.
    A sequence or an optional holds one element, a map one key.

    Args:
        model: The model's name in its suite; part of the seed, as is the port's name.
        port: What to make.
        seed: Another seed, another input.

    Raises:
        ValueError: The declared type says too little (no rank), or asks for too much.
    """
    digest = hashlib.sha256(f"{model}\0{port.name}\0{seed}".encode()).digest()
    return _value(port.type, np.random.default_rng(list(digest)))


def _value(declared: ValueType, random: np.random.Generator) -> Value:
    if declared.kind == "tensor":
        return _tensor(declared, random)
    item = declared.item or ValueType(kind="tensor")
    if declared.kind == "sequence":
        return Sequence(items=(_value(item, random),))
    if declared.kind == "optional":
        return _value(item, random)
    if item.kind != "tensor":
        raise ValueError(f"a map with {item.kind} values cannot be generated; provide a test_data_set_0")
    one = (1,)
    return Map(keys=_elements(declared.dtype, one, random), values=_elements(item.dtype, one, random))


def _tensor(declared: ValueType, random: np.random.Generator) -> Tensor:
    if declared.shape is None:
        raise ValueError("no shape is declared and there is no test data; provide a test_data_set_0")
    shape = tuple(UNKNOWN_SIZE if size is None else size for size in declared.shape)
    # Numbers are drawn with 8 bytes each whatever the type.
    if math.prod(shape) * 8 > LIMIT_BYTES:
        raise ValueError(
            f"generated data of shape {list(shape)} would be too large; provide a test_data_set_0"
        )
    return _elements(declared.dtype, shape, random)


def _elements(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> Tensor:
    if dtype == STRING:
        return Tensor(dtype=dtype, array=np.array(WORDS, dtype=object)[random.integers(0, len(WORDS), shape)])
    if dtype not in DTYPES:
        raise ValueError(f"data of element type {dtype or 'unknown'} cannot be generated")
    drawn: Any = _draw(dtype, shape, random)
    return Tensor(dtype=dtype, array=np.asarray(drawn).astype(DTYPES[dtype]).reshape(shape))


def _draw(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if dtype in _FULL_RANGE:
        bits = BITS.get(dtype, 8 * DTYPES[dtype].itemsize)
        low = 0 if dtype.startswith("u") else -(1 << (bits - 1))
        return random.integers(low, low + (1 << bits), shape)
    if dtype == "bool" or "int" in dtype:
        return random.integers(0, 2, shape)
    if dtype == "float8e8m0":
        return 2.0 ** random.integers(-2, 3, shape)
    drawn = random.standard_normal(shape)
    if dtype.startswith("complex"):
        return drawn + 1j * random.standard_normal(shape)
    return np.asarray(drawn)
