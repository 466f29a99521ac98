"""Sizes of the results of nodes, from those of their inputs."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.corpus.work.size import (
    SIZE_ERRORS,
    Dims,
    TensorSize,
    attribute,
    broadcast_size,
    constant_numbers,
    input_size,
    known_dims,
    of_dims,
)
from harness.operators.book import rules_of

if TYPE_CHECKING:
    import onnx


def result_size(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    """Return the size of a node's first result; ``given`` has None for absent inputs.

    An operator without a rule returns its broadcast inputs, or as much as the largest input that is no
    weight.
    """
    found = by_rule(node, given)
    return broadcast_size(given) if found is None else found


def by_rule(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize | None:
    """Return the size of a node's first result; None without a rule, or with too little known for it."""
    rule = _RULES.get(node.op_type)
    try:
        return None if rule is None else rule(node, given)
    except SIZE_ERRORS:
        return None


def _window(
    node: "onnx.NodeProto", given: Sequence[TensorSize | None], kernel: Dims, channels: int
) -> TensorSize:
    """Return the size of the result of an operator that moves a window over its first input."""
    first = known_dims(given[0])
    spatial = first[2:]
    rank = len(spatial)
    ones, zeros = (1,) * rank, (0,) * (2 * rank)
    strides, dilations = attribute(node, "strides", ones), attribute(node, "dilations", ones)
    pads, auto = attribute(node, "pads", zeros), attribute(node, "auto_pad", "NOTSET")
    extents = []
    for axis, extent in enumerate(spatial):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        if auto.startswith("SAME"):
            extents.append(-(-extent // strides[axis]))
        else:
            padded = extent if auto == "VALID" else extent + pads[axis] + pads[axis + rank]
            rest = max(0, padded - reach)
            up = attribute(node, "ceil_mode", 0) and (rest // strides[axis] + 1) * strides[axis] < (
                extent + pads[axis]
            )
            extents.append((-(-rest // strides[axis]) if up else rest // strides[axis]) + 1)
    return of_dims((first[0], channels, *extents))


def _convolution(weight: int) -> "SizeRule":
    def rule(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
        dims = known_dims(given[weight])
        return _window(node, given, dims[2:], dims[0])

    return rule


def _pool(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    return _window(node, given, attribute(node, "kernel_shape", ()), known_dims(given[0])[1])


def _transposed_convolution(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first, weight = known_dims(given[0]), known_dims(given[1])
    channels = weight[1] * attribute(node, "group", 1)
    rank = len(first[2:])
    ones, zeros = (1,) * rank, (0,) * (2 * rank)
    strides, dilations = attribute(node, "strides", ones), attribute(node, "dilations", ones)
    if wanted := attribute(node, "output_shape", ()):
        return of_dims((first[0], channels, *wanted[-rank:]))
    if attribute(node, "auto_pad", "NOTSET").startswith("SAME"):
        return of_dims(
            (first[0], channels, *(one * step for one, step in zip(first[2:], strides, strict=True)))
        )
    pads, more = attribute(node, "pads", zeros), attribute(node, "output_padding", zeros[:rank])
    return of_dims(
        (
            first[0],
            channels,
            *(
                (extent - 1) * strides[axis]
                + (weight[2 + axis] - 1) * dilations[axis]
                + 1
                + more[axis]
                - pads[axis]
                - pads[axis + rank]
                for axis, extent in enumerate(first[2:])
            ),
        )
    )


def _matrix_product(right: int) -> "SizeRule":
    def rule(_node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
        one, other = input_size(given), input_size(given, right)
        if one.dims is None or other.dims is None:
            if other.dims is not None and len(other.dims) == 2 and other.dims[0]:  # noqa: PLR2004 - a matrix
                return TensorSize(one.elements / other.dims[0] * other.dims[1])
            return TensorSize(max(one.elements, other.elements))
        left, columns = one.dims, other.dims
        batch = broadcast_size([of_dims(left[:-2]), of_dims(columns[:-2])])
        return of_dims((*known_dims(batch), *left[-2:-1], *(columns[-1:] if len(columns) > 1 else ())))

    return rule


def _gemm(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    right = known_dims(given[1])
    rows = input_size(given).elements / right[1 if attribute(node, "transB", 0) else 0]
    return of_dims((int(rows), right[0 if attribute(node, "transB", 0) else 1]))


def _wide_product(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    one, width = input_size(given), attribute(node, "N", 0)
    if one.dims is not None:
        return of_dims((*one.dims[:-1], width))
    return TensorSize(one.elements / max(1, attribute(node, "K", 1)) * width)


def _transpose(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first = known_dims(given[0])
    order = attribute(node, "perm", tuple(range(len(first)))[::-1])
    return of_dims([first[axis] for axis in order], input_size(given).nbytes)


def _reshape(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    one = input_size(given)
    wanted = attribute(node, "shape", ()) or (constant_numbers(given[1]) if _has_values(given, 1) else ())
    if not wanted:
        return TensorSize(one.elements, None, one.nbytes)
    dims = [one.dims[axis] if not extent and one.dims else extent for axis, extent in enumerate(wanted)]
    rest = math.prod(extent for extent in dims if extent > 0)
    dims = [int(one.elements // max(1, rest)) if extent < 0 else extent for extent in dims]
    return of_dims(dims, one.nbytes)._replace(elements=one.elements)


def _has_values(given: Sequence[TensorSize | None], index: int) -> bool:
    one = given[index] if index < len(given) else None
    return one is not None and one.values is not None


def _flatten(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first = known_dims(given[0])
    axis = attribute(node, "axis", 1)
    return of_dims((math.prod(first[:axis]), math.prod(first[axis:])), input_size(given).nbytes)


def _axes_of(node: "onnx.NodeProto", given: Sequence[TensorSize | None], rank: int) -> set[int]:
    axes = attribute(node, "axes", ()) or (constant_numbers(given[1]) if _has_values(given, 1) else ())
    return {axis % rank for axis in axes} if rank else set()


def _reduction(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first = known_dims(given[0])
    axes = _axes_of(node, given, len(first)) or set(range(len(first)))
    keeps = attribute(node, "keepdims", 1)
    return of_dims(
        [1 if axis in axes else size for axis, size in enumerate(first) if keeps or axis not in axes]
    )


def _arg(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first = list(known_dims(given[0]))
    first[attribute(node, "axis", 0)] = 1
    return of_dims(first, 8.0)


def _of_spatial(_node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first = known_dims(given[0])
    return of_dims((*first[:2], *(1 for _ in first[2:])))


def _squeeze(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first = known_dims(given[0])
    axes = _axes_of(node, given, len(first)) or {axis for axis, size in enumerate(first) if size == 1}
    kept = [size for axis, size in enumerate(first) if axis not in axes]
    return of_dims(kept, input_size(given).nbytes)


def _unsqueeze(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    dims = list(known_dims(given[0]))
    axes = attribute(node, "axes", ()) or constant_numbers(given[1])
    rank = len(dims) + len(axes)
    for axis in sorted(one % rank for one in axes):
        dims.insert(axis, 1)
    return of_dims(dims, input_size(given).nbytes)


def _concatenation(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    present = [one for one in given if one is not None]
    count = sum(one.elements for one in present)
    dims: Dims | None = None
    if all(one.dims is not None for one in present):
        first = list(known_dims(present[0]))
        axis = attribute(node, "axis", 0)
        first[axis] = sum(known_dims(one)[axis] for one in present)
        dims = tuple(first)
    return TensorSize(count, dims, present[0].nbytes)


def _gather(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first, indices = known_dims(given[0]), input_size(given, 1)
    axis = attribute(node, "axis", 0) % len(first)
    around = math.prod(first[:axis]) * math.prod(first[axis + 1 :])
    if indices.dims is None:
        return TensorSize(around * indices.elements)
    return of_dims((*first[:axis], *indices.dims, *first[axis + 1 :]), input_size(given).nbytes)


def _as_index(index: int) -> "SizeRule":
    def rule(_node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
        return input_size(given, index)._replace(fixed=False, values=None)

    return rule


def _expand(_node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    return broadcast_size([input_size(given)._replace(fixed=False), of_dims(constant_numbers(given[1]))])


def _filled(_node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    return of_dims(constant_numbers(given[0]))


def _tile(_node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    return of_dims(
        [size * times for size, times in zip(known_dims(given[0]), constant_numbers(given[1]), strict=True)]
    )


def _resize(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first = known_dims(given[0])
    if _has_values(given, 3):
        wanted = constant_numbers(given[3])
        return of_dims((*first[: len(first) - len(wanted)], *wanted))
    factors = attribute(node, "scales", ()) or next(
        (one.values for one in given[1:] if one is not None and len(one.values or ()) == len(first)), None
    )
    return of_dims([int(size * factor) for size, factor in zip(first, factors or (), strict=True)])


def _pad(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    first = known_dims(given[0])
    pads = attribute(node, "pads", ()) or constant_numbers(given[1])
    axes = constant_numbers(given[3]) if _has_values(given, 3) else tuple(range(len(first)))
    dims = list(first)
    for at, axis in enumerate(axes):
        dims[axis] += pads[at] + pads[at + len(axes)]
    return of_dims(dims, input_size(given).nbytes)


def _split(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    dims = list(known_dims(given[0]))
    axis, parts = attribute(node, "axis", 0), max(1, len(node.output))
    lengths = attribute(node, "split", ()) or (constant_numbers(given[1]) if _has_values(given, 1) else ())
    dims[axis] = lengths[0] if lengths else -(-dims[axis] // parts)
    return of_dims(dims, input_size(given).nbytes)


def _recurrence(_node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    (sequence, batch, _), recurrent = known_dims(given[0]), known_dims(given[2])
    return of_dims((sequence, recurrent[0], batch, recurrent[-1]))


def _shape(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> TensorSize:
    dims = known_dims(given[0])
    dims = dims[attribute(node, "start", 0) : attribute(node, "end", len(dims))]
    return TensorSize(float(len(dims)), (len(dims),), 8.0, fixed=True, values=tuple(map(float, dims)))


SizeRule = Callable[["onnx.NodeProto", Sequence[TensorSize | None]], TensorSize]


_ESTIMATES: dict[str, SizeRule] = {
    "arg": _arg,
    "block_product": _wide_product,
    "concatenation": _concatenation,
    "convolution": _convolution(1),
    "expand": _expand,
    "filled": _filled,
    "flatten": _flatten,
    "gather": _gather,
    "gemm": _gemm,
    "global_pool": _of_spatial,
    "like_first": _as_index(0),
    "like_second": _as_index(1),
    "matmul": _matrix_product(1),
    "pad": _pad,
    "pool": _pool,
    "quantized_convolution": _convolution(3),
    "quantized_matmul": _matrix_product(3),
    "recurrence": _recurrence,
    "reduction": _reduction,
    "reshape": _reshape,
    "resize": _resize,
    "shape": _shape,
    "split": _split,
    "squeeze": _squeeze,
    "tile": _tile,
    "transpose": _transpose,
    "transposed_convolution": _transposed_convolution,
    "unsqueeze": _unsqueeze,
}
"""Rules of the book of operators."""

_RULES = rules_of(lambda row: row.size, _ESTIMATES)
"""Operator -> the estimate of the size of its first result."""
