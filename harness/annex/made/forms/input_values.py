"""Values of inputs: exact in every type, and none near a discontinuity of its operator.

A general float is a multiple of 1/64 below 4 in magnitude, which even bfloat16 holds. A *fine* one has 20
further bits, which reveal an EP that computes in fewer.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from harness.annex.made.forms.draw import ChoiceStream
from harness.core.values.value import DTYPES, STRING, Array
from harness.corpus.model.element_types import is_floating, limits_of

_STEPS = 64
_FINE_BITS = 18
_WORDS = ("", "a", "B", "abc", "Abc", "x y", "1.5", "été", "漢字", "a,b", "  b ", "0")


class ValueKind(msgspec.Struct, frozen=True, kw_only=True):
    """The values that an input takes, from ``low`` to ``high``.

    Attributes:
        away: The least magnitude.
        apart: Whether all values are at least 1/8 away from each multiple of 1/2, where rounding jumps.
        distinct: Whether all values differ.
        fine: Whether floats of at least 24 bits may use fine values.
    """

    low: float = -4.0
    high: float = 4.0
    away: float = 0.0
    apart: bool = False
    distinct: bool = False
    fine: bool = True


GENERAL = ValueKind()
UNIT = ValueKind(low=-1.0, high=1.0)
POSITIVE_VALUES = ValueKind(low=0.25, high=4.0)
SMALL = ValueKind(low=-0.5, high=0.5)
APART = ValueKind(apart=True, fine=False)
DISTINCT = ValueKind(distinct=True, fine=False)


def values(draw: ChoiceStream, dtype: str, shape: Sequence[int], kind: ValueKind = GENERAL) -> Array:
    """Return an array of an element type, C order."""
    if dtype == STRING:
        words = np.array(_WORDS, object)
        return np.asarray(words[draw.whole(shape, 0, len(_WORDS) - 1)], object).reshape(tuple(shape))
    if dtype == "bool":
        return draw.whole(shape, 0, 1).astype(np.bool_)
    if is_floating(dtype):
        return _floats(draw, dtype, shape, kind)
    if dtype.startswith("complex"):
        real, imaginary = (_floats(draw, "float32", shape, kind) for _ in range(2))
        return np.asarray(real + 1j * imaginary).astype(DTYPES[dtype])
    return _integers(draw, dtype, shape, kind)


def _floats(draw: ChoiceStream, dtype: str, shape: Sequence[int], kind: ValueKind) -> Array:
    if kind.distinct:
        count = int(np.prod(shape, dtype=np.int64))
        found = (draw.permuted(count) - count // 2) / (32.0 if count < _STEPS * 4 else 16.0)
        return found.reshape(tuple(shape)).astype(DTYPES[dtype])
    if kind.apart:
        # Eighths whose distance to each multiple of 1/2 is 1/8 or more.
        halves = draw.whole(shape, round(2 * kind.low), max(round(2 * kind.low), round(2 * kind.high) - 1))
        return np.asarray(halves / 2 + draw.whole(shape, 1, 3) / 8).astype(DTYPES[dtype])
    low, high = round(kind.low * _STEPS), round(kind.high * _STEPS)
    found = draw.whole(shape, low, high) / _STEPS
    if kind.fine and dtype in {"float32", "float64"} and draw.chance(50):
        fine = draw.whole(shape, 0, (1 << _FINE_BITS) - 1) / (_STEPS << _FINE_BITS)
        found = np.where(found >= kind.high, found, found + fine)
    if kind.away:
        near = np.abs(found) < kind.away
        found = np.where(near, np.where(found < 0, -kind.away, kind.away) + found, found)
    with np.errstate(over="ignore"):
        return np.asarray(found).astype(DTYPES[dtype])


def _integers(draw: ChoiceStream, dtype: str, shape: Sequence[int], kind: ValueKind) -> Array:
    least, greatest = limits_of(dtype)
    if kind.distinct:
        count = int(np.prod(shape, dtype=np.int64))
        start = max(least, -(count // 2))
        return (draw.permuted(count) + start).reshape(tuple(shape)).astype(DTYPES[dtype])
    low, high = max(least, int(np.ceil(kind.low))), min(greatest, int(kind.high))
    found = draw.whole(shape, min(low, high), high)
    if kind.away:
        found = np.where(found == 0, 1, found)
    return np.asarray(found).astype(DTYPES[dtype])
