"""Operators that read or write at indices; no index is written twice, unless results are combined."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.annex.made.forms.input_values import DISTINCT, ValueKind
from harness.annex.made.forms.setting import FROM_END, Form, Operand, Setting
from harness.core.values.value import Array


def _indices(setting: Setting, shape: Sequence[int], size: int) -> Array:
    found = setting.draw.whole(shape, 0, size - 1)
    if setting.since >= FROM_END and setting.draw.chance(30):
        found = np.where(setting.draw.whole(shape, 0, 1) == 1, found - size, found)
    return found


def gather(setting: Setting) -> Form:
    """Return a form of Gather or GatherElements, which has as many axes of indices as of data."""
    shape = setting.shape(1, 4)
    axis = setting.axis(len(shape), FROM_END)
    if setting.name == "Gather":
        other = setting.shape(0, 2)
    else:
        other = tuple(setting.draw.between(1, size) for size in shape)
    indices = _indices(setting, other, shape[axis])
    attributes = {"axis": axis} if axis or setting.draw.chance(50) else {}
    return Form(inputs=(setting.operand(0, shape), setting.given(1, indices)), attributes=attributes)


def gather_nd(setting: Setting) -> Form:
    """Return a form of GatherND."""
    draw = setting.draw
    shape = setting.shape(1, 4)
    batch = draw.below(len(shape)) if setting.has("batch_dims") and draw.chance(30) else 0
    depth = draw.between(1, len(shape) - batch)
    others = (*shape[:batch], *(setting.size(4) for _ in range(draw.between(0, 2))))
    columns = [draw.whole(others, 0, shape[batch + at] - 1) for at in range(depth)]
    inputs = (setting.operand(0, shape), setting.given(1, np.stack(columns, -1)))
    return Form(inputs=inputs, attributes={"batch_dims": batch} if batch else {})


def scatter_elements(setting: Setting) -> Form:
    """Return a form of ScatterElements: along its axis the indices differ from each other."""
    draw = setting.draw
    shape = setting.shape(1, 4)
    axis = setting.axis(len(shape))
    other = [draw.between(1, size) for size in shape]
    along = axis % len(shape)
    whole = [*other[:along], shape[along], *other[along + 1 :]]
    order = np.argsort(draw.bits(int(np.prod(whole))).reshape(whole), axis=along, kind="stable")
    indices = np.take(order, range(other[along]), axis=along)
    attributes: dict[str, Any] = {"axis": axis} if axis or draw.chance(50) else {}
    attributes |= _reduction(setting)
    inputs = (setting.operand(0, shape), setting.given(1, indices), setting.operand(2, other))
    return Form(inputs=inputs, attributes=attributes)


def scatter_nd(setting: Setting) -> Form:
    """Return a form of ScatterND: all index tuples differ."""
    draw = setting.draw
    shape = setting.shape(1, 4)
    depth = draw.between(1, len(shape))
    cells = int(np.prod(shape[:depth]))
    count = draw.between(1, min(cells, 12))
    flat = draw.permuted(cells)[:count]
    indices = np.stack(np.unravel_index(flat, shape[:depth]), -1)
    updates = setting.operand(2, (count, *shape[depth:]))
    inputs = (setting.operand(0, shape), setting.given(1, indices), updates)
    return Form(inputs=inputs, attributes=_reduction(setting))


def _reduction(setting: Setting) -> dict[str, Any]:
    """Return how writes are combined; the CPU EP does not combine 16-bit floats."""
    if not setting.has("reduction") or setting.dtype(0) in {"bool", "string", "float16", "bfloat16"}:
        return {}
    kinds = ["none", "add", "mul"] + (["max", "min"] if setting.since >= _EXTREMES else [])
    return setting.maybe(60, {"reduction": setting.draw.pick(kinds)})


_EXTREMES = 18
"""Version of the scatters with the reductions ``max`` and ``min``."""


def one_hot(setting: Setting) -> Form:
    """Return a form of OneHot."""
    draw = setting.draw
    depth = draw.between(2, 9)
    indices = setting.operand(0, setting.shape(1, 3), ValueKind(low=0.0, high=float(depth - 1), fine=False))
    indices = Operand(array=np.floor(indices.array).astype(indices.array.dtype), dtype=indices.dtype)
    rank = indices.array.ndim
    inputs = (indices, setting.given(1, draw.pick((depth, [depth]))), setting.operand(2, (2,)))
    return Form(inputs=inputs, attributes=setting.maybe(60, {"axis": draw.between(-rank - 1, rank)}))


def compress(setting: Setting) -> Form:
    """Return a form of Compress."""
    draw = setting.draw
    shape = setting.shape(1, 4)
    axis = setting.axis(len(shape), FROM_END)
    attributes = setting.maybe(70, {"axis": axis})
    size = shape[axis] if attributes else int(np.prod(shape))
    condition = setting.operand(1, (draw.between(1, size),))
    return Form(inputs=(setting.operand(0, shape), condition), attributes=attributes)


def unique(setting: Setting) -> Form:
    """Return a form of Unique."""
    draw = setting.draw
    shape = setting.shape(1, 3)
    kind = ValueKind(low=-1.0, high=1.0, fine=False)
    if setting.operator.domain:
        return Form(inputs=(setting.operand(0, shape[:1], kind),), outputs=3)
    attributes = setting.maybe(40, {"axis": setting.axis(len(shape))})
    attributes |= setting.maybe(50, {"sorted": draw.below(2)})
    return Form(inputs=(setting.operand(0, shape, kind),), attributes=attributes, outputs=draw.pick((1, 4)))


def reverse_sequence(setting: Setting) -> Form:
    """Return a form of ReverseSequence."""
    draw = setting.draw
    shape = setting.shape(2, 4)
    time = draw.below(2)
    lengths = draw.whole((shape[1 - time],), 1, shape[time])
    attributes = {"time_axis": time, "batch_axis": 1 - time}
    return Form(inputs=(setting.operand(0, shape), setting.given(1, lengths)), attributes=attributes)


def suppression(setting: Setting) -> Form:
    """Return a form of NonMaxSuppression: boxes on a grid, scores that all differ."""
    draw = setting.draw
    batches, boxes, classes = draw.pick((1, 2)), setting.size(9), draw.pick((1, 2, 3))
    corner = draw.whole((batches, boxes, 2), 0, 12) / 2
    size = draw.whole((batches, boxes, 2), 1, 6) / 2
    center = draw.chance(30)
    array = np.concatenate([corner, size if center else corner + size], -1)
    scores = setting.operand(1, (batches, classes, boxes), DISTINCT)
    inputs = (
        setting.given(0, array),
        scores,
        setting.given(2, [draw.between(1, 5)]),
        # Overlaps of boxes on this grid are ratios of small numbers; none is near this one.
        setting.given(3, [0.4142]),
        *([setting.given(4, [0.015625])] if draw.chance(50) else []),
    )
    attributes = {"center_point_box": 1} if center else {}
    return Form(inputs=inputs, attributes=attributes)


def rows(setting: Setting) -> Form:
    """Return a form of ArrayFeatureExtractor."""
    shape = setting.shape(1, 3)
    indices = setting.draw.whole((setting.size(5),), 0, shape[-1] - 1)
    return Form(inputs=(setting.operand(0, shape), setting.given(1, indices)))


def cache_update(setting: Setting) -> Form:
    """Return a form of TensorScatter: a piece of a cache is written for each batch."""
    draw = setting.draw
    batch, heads = draw.pick((1, 2, 3)), draw.pick((1, 2))
    longest, size = draw.between(3, 9), draw.pick((1, 4))
    steps = draw.between(1, longest)
    starts = setting.given(2, draw.whole((batch,), 0, longest - steps))
    inputs = (
        setting.operand(0, (batch, heads, longest, size)),
        setting.operand(1, (batch, heads, steps, size)),
        starts,
    )
    return Form(inputs=inputs, attributes=setting.maybe(40, {"axis": -2}))
