"""Requirements of operators for the extents of their inputs: one function for each kind of operator.

The book of operators says which rule of ``_FITS`` an operator has. Extents that are not known demand nothing.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.corpus.inputs.fitting.known_tensors import (
    KnownTensor,
    reshaped,
    sliced,
    split_lengths,
)
from harness.corpus.model.nodes import domain_of
from harness.corpus.work.size import SIZE_ERRORS, Dims, attribute, known_dims
from harness.operators.book import rules_of
from harness.operators.row import KNOWN_DOMAINS

if TYPE_CHECKING:
    import onnx


class Demand(NamedTuple):
    """A number that has to be zero, or at least zero, or a multiple.

    Attributes:
        value: The measured number: 0 is enough.
        exact: Whether more than 0 is too much.
        multiple: The number that the value has to be a multiple of; 1 for any.
        window: For a window that has to lie within its data: both, in words; else empty.
    """

    value: int
    exact: bool = False
    multiple: int = 1
    window: str = ""

    @property
    def is_met(self) -> bool:
        """Return whether the requirement of the operator is met."""
        return (self.value == 0 if self.exact else self.value >= 0) and self.value % self.multiple == 0


_STFT_INPUTS = 4
"""With the last one, the length of a frame, which may be that of the window otherwise."""

_Demands = Iterator[tuple[str, Demand]]
_Given = Sequence[KnownTensor | None]


def demands_of(node: "onnx.NodeProto", given: _Given) -> list[tuple[str, Demand]]:
    """Return the demands of a node, each with a name that does not depend on sizes."""
    rule = _DEMANDS.get(node.op_type)
    if rule is None or domain_of(node) not in KNOWN_DOMAINS:
        return []
    found: list[tuple[str, Demand]] = []
    with contextlib.suppress(*SIZE_ERRORS):  # known demands count nevertheless
        found.extend(rule(node, given))
    return found


def _windows(node: "onnx.NodeProto", dims: Dims, kernel: Dims) -> _Demands:
    spatial = dims[2:]
    rank = len(spatial)
    dilations, pads = attribute(node, "dilations", (1,) * rank), attribute(node, "pads", (0,) * (2 * rank))
    auto = attribute(node, "auto_pad", "NOTSET")
    if auto.startswith("SAME"):
        return
    for axis, extent in enumerate(spatial):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        around = 0 if auto == "VALID" else pads[axis] + pads[axis + rank]
        padding = f" with {around} of padding" if around else ""
        window = f"{node.op_type} {node.name!r} has a window of {reach} over {extent}{padding}"
        yield f"window {axis}", Demand(extent + around - reach, window=window)


def _convolution(weight: int) -> "_Rule":
    def rule(node: "onnx.NodeProto", given: _Given) -> _Demands:
        dims, kernel = known_dims(given[0]), known_dims(given[weight])
        yield "channels", Demand(dims[1] - kernel[1] * attribute(node, "group", 1), exact=True)
        yield from _windows(node, dims, kernel[2:])

    return rule


def _transposed_convolution(_node: "onnx.NodeProto", given: _Given) -> _Demands:
    yield "channels", Demand(known_dims(given[0])[1] - known_dims(given[1])[0], exact=True)


def _pool(node: "onnx.NodeProto", given: _Given) -> _Demands:
    return _windows(node, known_dims(given[0]), attribute(node, "kernel_shape", ()))


def _stft(node: "onnx.NodeProto", given: _Given) -> _Demands:
    length = given[3] if len(given) == _STFT_INPUTS else None
    if length is not None and length.numbers is not None:
        frame = int(length.numbers.reshape(-1)[0])
    else:
        frame = known_dims(given[2])[0]
    extent = known_dims(given[0])[1]
    yield "frame", Demand(extent - frame, window=f"STFT {node.name!r} has frames of {frame} over {extent}")


def _product(_node: "onnx.NodeProto", given: _Given) -> _Demands:
    one, other = known_dims(given[0]), known_dims(given[1])
    yield "terms", Demand(one[-1] - other[max(-2, -len(other))], exact=True)
    yield from _alike([one[:-2], other[:-2]])


def _gemm(node: "onnx.NodeProto", given: _Given) -> _Demands:
    one, other = known_dims(given[0]), known_dims(given[1])
    terms = one[0 if attribute(node, "transA", 0) else 1]
    yield "terms", Demand(terms - other[1 if attribute(node, "transB", 0) else 0], exact=True)


def _recurrence(node: "onnx.NodeProto", given: _Given) -> _Demands:
    if attribute(node, "layout", 0):
        return
    _, batch, width = known_dims(given[0])
    yield "width", Demand(width - known_dims(given[1])[2], exact=True)
    for index in (5, 6):
        if index < len(given) and given[index] is not None:
            state = known_dims(given[index])
            yield f"batch {index}", Demand(state[1] - batch, exact=True)
            yield f"state {index}", Demand(state[2] - known_dims(given[2])[2], exact=True)


def _channels(_node: "onnx.NodeProto", given: _Given) -> _Demands:
    yield "channels", Demand(known_dims(given[0])[1] - known_dims(given[1])[0], exact=True)


def _broadcast(_node: "onnx.NodeProto", given: _Given) -> _Demands:
    return _alike([known_dims(one) for one in given if one is not None])


def _alike(shapes: Sequence[Dims]) -> _Demands:
    """Demand that extents are equal, or 1, counted from the last axis."""
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        long = [(at, dims) for at, dims in enumerate(shapes) if len(dims) >= axis]
        extents = [(at, dims[-axis]) for at, dims in long if dims[-axis] != 1]
        for at, extent in extents[1:]:
            yield f"axis {-axis} of {at}", Demand(extent - extents[0][1], exact=True)


def _concatenation(node: "onnx.NodeProto", given: _Given) -> _Demands:
    first, *others = (known_dims(one) for one in given)
    axis = attribute(node, "axis", 0) % len(first)
    for at, dims in enumerate(others):
        for other, (one, extent) in enumerate(zip(first, dims, strict=False)):
            if other != axis:
                yield f"axis {other} of {at}", Demand(extent - one, exact=True)


def _reshape(node: "onnx.NodeProto", given: _Given) -> _Demands:
    total, wanted = math.prod(known_dims(given[0])), reshaped(node, given)
    if wanted is None:
        return
    rest = math.prod(extent for extent in wanted if extent >= 0)
    if -1 in wanted:
        yield "elements", Demand(total, multiple=max(1, rest))
    else:
        yield "elements", Demand(total - rest, exact=True)


def _expand(_node: "onnx.NodeProto", given: _Given) -> _Demands:
    wanted = given[1].numbers if given[1] is not None else None
    if wanted is not None:
        yield from _alike([known_dims(given[0]), tuple(map(int, wanted.reshape(-1)))])


def _squeeze(node: "onnx.NodeProto", given: _Given) -> _Demands:
    dims = known_dims(given[0])
    second = given[1].numbers if len(given) > 1 and given[1] is not None else None
    axes = attribute(node, "axes", ()) or (() if second is None else second.reshape(-1).tolist())
    for axis in axes:
        yield f"axis {axis}", Demand(dims[int(axis)] - 1, exact=True)


def _slice(node: "onnx.NodeProto", given: _Given) -> _Demands:
    dims = known_dims(given[0])
    for axis, start, end, step in sliced(node, given) or ():
        left = len(range(dims[axis])[start : None if step < 0 and end < -dims[axis] else end : step])
        # An extent of 0 or less: the numbers count from another size.
        yield f"axis {axis}", Demand(min(dims[axis], left) - 1 if dims[axis] else 0)


def _gather(node: "onnx.NodeProto", given: _Given) -> _Demands:
    indices = given[1]
    if indices is not None and indices.numbers is not None and indices.numbers.size:
        extent = known_dims(given[0])[attribute(node, "axis", 0)]
        beyond = max(int(indices.numbers.max()) + 1, -int(indices.numbers.min()))
        yield "index", Demand(extent - beyond)


def _pad(node: "onnx.NodeProto", given: _Given) -> _Demands:
    dims = known_dims(given[0])
    second = given[1].numbers if len(given) > 1 and given[1] is not None else None
    pads = attribute(node, "pads", ()) or (() if second is None else tuple(map(int, second.reshape(-1))))
    if len(pads) != 2 * len(dims):
        return
    mirrors = attribute(node, "mode", "constant") == "reflect"
    for axis, extent in enumerate(dims):
        around = (pads[axis], pads[axis + len(dims)])
        if mirrors and max(around) > 0:
            window = f"Pad {node.name!r} mirrors {max(around)} of {extent}"
            yield f"axis {axis}", Demand(extent - 1 - max(around), window=window)
        elif min(around) < 0:
            yield f"axis {axis}", Demand(extent + sum(around) - 1)


def _top_k(node: "onnx.NodeProto", given: _Given) -> _Demands:
    count = given[1].numbers if given[1] is not None else None
    if count is not None:
        extent = known_dims(given[0])[attribute(node, "axis", -1)]
        yield "count", Demand(extent - int(count.reshape(-1)[0]))


def _split(node: "onnx.NodeProto", given: _Given) -> _Demands:
    dims = known_dims(given[0])
    extent, lengths = dims[attribute(node, "axis", 0)], split_lengths(node, given)
    if lengths is not None:
        yield "parts", Demand(extent - sum(lengths), exact=True)
    elif not attribute(node, "num_outputs", 0):
        yield "parts", Demand(extent, multiple=len(node.output))


def _to_depth(node: "onnx.NodeProto", given: _Given) -> _Demands:
    for axis, extent in enumerate(known_dims(given[0])[2:]):
        yield f"axis {axis}", Demand(extent, multiple=max(1, attribute(node, "blocksize", 1)))


def _layer(_node: "onnx.NodeProto", given: _Given) -> _Demands:
    scale = known_dims(given[1])
    if len(scale) == 1:
        yield "width", Demand(known_dims(given[0])[-1] - scale[0], exact=scale[0] != 1)


def _trees(node: "onnx.NodeProto", given: _Given) -> _Demands:
    features = attribute(node, "nodes_featureids", ()) or attribute(node, "nodes_featureids_as_tensor", ())
    if features:
        yield "features", Demand(known_dims(given[0])[-1] - 1 - max(features))


_Rule = Callable[["onnx.NodeProto", _Given], _Demands]

_FITS: dict[str, _Rule] = {
    "broadcast": _broadcast,
    "channels": _channels,
    "concatenation": _concatenation,
    "convolution": _convolution(1),
    "expand": _expand,
    "gather": _gather,
    "gemm": _gemm,
    "layer": _layer,
    "matmul": _product,
    "pad": _pad,
    "pool": _pool,
    "quantized_convolution": _convolution(3),
    "recurrence": _recurrence,
    "reshape": _reshape,
    "slice": _slice,
    "space_to_depth": _to_depth,
    "split": _split,
    "squeeze": _squeeze,
    "stft": _stft,
    "top_k": _top_k,
    "transposed_convolution": _transposed_convolution,
    "trees": _trees,
}
"""Rules of the book of operators."""

_DEMANDS = rules_of(lambda row: "broadcast" if row.shape == "broadcast" else row.fit, _FITS)
"""Operator -> its demands. Inputs that are broadcast have to fit each other."""
