"""Inputs for a model that comes without any: seeded, so that every machine makes the same."""

import hashlib
import math
from typing import Any

import numpy as np

from harness.core.value import BITS, DTYPES, STRING, Array, Map, Sequence, Tensor, Value
from harness.corpus.contents import (
    Constant,
    Content,
    Counting,
    Distinct,
    DistinctTuples,
    Indices,
    Pattern,
    Range,
)
from harness.corpus.distinct import distinct, distinct_tuples
from harness.corpus.port import Port, ValueType

UNKNOWN_SIZE = 1
"""Stands for every dimension that neither the model nor the matrix gives a size; a batch of one is sane."""

WORDS = ("alpha", "beta", "gamma", "delta", "a longer text", "")

_FULL_RANGE = {"uint8", "int8", "uint16", "int16", "int4", "uint4", "int2", "uint2"}
"""Integers that carry quantized data; the wider ones are indices, shapes and lengths more often than not."""

REMEDY = "give it a shape or dimensions in [[model]] of the matrix, or provide a test_data_set_0"
"""What helps where the declaration of an input does not say enough."""


def generate(model: str, port: Port, seed: int, content: Content | None = None) -> Value:
    """One input.

    Without a content the type decides. Floating types are standard normal, rounded to the type
    (``float8e8m0``, which has no sign, holds 0.25 to 4); integers of at most 16 bits take their whole range;
    int32, uint32, int64 and uint64 are 0 or 1, which is within range where they index an axis of two or more;
    bool is either; strings are a few words. A sequence or an optional holds one element, a map one key.

    Args:
        model: The model's name in its suite; part of the seed, as is the port's name.
        port: What to make; dimensions without a size become 1.
        seed: Another seed, another input.
        content: What a tensor holds.

    Raises:
        ValueError: The declared type says too little: no rank, no element type.
    """
    digest = hashlib.sha256(f"{model}\0{port.name}\0{seed}".encode()).digest()
    return _value(port.type, np.random.default_rng(list(digest)), content)


def _value(declared: ValueType, random: np.random.Generator, content: Content | None) -> Value:
    if declared.kind == "tensor":
        return _tensor(declared, random, content)
    item = declared.item or ValueType(kind="tensor")
    if declared.kind == "sequence":
        return Sequence(items=(_value(item, random, content),))
    if declared.kind == "optional":
        return _value(item, random, content)
    if item.kind != "tensor":
        raise ValueError(f"a map with {item.kind} values cannot be generated; provide a test_data_set_0")
    one = (1,)
    keys, values = (_elements(dtype, one, random, None) for dtype in (declared.dtype, item.dtype))
    return Map(keys=keys, values=values)


def _tensor(declared: ValueType, random: np.random.Generator, content: Content | None) -> Tensor:
    if declared.shape is None:
        raise ValueError(f"no shape is declared and there is no test data; {REMEDY}")
    shape = tuple(UNKNOWN_SIZE if size is None else size for size in declared.shape)
    return _elements(declared.dtype, shape, random, content)


def _elements(
    dtype: str, shape: tuple[int, ...], random: np.random.Generator, content: Content | None
) -> Tensor:
    if dtype == STRING:
        if isinstance(content, Constant):
            return Tensor(dtype=dtype, array=np.full(shape, content.value, dtype=object))
        # As a list of places: indexed by one place without dimensions, numpy gives a bare str and no array.
        places = np.asarray(random.integers(0, len(WORDS), shape))
        words = np.array(WORDS, dtype=object)[places.reshape(-1)]
        return Tensor(dtype=dtype, array=words.reshape(shape))
    if dtype not in DTYPES:
        raise ValueError(f"data of element type {dtype or 'unknown'} cannot be generated")
    drawn: Any = (
        _draw(dtype, shape, random) if content is None else _draw_content(dtype, shape, random, content)
    )
    return Tensor(dtype=dtype, array=np.asarray(drawn).astype(DTYPES[dtype]).reshape(shape))


def _draw_content(dtype: str, shape: tuple[int, ...], random: np.random.Generator, content: Content) -> Array:
    drawn: Any
    match content:
        case Range(low, high) if "int" in dtype:
            unsigned = np.uint64 if int(high) > np.iinfo(np.int64).max else np.int64
            drawn = random.integers(int(low), int(high), shape, dtype=unsigned)
        case Range(low, high, away):
            drawn = _away_from_zero(np.asarray(random.uniform(low, high, shape)), low, high, away)
        case Indices(rows):
            drawn = random.integers(0, min(rows, _largest_whole(dtype) + 1), shape)
        case Distinct(rows, axis):
            drawn = distinct(rows, axis, shape, random)
        case DistinctTuples(sizes):
            drawn = distinct_tuples(sizes, shape, random)
        case Counting(rows):
            counted = np.arange(shape[-1] if shape else 1) % (rows or np.iinfo(np.int64).max)
            drawn = np.broadcast_to(counted if shape else counted[0], shape)
        case Pattern(values):
            count = math.prod(shape)
            drawn = np.array((*values, *[values[-1]] * count)[:count])
        case Constant(value):
            drawn = np.full(shape, value)
    return np.asarray(drawn)


def _away_from_zero(drawn: Array, low: float, high: float, away: float) -> Array:
    """Values that were drawn from a range, those near zero moved out to a magnitude."""
    if not away:
        return drawn
    upwards = (drawn >= 0) if low < -away else np.True_
    outwards = np.where(upwards if high > away else np.False_, away, -away)
    # As far beyond that magnitude as they were from zero, so that they differ from each other.
    moved = outwards + np.copysign(np.abs(drawn), outwards)
    return np.where(np.abs(drawn) < away, moved, drawn)


def _largest_whole(dtype: str) -> int:
    """The largest number up to which a type holds every whole one; of integers at most that of int64."""
    if "int" in dtype:
        bits = BITS.get(dtype, 8 * DTYPES[dtype].itemsize)
        return int(min(1 << (bits - (not dtype.startswith("u"))), 1 << 62)) - 1
    return {"float64": 1 << 53, "float32": 1 << 24, "float16": 1 << 11}.get(dtype, 1)


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
