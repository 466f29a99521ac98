"""Facts about tensors while sizes are tried: extents, and the numbers of small tensors.

Only certain facts are recorded. ``harness.corpus.work`` guesses where this module gives up.
"""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.corpus.inputs.fitting.inferred_shapes import inferred_dims
from harness.corpus.inputs.fitting.small_tensors import MOST_NUMBERS, NumberArray, result_numbers
from harness.corpus.model.nodes import constant_of, domain_of
from harness.corpus.model.protos import tensor_value
from harness.corpus.work.result_sizes import by_rule
from harness.corpus.work.size import SIZE_ERRORS, Dims, TensorSize, attribute, known_dims, of_dims
from harness.operators.book import operators_by, rules_of

if TYPE_CHECKING:
    import onnx

_MOST_EXTENT = 1 << 40
"""A longer extent is an error in the model."""


class KnownTensor(NamedTuple):
    """A tensor.

    Attributes:
        dims: Extents; None if unknown.
        numbers: Its elements, if they are few and known.
        fixed: Whether it is a weight or a constant.
    """

    dims: Dims | None = None
    numbers: NumberArray | None = None
    fixed: bool = False

    @property
    def size(self) -> TensorSize:
        """The tensor in the form for the rules of ``harness.corpus.work``."""
        if self.dims is None:
            return TensorSize(1.0)
        values = None
        if self.numbers is not None and np.issubdtype(self.numbers.dtype, np.number):
            values = tuple(map(float, self.numbers.reshape(-1).tolist()))
        return of_dims(self.dims)._replace(fixed=self.fixed, values=values)


NOTHING = KnownTensor()

_Given = Sequence[KnownTensor | None]
"""What is known of a node's inputs; None for an absent one."""

_OWN_DOMAINS = frozenset({"", "com.microsoft"})


def results_of(node: "onnx.NodeProto", given: _Given, opsets: Mapping[str, int]) -> list[KnownTensor]:
    """Return the known facts of a node's results; ``opsets`` are the model's versions of its domains."""
    found: list[KnownTensor] = []
    with contextlib.suppress(*SIZE_ERRORS):
        if domain_of(node) in _OWN_DOMAINS:
            found = _results(node, given)
        if not found and all(one is None or one.dims is not None for one in given):
            found = [_of_dims(dims) for dims in inferred_dims(node, given, opsets)]
    return [*found, *[NOTHING] * len(node.output)][: len(node.output)]


def _results(node: "onnx.NodeProto", given: _Given) -> list[KnownTensor]:
    """Return the known facts of the first results.

    Raises:
        One of ``SIZE_ERRORS``: Nothing is known.
    """
    if node.op_type == "Constant":
        value = constant_of(node)
        return [NOTHING if value is None else weight(value)]
    if given and given[0] is not None and given[0].dims is None:
        return []
    numbers = result_numbers(node, [None if one is None else one.numbers for one in given])
    if numbers is not None:
        return [KnownTensor(numbers.shape, numbers, all(one is None or one.fixed for one in given))]
    return _RULES.get(node.op_type, _OTHERS)(node, given)


def weight(proto: "onnx.TensorProto") -> KnownTensor:
    """Return the known facts of a weight or a constant."""
    dims = tuple(proto.dims)
    if math.prod(dims) > MOST_NUMBERS or proto.data_location == proto.EXTERNAL:
        return KnownTensor(dims, None, fixed=True)
    try:
        numbers: NumberArray | None = tensor_value(proto).array
    except (ValueError, TypeError, KeyError):  # texts, or a damaged tensor
        numbers = None
    if numbers is not None and numbers.dtype.kind not in "biuf":
        numbers = None
    return KnownTensor(dims, numbers, fixed=True)


def broadcast_shape(given: _Given) -> Dims:
    """Return the shape that results from broadcasting tensors.

    Raises:
        TypeError: A shape is unknown.
        ValueError: They do not fit.
    """
    return together(*(known_dims(one) for one in given if one is not None))


def together(*shapes: Dims) -> Dims:
    """Return the shape that results from broadcasting shapes.

    Raises:
        ValueError: They do not fit, or have more axes than numpy has.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def _like_first(_node: "onnx.NodeProto", given: _Given) -> Dims | None:
    return known_dims(given[0])


def _broadcast(_node: "onnx.NodeProto", given: _Given) -> Dims | None:
    return broadcast_shape(given)


def _quantized_broadcast(_node: "onnx.NodeProto", given: _Given) -> Dims | None:
    return broadcast_shape((given[0], given[3]))


def _expand(_node: "onnx.NodeProto", given: _Given) -> Dims | None:
    numbers = given[1].numbers if given[1] is not None else None
    if numbers is None:
        return None
    return together(known_dims(given[0]), tuple(map(int, numbers.reshape(-1))))


def _gemm(node: "onnx.NodeProto", given: _Given) -> Dims | None:
    one, other = known_dims(given[0]), known_dims(given[1])
    return one[1 if attribute(node, "transA", 0) else 0], other[0 if attribute(node, "transB", 0) else 1]


def _product(_node: "onnx.NodeProto", given: _Given) -> Dims | None:
    one, other = known_dims(given[0]), known_dims(given[1])
    batch = together(one[:-2], other[:-2])
    return *batch, *one[-2:-1], *(other[-1:] if len(other) > 1 else ())


def _space_to_depth(node: "onnx.NodeProto", given: _Given) -> Dims | None:
    (batch, channels, *spatial), step = known_dims(given[0]), attribute(node, "blocksize", 1)
    return batch, channels * step * step, *(extent // step for extent in spatial)


def _depth_to_space(node: "onnx.NodeProto", given: _Given) -> Dims | None:
    (batch, channels, *spatial), step = known_dims(given[0]), attribute(node, "blocksize", 1)
    return batch, channels // (step * step), *(extent * step for extent in spatial)


def _arg(node: "onnx.NodeProto", given: _Given) -> Dims | None:
    dims, axis = list(known_dims(given[0])), attribute(node, "axis", 0)
    dims[axis : axis + 1 or None] = [1] if attribute(node, "keepdims", 1) else []
    return tuple(dims)


def _by_work(node: "onnx.NodeProto", given: _Given) -> Dims | None:
    """Return the shape by the rules for estimates, where these are exact."""
    op = node.op_type
    if (
        op in _GUESSED
        or any(one.name in _RARE_FORMS.get(op, ()) for one in node.attribute)
        or any(one is not None and one.numbers is None for one in _parameters(op, given))
    ):
        return None
    found = by_rule(node, [None if one is None else one.size for one in given])
    return None if found is None else found.dims


_GUESSED = frozenset({"GatherND"})
"""Operators for which ``harness.corpus.work`` has only an estimate."""

_RARE_FORMS = {"Resize": ("axes", "keep_aspect_ratio_policy"), "ReduceSum": ("noop_with_empty_axes",)}
"""Attributes with which its rule for an operator does not count."""

_PARAMETERS = operators_by(lambda row: row.shape_inputs)
"""Operator -> inputs whose numbers decide the shape of its result, if they are there."""


def _parameters(op: str, given: _Given) -> list[KnownTensor | None]:
    indices = (1,) if op.startswith("Reduce") else _PARAMETERS.get(op, ())
    return [given[index] for index in indices if index < len(given)]


def _numbers_of_shape(node: "onnx.NodeProto", given: _Given) -> NumberArray | None:
    if node.op_type == "Shape":
        end = attribute(node, "end", None)
        return np.array(known_dims(given[0])[attribute(node, "start", 0) : end], np.int64)
    if node.op_type == "Size":
        return np.array(math.prod(known_dims(given[0])), np.int64)
    return None


def reshaped(node: "onnx.NodeProto", given: _Given) -> list[int] | None:
    """Return the shape that a ``Reshape`` requests, -1 still in it; None if unknown."""
    wanted = attribute(node, "shape", ())
    if not wanted:
        target = given[1].numbers if len(given) > 1 and given[1] is not None else None
        if target is None:
            return None
        wanted = tuple(map(int, target.reshape(-1).tolist()))
    first = known_dims(given[0])
    keeps = not attribute(node, "allowzero", 0)
    return [first[axis] if not extent and keeps else extent for axis, extent in enumerate(wanted)]


def _reshape(node: "onnx.NodeProto", given: _Given) -> Dims | None:
    wanted = reshaped(node, given)
    if wanted is None:
        return None
    total = math.prod(known_dims(given[0]))
    rest = math.prod(extent for extent in wanted if extent >= 0)
    if -1 in wanted and (not rest or total % rest):
        return None
    dims = tuple(total // rest if extent < 0 else extent for extent in wanted)
    return dims if math.prod(dims) == total else None


def sliced(node: "onnx.NodeProto", given: _Given) -> list[tuple[int, int, int, int]] | None:
    """Return axis, start, end and step of a ``Slice``; None if unknown."""
    parts: list[list[int]] = []
    if attribute(node, "starts", ()):
        parts = [list(attribute(node, name, ())) for name in ("starts", "ends", "axes", "steps")]
    else:
        for one in given[1:]:
            if one is not None and one.numbers is None:
                return None
            parts.append([] if one is None or one.numbers is None else one.numbers.reshape(-1).tolist())
    starts, ends, axes, steps = (*parts, [], [], [], [])[:4]
    axes, steps = axes or [*range(len(starts))], steps or [1] * len(starts)
    return [*zip(map(int, axes), map(int, starts), map(int, ends), map(int, steps), strict=True)]


def _slice(node: "onnx.NodeProto", given: _Given) -> Dims | None:
    dims, cuts = list(known_dims(given[0])), sliced(node, given)
    if cuts is None:
        return None
    for axis, start, end, step in cuts:
        extent = dims[axis]
        if step < 0 and end < -extent:
            dims[axis] = len(range(extent)[start::step])
        else:
            dims[axis] = len(range(extent)[start:end:step])
    return tuple(dims)


def _split(node: "onnx.NodeProto", given: _Given) -> list[KnownTensor]:
    dims = known_dims(given[0])
    axis, count = attribute(node, "axis", 0) % len(dims), len(node.output)
    lengths = split_lengths(node, given)
    if lengths is None:
        step = -(-dims[axis] // count)
        lengths = [min(step, max(0, dims[axis] - at * step)) for at in range(count)]
    return [KnownTensor((*dims[:axis], length, *dims[axis + 1 :])) for length in lengths]


def split_lengths(node: "onnx.NodeProto", given: _Given) -> list[int] | None:
    """Return the lengths that a ``Split`` requests; None if it makes equal parts."""
    listed = attribute(node, "split", ())
    second = given[1] if len(given) > 1 else None
    if not listed and second is not None:
        if second.numbers is None:
            raise TypeError
        listed = second.numbers.reshape(-1).tolist()
    return [int(one) for one in listed] or None


def _recurrence(node: "onnx.NodeProto", given: _Given) -> list[KnownTensor]:
    if attribute(node, "layout", 0):
        return []
    (sequence, batch, _), recurrent = known_dims(given[0]), known_dims(given[2])
    state = KnownTensor((recurrent[0], batch, recurrent[-1]))
    return [KnownTensor((sequence, recurrent[0], batch, recurrent[-1])), state, state]


def _top_k(node: "onnx.NodeProto", given: _Given) -> list[KnownTensor]:
    dims, count = list(known_dims(given[0])), given[1]
    if count is None or count.numbers is None:
        return []
    dims[attribute(node, "axis", -1)] = int(count.numbers.reshape(-1)[0])
    return [KnownTensor(tuple(dims))] * 2


def _of_one(dims_of: Callable[["onnx.NodeProto", _Given], Dims | None]) -> "_Rule":
    """Return the rule of operators with one result, from what gives its shape."""

    def rule(node: "onnx.NodeProto", given: _Given) -> list[KnownTensor]:
        found = _of_dims(dims_of(node, given))
        return [] if found.dims is None else [found._replace(numbers=_numbers_of_shape(node, given))]

    return rule


def _of_dims(dims: Dims | None) -> KnownTensor:
    """Return a tensor of these extents; nothing if one of them makes no sense."""
    plausible = dims is not None and all(0 <= extent < _MOST_EXTENT for extent in dims)
    return KnownTensor(dims) if plausible else NOTHING


_Rule = Callable[["onnx.NodeProto", _Given], list[KnownTensor]]
_OTHERS = _of_one(_by_work)
_RULES: Mapping[str, _Rule] = rules_of(
    lambda row: row.shape,
    {
        "arg": _of_one(_arg),
        "broadcast": _of_one(_broadcast),
        "depth_to_space": _of_one(_depth_to_space),
        "expand": _of_one(_expand),
        "gemm": _of_one(_gemm),
        "like_first": _of_one(_like_first),
        "matmul": _of_one(_product),
        "quantized_broadcast": _of_one(_quantized_broadcast),
        "recurrence": _recurrence,
        "reshape": _of_one(_reshape),
        "scalar": _of_one(lambda _node, _given: ()),
        "slice": _of_one(_slice),
        "space_to_depth": _of_one(_space_to_depth),
        "split": _split,
        "top_k": _top_k,
    },
)
"""Operator -> the rule that the book of operators names; others go by ``harness.corpus.work``."""
