"""Inputs for a model without test data: seeded, so that every machine generates the same."""

import hashlib
import math
from typing import Any

import numpy as np

from harness.core.values.value import DTYPES, STRING, Array, Map, Sequence, Tensor, Value
from harness.corpus.inputs import contents
from harness.corpus.inputs.contents import Constant, Content
from harness.corpus.inputs.recipes.recipe_parts import FromRecipe, elements_of
from harness.corpus.inputs.recipes.row_lengths import padding
from harness.corpus.inputs.recipes.table_rows import rows_of_numbers, rows_of_texts
from harness.corpus.model.element_types import limits_of
from harness.corpus.model.port import Port, ValueType

UNKNOWN_SIZE = 1
"""The size of every dimension that neither the model nor the matrix gives a size."""

SAMPLE_WORDS = ("alpha", "beta", "gamma", "delta", "a longer text", "")

_FULL_RANGE = {"uint8", "int8", "uint16", "int16", "int4", "uint4", "int2", "uint2"}
"""Integers that hold quantized data; wider ones are mostly indices, shapes and lengths."""

REMEDY = "give it a shape or dimensions in [[model]] of the matrix, or provide a test_data_set_0"
"""The next step if the declaration of an input is incomplete."""

_MOST_WHOLE = 1 << 53
"""Up to this, a float64 holds each whole number."""

_GOLDEN_RATIO = 0.618
"""Distance of neighbours in a sequence over the range, so that they are in no order."""


def generate(source: str, port: Port, seed: int, content: Content | FromRecipe | None = None) -> Value:
    """Return one input.

    Without a content the element type decides. Floating types are standard normal, rounded to the type
    (``float8e8m0``, which has no sign, is 0.25 to 4); integers of at most 16 bits take their whole range;
    wider ones are 0 or 1, which may index an axis of two or more; bool is either; strings are a few words. A
    sequence or an optional holds one element, a map one key. Dimensions without a size become 1. ``source``,
    a text such as a digest of the model, and the name of the input are part of the seed.

    Raises:
        ValueError: The declaration has no rank or no element type.
    """
    digest = hashlib.sha256(f"{source}\0{port.name}\0{seed}".encode()).digest()
    return _value(port.type, np.random.default_rng(list(digest)), content)


def _value(declared: ValueType, random: np.random.Generator, content: Content | FromRecipe | None) -> Value:
    if declared.kind == "tensor":
        if declared.shape is None:
            raise ValueError(f"no shape is declared and there is no test data; {REMEDY}")
        shape = tuple(UNKNOWN_SIZE if size is None else size for size in declared.shape)
        return _elements(declared.dtype, shape, random, content)
    item = declared.item or ValueType(kind="tensor")
    if declared.kind == "sequence":
        return Sequence(items=(_value(item, random, content),))
    if declared.kind == "optional":
        return _value(item, random, content)
    if item.kind != "tensor":
        raise ValueError(f"a map with {item.kind} values cannot be generated; provide a test_data_set_0")
    keys, values = (_elements(dtype, (1,), random, None) for dtype in (declared.dtype, item.dtype))
    return Map(keys=keys, values=values)


def _elements(
    dtype: str, shape: tuple[int, ...], random: np.random.Generator, content: Content | FromRecipe | None
) -> Tensor:
    if dtype == STRING:
        if isinstance(content, Constant):
            return Tensor(dtype=dtype, array=np.full(shape, content.value, dtype=object))
        if isinstance(content, contents.TableRows):
            return Tensor(dtype=dtype, array=rows_of_texts(content, shape, random))
        # A list of positions: for a position without dimensions, numpy returns a str instead of an array.
        places = np.asarray(random.integers(0, len(SAMPLE_WORDS), shape))
        words = np.array(SAMPLE_WORDS, dtype=object)[places.reshape(-1)]
        return Tensor(dtype=dtype, array=words.reshape(shape))
    if dtype not in DTYPES:
        raise ValueError(f"data of element type {dtype or 'unknown'} cannot be generated")
    if isinstance(content, FromRecipe):
        drawn = elements_of(content, dtype, shape, random)
    elif isinstance(content, contents.TableRows):
        drawn = _held(dtype, rows_of_numbers(content, shape, random))
    elif content is None:
        drawn = _draw_plain(dtype, shape, random)
    else:
        drawn = _draw(dtype, shape, random, content)
    return Tensor(dtype=dtype, array=np.asarray(drawn).astype(DTYPES[dtype]).reshape(shape))


def _draw(dtype: str, shape: tuple[int, ...], random: np.random.Generator, content: Content) -> Array:
    drawn: Any
    match content:
        case contents.Range(low, high) if "int" in dtype:
            unsigned = np.uint64 if int(high) > np.iinfo(np.int64).max else np.int64
            drawn = random.integers(int(low), int(high), shape, dtype=unsigned)
        case contents.Range(low, high, away):
            drawn = _away_from_zero(np.asarray(random.uniform(low, high, shape)), low, high, away)
        case contents.Indices(rows):
            drawn = random.integers(0, min(rows, _largest_whole(dtype) + 1), shape)
        case contents.Distinct(rows, axis):
            drawn = _distinct(rows, axis, shape, random)
        case contents.DistinctTuples(sizes):
            drawn = _distinct_tuples(sizes, shape, random)
        case contents.Counting(rows):
            counted = np.arange(shape[-1] if shape else 1) % (rows or np.iinfo(np.int64).max)
            drawn = np.broadcast_to(counted if shape else counted[0], shape)
        case contents.Pattern(values):
            first = np.array(values)
            drawn = np.full(math.prod(shape), first[-1])
            drawn[: len(first)] = first[: drawn.size]
        case contents.Padded(counts, hidden):
            drawn = np.where(padding(shape), hidden, counts)
        case Constant(value):
            drawn = np.full(shape, value)
    return np.asarray(drawn)


def _held(dtype: str, drawn: Array) -> Array:
    """Return numbers that a type holds: whole ones for integers."""
    if "int" not in dtype:
        return drawn
    low, high = limits_of(dtype)
    whole = np.rint(np.nan_to_num(drawn))
    return np.asarray(np.clip(whole, low, min(high, _MOST_WHOLE)).astype(np.int64))


def _away_from_zero(drawn: Array, low: float, high: float, away: float) -> Array:
    """Return values from a range; values near zero are moved away to a magnitude."""
    if not away:
        return drawn
    upwards = (drawn >= 0) if low < -away else np.True_
    outwards = np.where(upwards if high > away else np.False_, away, -away)
    # They keep their distance from zero beyond that magnitude, so that they still differ.
    moved = outwards + np.copysign(np.abs(drawn), outwards)
    return np.where(np.abs(drawn) < away, moved, drawn)


def _largest_whole(dtype: str) -> int:
    """Return the number up to which a type holds every whole number; for integers at most half of int64's."""
    if "int" in dtype:
        return min(limits_of(dtype)[1], (1 << 62) - 1)
    return {"float64": 1 << 53, "float32": 1 << 24, "float16": 1 << 11}.get(dtype, 1)


def _draw_plain(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if dtype in _FULL_RANGE:
        low, high = limits_of(dtype)
        return random.integers(low, high + 1, shape)
    if dtype == "bool" or "int" in dtype:
        return random.integers(0, 2, shape)
    if dtype == "float8e8m0":
        return 2.0 ** random.integers(-2, 3, shape)
    drawn = random.standard_normal(shape)
    if dtype.startswith("complex"):
        return drawn + 1j * random.standard_normal(shape)
    return np.asarray(drawn)


def _distinct(rows: int, axis: int, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Return whole numbers from 0 to below ``rows``, different along an axis if there are enough rows."""
    if not shape or not -len(shape) <= axis < len(shape):
        return random.integers(0, rows, shape)
    others = tuple(1 if at == axis % len(shape) else size for at, size in enumerate(shape))
    along = tuple(size if at == axis % len(shape) else 1 for at, size in enumerate(shape))
    first = random.integers(0, rows, others)
    return np.asarray((first + _steps(shape[axis], rows).reshape(along)) % rows)


def _distinct_tuples(sizes: tuple[int, ...], shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Return index tuples along the last axis of a shape, into axes of these sizes, different if possible.

    Sizes beyond the length of the tuples belong to axes that are not indexed. With too few sizes, all are 0.
    """
    if not shape or not 0 < shape[-1] <= len(sizes):
        return np.zeros(shape, np.int64)
    sizes = sizes[: shape[-1]]
    cells = math.prod(sizes)
    flat = (random.integers(0, cells) + _steps(math.prod(shape[:-1]), cells)) % cells
    return np.stack(np.unravel_index(flat, sizes), axis=-1).reshape(shape)


def _steps(count: int, cells: int) -> Array:
    """Return multiples of a number coprime to ``cells``: each cell comes once."""
    start = int(cells * _GOLDEN_RATIO) + 1
    step = next(one for one in range(start, 2 * cells + 2) if math.gcd(one, cells) == 1)
    return step * np.arange(count, dtype=np.int64)
