"""Integers beyond 2^24 and 2^31: providers that compute in float32 or int32 get them wrong."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.core.values.value import Array
from harness.corpus.corners.corner import CHOICE, Corner, cast, floats, ints, reduction

_WIDE = ints(2**33, -(2**33), 2**33 + 1, 2**62 + 1, -(2**63), 2**63 - 1, 0, -1)
_CLOSE = ints(2**33 + 1, -(2**33), 2**33, 2**62, -(2**63), 2**63 - 2, 1, -1)
"""Different int64 numbers that are equal in float32, and partly in int32."""


def _moved() -> Iterator[Corner]:
    yield Corner("identity_int64_wide", "Identity", (_WIDE,), (_WIDE,))
    unsigned = ints(2**64 - 1, 2**63, 2**33, 0, dtype=np.uint64)
    yield Corner("identity_uint64_wide", "Identity", (unsigned,), (unsigned,))
    narrow = ints(2**31 - 1, -(2**31), 2**24 + 1, dtype=np.int32)
    yield Corner("identity_int32_wide", "Identity", (narrow,), (narrow,))
    table = _WIDE.reshape(4, 2)
    moves: tuple[tuple[str, str, tuple[Array, ...], Array, dict[str, object]], ...] = (
        ("transpose", "Transpose", (table,), table.T, {"perm": [1, 0]}),
        ("concat", "Concat", (_WIDE, _CLOSE), np.concatenate([_WIDE, _CLOSE]), {"axis": 0}),
        ("gather", "Gather", (table, ints(3, 0)), table[[3, 0]], {"axis": 0}),
        ("gather_negative", "Gather", (table, ints(-1, -4)), table[[-1, -4]], {"axis": 0}),
        ("slice", "Slice", (_WIDE, ints(1), ints(2**62)), _WIDE[1:], {}),
        ("slice_backwards", "Slice", (_WIDE, ints(-1), ints(-(2**62)), ints(0), ints(-2)), _WIDE[::-2], {}),
        ("reshape", "Reshape", (_WIDE, ints(2, -1)), _WIDE.reshape(2, 4), {}),
        ("expand", "Expand", (_WIDE, ints(2, 8)), np.broadcast_to(_WIDE, (2, 8)), {}),
        ("tile", "Tile", (_WIDE, ints(2)), np.tile(_WIDE, 2), {}),
    )
    for name, op, inputs, y, attributes in moves:
        constants = () if op == "Concat" else tuple(range(1, len(inputs)))
        yield Corner(f"{name}_int64_wide", op, inputs, (np.ascontiguousarray(y),), attributes, constants)
    y = np.where(CHOICE, _WIDE, _CLOSE)
    yield Corner("where_int64_wide", "Where", (CHOICE, _WIDE, _CLOSE), (y,))
    low = ints(2**33, 7, -5, 2**31, -(2**31) - 1, 2**40 + 3)
    for dtype in (np.int32, np.int16, np.uint8):
        # "Fixed point to fixed point: when out of range, discard higher bits and reinterpret" (Cast).
        yield cast(f"cast_int64_to_{dtype.__name__}", low, dtype)
    big = ints(2**53, 2**53 + 2, 2**33, -(2**24) - 2)
    yield cast("cast_int64_to_float32", big, np.float32)
    yield cast("cast_int64_to_float64", big, np.float64)
    fractions = floats(2.9, -2.9, 0.5, -0.5, 2147483520, -2147483648)
    yield cast("cast_float32_to_int32", fractions, np.int32)
    yield cast("cast_float32_to_int64", floats(8589934592, -8589934592, 16777216), np.int64)


def _computed() -> Iterator[Corner]:
    a, b = ints(2**33, -(2**33), 2**40, 2**24), ints(1, -1, 2**20, 1)
    for op, y in (("Add", a + b), ("Sub", a - b), ("Mul", a * b)):
        yield Corner(f"{op.lower()}_int64_wide", op, (a, b), (y,))
    left, right = ints(2**24, 46341, -46341, dtype=np.int32), ints(1, 46340, 46340, dtype=np.int32)
    for op, y in (("Add", left + right), ("Sub", left - right), ("Mul", left * right)):
        yield Corner(f"{op.lower()}_int32_beyond_float", op, (left, right), (y,))
    some = _WIDE[[0, 1, 2, 6, 7]]
    yield Corner("abs_int64_wide", "Abs", (some,), (np.abs(some),))
    yield Corner("neg_int64_wide", "Neg", (some,), (-some,))
    base, power = ints(3, -3, 2, 10), ints(20, 21, 40, 15)
    yield Corner("pow_int64_wide", "Pow", (base, power), (base**power,))
    ramp = np.arange(2**33, 2**33 + 9, 3)
    limits = tuple(np.array(number) for number in (2**33, 2**33 + 9, 3))
    yield Corner("range_int64_wide", "Range", limits, (ramp,), constants=(0, 1, 2))
    few = _WIDE[:3]
    yield Corner("cumsum_int64_wide", "CumSum", (few, np.array(0)), (np.cumsum(few),), constants=(1,))


def _compared() -> Iterator[Corner]:
    for op, y in (
        ("Equal", _WIDE == _CLOSE),
        ("Less", _WIDE < _CLOSE),
        ("Greater", _WIDE > _CLOSE),
        ("Max", np.maximum(_WIDE, _CLOSE)),
        ("Min", np.minimum(_WIDE, _CLOSE)),
    ):
        yield Corner(f"{op.lower()}_int64_close", op, (_WIDE, _CLOSE), (y,))
    a, b = ints(2**24, 2**24 + 1, -5, dtype=np.int32), ints(2**24 + 1, 2**24, -5, dtype=np.int32)
    yield Corner("equal_int32_close", "Equal", (a, b), (a == b,))
    yield Corner("less_int32_close", "Less", (a, b), (a < b,))
    row = np.array([[2**24, 2**24 + 1, 2**24]], np.int32)
    yield Corner("argmax_int32_close", "ArgMax", (row,), (np.array([[1]]),), {"axis": 1})
    yield Corner("topk_int64_wide", "TopK", (_WIDE, ints(2)), (_WIDE[[5, 3]], ints(5, 3)), constants=(1,))


def _divided() -> Iterator[Corner]:
    # ONNX's integer division truncates, and Mod takes the sign of the divisor as Python does.
    a, b = ints(7, -7, 7, -7, 2**33 + 1), ints(2, 2, -2, -2, 2)
    y = (np.sign(a) * np.sign(b)) * (np.abs(a) // np.abs(b))
    yield Corner("div_int64_truncates", "Div", (a, b), (y,))
    yield Corner("mod_int64_signs", "Mod", (a, b), (a % b,))
    small, divisor = a[:4].astype(np.int32), b[:4].astype(np.int32)
    yield Corner("div_int32_truncates", "Div", (small, divisor), (y[:4].astype(np.int32),))
    yield Corner("mod_int32_signs", "Mod", (small, divisor), (small % divisor,))
    bits, mask = ints(2**33 + 5, -1), ints(2**33 + 3, 2**40)
    yield Corner("bitwiseand_int64_wide", "BitwiseAnd", (bits, mask), (bits & mask,))


def _reduced() -> Iterator[Corner]:
    table = np.array([[2**33, 2**33 + 1], [-(2**40), 2**40 + 7]])
    for op, y in (("ReduceSum", table.sum(1)), ("ReduceMax", table.max(1)), ("ReduceMin", table.min(1))):
        yield reduction("int64_wide", op, table, 1, y)


def _odd() -> Iterator[Corner]:
    """Odd numbers beyond 2^24 and 2^53, which float32 and float64 do not have: a conversion loses a unit.

    Corners of powers of two miss this, since a sum of converted powers of two is right in float64.
    """
    for dtype, limit in ((np.int32, 2**24), (np.int64, 2**53)):
        yield from _odd_operands(f"{np.dtype(dtype).name}_odd", np.dtype(dtype), limit)
    # The sum of 599 products, each of 16 bits, is odd and beyond 2^24.
    a, b = np.full((1, 599), 255, np.uint8), np.full((599, 1), 127, np.int8)
    y = a.astype(np.int32) @ b.astype(np.int32)
    yield Corner("matmulinteger_odd", "MatMulInteger", (a, b), (y,), constants=(1,))
    image, kernel, made = a.reshape(1, 599, 1, 1), b.reshape(1, 599, 1, 1), y.reshape(1, 1, 1, 1)
    yield Corner("convinteger_odd", "ConvInteger", (image, kernel), (made,), constants=(1,))


def _odd_operands(name: str, dtype: np.dtype[Any], limit: int) -> Iterator[Corner]:
    """Yield corners whose operands float64 (int64), or float32 (int32), does not have. Nothing overflows."""
    a = ints(limit + 1, -limit - 3, 3 * limit + 9, limit + 1, dtype=dtype)
    b = ints(2, 5, -3, -7, dtype=dtype)
    quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    for op, y in (("Add", a + b), ("Sub", a - b), ("Mul", a * b), ("Div", quotient), ("Mod", a % b)):
        yield Corner(f"{op.lower()}_{name}", op, (a, b), (y,))
    close = a - ints(1, 1, -1, 0, dtype=dtype)
    for op, y in (
        ("Equal", a == close),
        ("Less", a < close),
        ("LessOrEqual", a <= close),
        ("Greater", a > close),
        ("GreaterOrEqual", a >= close),
        ("Max", np.maximum(a, close)),
        ("Min", np.minimum(a, close)),
    ):
        yield Corner(f"{op.lower()}_{name}", op, (a, close), (y,))
    for op, y in (("Abs", np.abs(a)), ("Neg", -a)):
        yield Corner(f"{op.lower()}_{name}", op, (a,), (y,))
    low, high = np.array(-limit - 1, dtype), np.array(limit + 3, dtype)
    yield Corner(f"clip_{name}", "Clip", (a, low, high), (np.clip(a, low, high),), constants=(1, 2))
    yield Corner(f"cumsum_{name}", "CumSum", (a, np.array(0)), (np.cumsum(a, dtype=dtype),), constants=(1,))
    table = np.stack([a, b])
    for op, y in (
        ("ReduceSum", table.sum(1, dtype)),
        ("ReduceMax", table.max(1)),
        ("ReduceMin", table.min(1)),
    ):
        yield reduction(name, op, table, 1, y)
    factors = np.array([[limit + 1, 3, -5]], dtype)
    yield reduction(name, "ReduceProd", factors, 1, factors.prod(1, dtype))
    threes = np.full((4, 1), 3, dtype)
    yield Corner(f"matmul_{name}", "MatMul", (table, threes), (table @ threes,))


INTEGERS = (_moved, _computed, _compared, _divided, _reduced, _odd)
