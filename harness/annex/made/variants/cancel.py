"""Nodes that return their input: pairs that cancel, neutral operands, a tensor that is read twice."""

import math

import numpy as np

from harness.annex.made.variants.draft import NewNodes, Type, factored, inverse
from harness.annex.made.variants.transformation import MOVABLE, NUMERIC, Transformation, pair
from harness.corpus.model.element_types import NUMBERS

_MOST_AXES = 5
"""Rank up to which an axis is added; runtimes support few more than six."""

_MOST_ELEMENTS = 1 << 16
"""Elements up to which a tensor is copied as a whole."""

_MOST_ROWS = 64
"""Length of an axis up to which it is permuted by a table."""

_BLOCK = 2


def negated_twice(part: NewNodes, x: str, _: Type) -> str:
    """Flip the sign twice: exact, also for zeros and infinities; the least integer stays unchanged."""
    return part.op("Neg", part.op("Neg", x))


def inverted_twice(part: NewNodes, x: str, _: Type) -> str:
    """Invert a flag twice."""
    return part.op("Not", part.op("Not", x))


def transposed(part: NewNodes, x: str, kind: Type) -> str:
    """Transpose by a permutation and by its inverse: elements only move, and back to their place."""
    if kind.rank < 2:  # noqa: PLR2004 - one axis has one order
        return ""
    order = part.draft.random.order(kind.rank)
    return part.op("Transpose", part.op("Transpose", x, perm=order), perm=inverse(order))


def reshaped(part: NewNodes, x: str, kind: Type) -> str:
    """Reshape to other sizes and back: the order of elements stays."""
    sizes = kind.sizes
    if sizes is None:
        return ""
    other = factored(part.draft.random, math.prod(sizes))
    return part.op("Reshape", part.op("Reshape", x, part.ints(*other)), part.ints(*sizes))


def unsqueezed(part: NewNodes, x: str, kind: Type) -> str:
    """Add an axis of size 1 and remove it."""
    if kind.rank > _MOST_AXES:
        return ""
    axis = part.ints(part.draft.random.below(kind.rank + 1))
    return part.op("Squeeze", part.op("Unsqueeze", x, axis), axis)


def padded(part: NewNodes, x: str, kind: Type) -> str:
    """Pad along an axis with zeros, and cut these off: the original elements remain."""
    sizes = kind.sizes
    if not kind.rank or sizes is None or kind.dtype == "float16":
        return ""
    axis = part.draft.random.below(kind.rank)
    before, after = part.draft.random.below(3), part.draft.random.between(1, 2)
    pads = [0] * (2 * kind.rank)
    pads[axis], pads[kind.rank + axis] = before, after
    wide = part.op("Pad", x, part.ints(*pads))
    return part.slice(wide, axis, before, before + sizes[axis])


def doubled(part: NewNodes, x: str, kind: Type) -> str:
    """Concatenate a tensor with itself, and keep one half."""
    sizes = kind.sizes
    if not kind.rank or sizes is None or math.prod(sizes) > _MOST_ELEMENTS:
        return ""
    axis = part.draft.random.below(kind.rank)
    halves = part.split(part.op("Concat", x, x, axis=axis), axis, (sizes[axis], sizes[axis]))
    return part.draft.random.pick(halves)


def reversed_twice(part: NewNodes, x: str, kind: Type) -> str:
    """Read an axis backwards, twice."""
    if not kind.rank or kind.sizes is None:
        return ""
    axis = part.draft.random.below(kind.rank)
    last = np.iinfo(np.int32).max
    return part.slice(part.slice(x, axis, -1, -last, -1), axis, -1, -last, -1)


def permuted(part: NewNodes, x: str, kind: Type) -> str:
    """Gather an axis by a permutation and by its inverse."""
    sizes = kind.sizes
    if not kind.rank or sizes is None:
        return ""
    axis = part.draft.random.below(kind.rank)
    if not 1 < sizes[axis] <= _MOST_ROWS:
        return ""
    order = part.draft.random.order(sizes[axis])
    there = part.op("Gather", x, part.ints(*order), axis=axis)
    return part.op("Gather", there, part.ints(*inverse(order)), axis=axis)


def expanded(part: NewNodes, x: str, kind: Type) -> str:
    """Repeat a tensor along a new first axis, and take one of its copies."""
    sizes = kind.sizes
    if (
        kind.rank > _MOST_AXES
        or sizes is None
        or math.prod(sizes) > _MOST_ELEMENTS
        or kind.dtype == "float16"
    ):
        return ""
    count = part.draft.random.between(2, 4)
    copies = part.op("Expand", x, part.ints(count, *[1] * kind.rank))
    index = part.constant(np.array(part.draft.random.below(count)))
    return part.op("Gather", copies, index, axis=0)


def regrouped(part: NewNodes, x: str, kind: Type) -> str:
    """Move blocks of pixels into channels and back: DepthToSpace (DCR) undoes SpaceToDepth by their texts."""
    sizes = kind.sizes
    if sizes is None or kind.rank != 4 or sizes[2] % _BLOCK or sizes[3] % _BLOCK:  # noqa: PLR2004 - images
        return ""
    deep = part.op("SpaceToDepth", x, blocksize=_BLOCK)
    return part.op("DepthToSpace", deep, blocksize=_BLOCK, mode="DCR")


def chosen(part: NewNodes, x: str, kind: Type) -> str:
    """Choose each element from the tensor or from the tensor itself: the same one."""
    mask = np.full([1] * kind.rank, bool(part.draft.random.below(2)))
    return part.op("Where", part.constant(mask), x, x)


def most_of_both(part: NewNodes, x: str, _: Type) -> str:
    """Take the greater or the lesser of a number and itself; both return NaN for NaN."""
    return part.op(part.draft.random.pick(["Max", "Min"]), x, x)


def both(part: NewNodes, x: str, _: Type) -> str:
    """Combine a flag with itself."""
    return part.op(part.draft.random.pick(["And", "Or"]), x, x)


def neutral(part: NewNodes, x: str, kind: Type) -> str:
    """Subtract 0, multiply or divide by 1: exact in IEEE 754. -0 stays -0, which + 0 would change."""
    op_type, value = part.draft.random.pick([("Sub", 0), ("Mul", 1), ("Div", 1)])
    sizes = part.draft.random.pick([(), (1,) * kind.rank])
    return part.op(op_type, x, part.constant(np.full(sizes, value, kind.dtype)))


def halved(part: NewNodes, x: str, kind: Type) -> str:
    """Multiply by 1/2 and by 2: exact except for denormals, which lose their last bit."""
    half, two = (part.constant(np.array(value, kind.dtype)) for value in (0.5, 2))
    return part.op("Mul", part.op("Mul", x, half), two)


_WIDER: dict[str, tuple[str, ...]] = {
    "float32": ("float64",),
    "float16": ("float32", "float64"),
    "int32": ("int64", "float64"),
    "int8": ("int16", "int32", "float32", "float16"),
    "uint8": ("int32", "uint16", "float32", "float16"),
    "bool": ("uint8", "int32", "int64", "float32"),
}
"""Type -> types that hold all of its values: a float holds the whole numbers up to 2 ** (its precision)."""


def cast_up(part: NewNodes, x: str, kind: Type) -> str:
    """Cast to a wider type and back: each value has an equal one in the wider type."""
    wider = part.draft.random.pick(_WIDER[kind.dtype])
    return part.op("Cast", part.op("Cast", x, to=NUMBERS[wider]), to=NUMBERS[kind.dtype])


_COMMON = MOVABLE - {"bool", "float16"}

CANCELLING: tuple[Transformation, ...] = (
    pair("negated twice", negated_twice, NUMERIC | {"float64"}),
    pair("inverted twice", inverted_twice, {"bool"}),
    pair("transposed", transposed, MOVABLE),
    pair("reshaped", reshaped, MOVABLE),
    pair("unsqueezed", unsqueezed, MOVABLE),
    pair("padded", padded, _COMMON),
    pair("doubled", doubled, MOVABLE),
    pair("reversed twice", reversed_twice, _COMMON),
    pair("permuted", permuted, MOVABLE),
    pair("expanded", expanded, MOVABLE),
    pair("regrouped", regrouped, {"float32"}),
    pair("chosen", chosen, NUMERIC | {"uint8"}),
    pair("most of both", most_of_both, NUMERIC | {"float64"}),
    pair("both", both, {"bool"}),
    pair("neutral", neutral, NUMERIC | {"float64"}),
    pair("halved", halved, {"float32"}, exact=False),
    pair("cast up and down", cast_up, _WIDER),
)
