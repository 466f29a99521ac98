"""Productions that move elements: exact in every implementation."""

import math

import numpy as np

from harness.annex.made.grown.elementwise_growth import GROWN_FLOATS, WHOLE_TYPES, constant
from harness.annex.made.grown.growth import GrownTensor, Growth, MisfitError

_MOVED = GROWN_FLOATS | WHOLE_TYPES | {"bool", "int8", "uint8"}
_PADDED = frozenset({"float32", "float64", "int32", "int64"})
_WRAP_SINCE = 19
_NUMBER_OF_PARTS_SINCE = 18


def _any(value: GrownTensor) -> bool:
    return value.dtype in _MOVED


def _full(value: GrownTensor) -> bool:
    return value.dtype in _MOVED and value.size > 0


def transposed(g: Growth) -> None:
    """Transpose by any permutation, or by its default, which reverses."""
    x = g.pick(lambda one: _any(one) and one.rank > 0)
    order = g.random.some(range(x.rank), x.rank) if g.chance(0.8) else None
    g.op("Transpose", x, perm=order, most=x.most, exact=True)


def reshaped(g: Growth) -> None:
    """Reshape, with -1 and 0 for sizes."""
    x = g.pick(_full)
    sizes = list(x.shape)
    while len(sizes) > 1 and g.chance(0.6):
        at = g.random.below(len(sizes) - 1)
        sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
    if len(sizes) < 5 and g.chance(0.5):  # noqa: PLR2004 - rank 6 at most
        at = g.random.below(len(sizes) + 1)
        sizes.insert(at, 1)
    if sizes and g.chance(0.4):
        sizes[g.random.below(len(sizes))] = -1
    elif sizes and x.rank and sizes[0] == x.shape[0] and g.chance(0.5):
        sizes[0] = 0
    g.op("Reshape", x, g.ints(*sizes), most=x.most, exact=True)


def flattened(g: Growth) -> None:
    """Flatten at any axis, the end included."""
    x = g.pick(_full)
    g.op("Flatten", x, axis=g.random.below(x.rank + 1), most=x.most, exact=True)


def resized(g: Growth) -> None:
    """Squeeze or Unsqueeze."""
    x = g.pick(_any)
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    if ones and g.chance(0.5):
        axes = [] if g.chance(0.3) else [g.ints(g.random.pick(ones))]
        g.op("Squeeze", x, *axes, most=x.most, exact=True)
    elif x.rank < 5:  # noqa: PLR2004 - rank 6 at most
        place = g.ints(g.random.between(-x.rank - 1, x.rank))
        g.op("Unsqueeze", x, place, most=x.most, exact=True)


def sliced(g: Growth) -> None:
    """Slice with steps and negative bounds."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS | WHOLE_TYPES and one.rank > 0 and one.size > 0)
    axis = g.axis(x)
    size = x.shape[axis]
    step = g.random.pick([1, 1, 2, 3, -1, -2])
    start = g.random.between(-size, size - 1) if step > 0 else g.random.pick([-1, size - 1, size + 5])
    end = g.random.pick([size, size + 100, -1, np.iinfo(np.int64).max]) if step > 0 else -size - 1
    vectors = (g.ints(start), g.ints(int(end)), g.ints(axis), g.ints(step))
    g.op("Slice", x, *vectors, most=x.most, exact=True)


def padded(g: Growth) -> None:
    """Pad in every mode."""
    x = g.pick(lambda one: one.dtype in _PADDED and one.size > 0 and one.rank > 0)
    mode = g.random.pick(["constant", "edge", "reflect"] + ["wrap"] * (g.opset >= _WRAP_SINCE))
    limits = [2 if mode in {"constant", "edge"} else min(2, size - 1) for size in x.shape]
    pads = [g.random.below(limit + 1) if g.chance(0.5) else 0 for limit in [*limits, *limits]]
    filled = constant(g, x, 1) if mode == "constant" and g.chance(0.5) else None
    g.op("Pad", x, g.ints(*pads), filled, mode=mode, most=max(x.most, 1), exact=True)


def joined(g: Growth) -> None:
    """Add Concat of up to three values, possibly with one of them twice."""
    x = g.pick(lambda one: _any(one) and one.rank > 0)
    axis = g.axis(x)
    others = [
        x
        if g.chance(0.3)
        else g.drawn(x.dtype, [2 if at == axis % x.rank else size for at, size in enumerate(x.shape)])
        for _ in range(g.random.below(3))
    ]
    most = max(one.most for one in (x, *others))
    g.op("Concat", x, *others, axis=axis, most=most, exact=True)


def cut(g: Growth) -> None:
    """Split into equal or other parts."""
    x = g.pick(lambda one: _any(one) and one.rank > 0 and one.size > 0)
    axis = g.axis(x)
    size = x.shape[axis]
    if size < 2:  # noqa: PLR2004 - nothing to split
        raise MisfitError("too small")
    first = g.random.between(1, size - 1)
    if g.chance(0.3) and size % 2 == 0:
        number = 2 if g.opset >= _NUMBER_OF_PARTS_SINCE else None
        g.ops(2, "Split", x, axis=axis, num_outputs=number, most=x.most, exact=True)
    else:
        g.ops(2, "Split", x, g.ints(first, size - first), axis=axis, most=x.most, exact=True)


def gathered(g: Growth) -> None:
    """Add Gather, GatherElements or GatherND, with indices that repeat or count from the end."""
    x = g.pick(lambda one: _full(one) and one.rank > 0)
    axis = g.axis(x)
    size = x.shape[axis]
    kind = g.random.pick(["Gather", "GatherElements", "GatherND"])
    if kind == "GatherND":
        rows = g.random.between(1, 3)
        depth = g.random.between(1, x.rank)
        tuples = [[g.random.between(-one, one - 1) for one in x.shape[:depth]] for _ in range(rows)]
        g.op(kind, x, g.weight(np.array(tuples, np.int64)), most=x.most, exact=True)
        return
    shape = g.random.pick([(), (1,), (3,), (2, 2)]) if kind == "Gather" else x.shape
    dtype = g.random.pick([np.int64, np.int32])
    drawn = [g.random.between(-size, size - 1) for _ in range(math.prod(shape))]
    indices = g.weight(np.array(drawn, dtype).reshape(shape))
    g.op(kind, x, indices, axis=axis, most=x.most, exact=True)


def scattered(g: Growth) -> None:
    """Add ScatterElements to different places, or ScatterND of rows."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS - {"float16"} and one.rank > 0 and one.size > 0)
    if g.chance(0.5):
        axis = g.axis(x)
        size = x.shape[axis]
        order = np.array(g.random.some(range(size), size), np.int64)
        along = [size if at == axis % x.rank else 1 for at in range(x.rank)]
        indices = g.weight(np.broadcast_to(order.reshape(along), x.shape).copy())
        updates = g.drawn(x.dtype, x.shape)
        g.op("ScatterElements", x, indices, updates, axis=axis, most=max(x.most, 2), exact=True)
        return
    rows = g.random.some(range(x.shape[0]), g.random.between(1, x.shape[0]))
    indices = g.weight(np.array(rows, np.int64).reshape(-1, 1))
    updates = g.drawn(x.dtype, (len(rows), *x.shape[1:]))
    g.op("ScatterND", x, indices, updates, most=max(x.most, 2), exact=True)


def repeated(g: Growth) -> None:
    """Tile or Expand."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS | WHOLE_TYPES and one.size > 0)
    if g.chance(0.5) and x.rank:
        times = [g.random.pick([1, 1, 2, 3]) for _ in x.shape]
        g.op("Tile", x, g.ints(*times), most=x.most, exact=True)
        return
    sizes = [g.random.pick([1, 2, 3]) if size == 1 else size for size in x.shape]
    lead = [g.random.pick([1, 2])] if x.rank < 5 and g.chance(0.5) else []  # noqa: PLR2004 - rank 6 at most
    g.op("Expand", x, g.ints(*lead, *sizes), most=x.most, exact=True)


def blocks(g: Growth) -> None:
    """Add DepthToSpace in both modes, or SpaceToDepth."""
    x = g.pick(lambda one: one.dtype == "float32" and one.rank == 4 and one.size > 0)  # noqa: PLR2004 - images
    if x.shape[1] % 4 == 0:
        mode = g.random.pick(["DCR", "CRD"])
        g.op("DepthToSpace", x, blocksize=2, mode=mode, most=x.most, exact=True)
    elif x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0:
        g.op("SpaceToDepth", x, blocksize=2, most=x.most, exact=True)


def triangle(g: Growth) -> None:
    """Add Trilu with a diagonal beside the main one."""
    x = g.pick(lambda one: one.dtype in {"float32", "float64", "int64"} and one.rank > 1)
    offset = g.weight(np.array(g.random.between(-2, 2), np.int64)) if g.chance(0.6) else None
    g.op("Trilu", x, offset, upper=g.random.below(2), most=x.most, exact=True)


def ranked(g: Growth) -> None:
    """Add TopK, ArgMax or ArgMin of exact values: ONNX's text resolves ties."""
    x = g.pick(
        lambda one: one.exact and one.dtype in {"float32", *WHOLE_TYPES} and one.rank > 0 and one.size > 0
    )
    axis = g.axis(x)
    if g.chance(0.4):
        k = g.ints(g.random.between(1, x.shape[axis]))
        most = max(x.most, x.shape[axis])
        g.ops(2, "TopK", x, k, axis=axis, largest=g.random.below(2), most=most, exact=True)
        return
    given = {"axis": axis, "keepdims": g.random.below(2), "select_last_index": g.random.below(2)}
    g.op(g.random.pick(["ArgMax", "ArgMin"]), x, most=x.shape[axis], exact=True, **given)


MOVES = (
    transposed, transposed, reshaped, reshaped, flattened, resized, sliced, padded, joined, joined, cut,
    gathered, scattered, repeated, blocks, triangle, ranked,
)  # fmt: skip
