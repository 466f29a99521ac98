"""The numbers of small tensors, such as shapes and axes, computed without a session."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.core.values.value import DTYPES, STRING
from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.corpus.model.nodes import number_of
from harness.corpus.work.size import SIZE_ERRORS, attribute
from harness.operators.book import operators_by

if TYPE_CHECKING:
    import onnx

NumberArray = np.ndarray[Any, np.dtype[Any]]

MOST_NUMBERS = 64
"""Elements of a tensor whose numbers are followed: a shape, axes, or a window."""


def result_numbers(node: "onnx.NodeProto", given: Sequence[NumberArray | None]) -> NumberArray | None:
    """Return the numbers of a node's first result; None if they are unknown or too many."""
    rule = _RULES.get(node.op_type)
    if rule is None or any(one is None for one in given):
        return None
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(rule(node, given))
    except (*SIZE_ERRORS, MemoryError):
        return None
    return found if found.size <= MOST_NUMBERS else None


def _both(function: Callable[..., Any]) -> "_Rule":
    return lambda _node, given: function(*given)


def _folded(function: Callable[..., Any]) -> "_Rule":
    """Return the rule of an operator with any number of inputs."""

    def rule(_node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
        found = given[0]
        for one in given[1:]:
            found = function(found, one)
        return found

    return rule


def _quotient(one: Any, other: Any) -> Any:
    """Divide; integers are truncated towards zero."""
    if not np.issubdtype(one.dtype, np.integer):
        return one / other
    if not other.all():
        raise ZeroDivisionError
    return np.trunc(one / other).astype(one.dtype)


def _cast(node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
    dtype = ELEMENT_TYPES.get(int(number_of(node, "to", 0)), "")
    if dtype == STRING:
        raise TypeError
    return given[0].astype(DTYPES[dtype])


def _axes(node: "onnx.NodeProto", given: Sequence[Any]) -> tuple[int, ...]:
    listed = attribute(node, "axes", ()) or (given[1].reshape(-1).tolist() if len(given) > 1 else ())
    return tuple(map(int, listed))


def _squeeze(node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
    axes = _axes(node, given)
    return np.squeeze(given[0], axes or None)


def _slice(node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
    starts, ends = attribute(node, "starts", ()), attribute(node, "ends", ())
    axes, steps = attribute(node, "axes", ()), ()
    if not starts:
        starts, ends, *more = (one.reshape(-1).tolist() for one in given[1:])
        axes, steps = (*more, (), ())[:2]
    cut: list[Any] = [slice(None)] * given[0].ndim
    for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
        step = steps[at] if steps else 1
        # Backwards beyond the first element: Python would count such a number from the end.
        stop = None if step < 0 and end < -given[0].shape[axes[at] if axes else at] else end
        cut[axes[at] if axes else at] = slice(start, stop, step)
    return given[0][tuple(cut)]


def _gather(node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
    return np.take(given[0], given[1].astype(np.int64), attribute(node, "axis", 0))


def _reduction(function: Callable[..., Any]) -> "_Rule":
    def rule(node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
        axes = _axes(node, given)
        if not axes and attribute(node, "noop_with_empty_axes", 0):
            return given[0]
        return function(given[0], axis=axes or None, keepdims=bool(attribute(node, "keepdims", 1)))

    return rule


def _reshape(_node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
    return given[0].reshape([int(one) for one in given[1].reshape(-1)])


def _filled(node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
    dims = [int(one) for one in given[0].reshape(-1)]
    if np.prod(dims, dtype=np.float64) > MOST_NUMBERS:
        raise ValueError
    of = next((one.t for one in node.attribute if one.name == "value"), None)
    if of is None:
        return np.zeros(dims, np.float32)
    from onnx import numpy_helper

    return np.full(dims, numpy_helper.to_array(of).reshape(-1)[0])


def _range(_node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
    start, limit, step = (one.reshape(-1)[0] for one in given)
    if abs((limit - start) / step) > MOST_NUMBERS:
        raise ValueError
    return np.arange(start, limit, step)


def _concatenation(node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
    return np.concatenate(given, attribute(node, "axis", 0))


def _unsqueeze(node: "onnx.NodeProto", given: Sequence[Any]) -> Any:
    return np.expand_dims(given[0], _axes(node, given))


_Rule = Callable[["onnx.NodeProto", Sequence[Any]], Any]

_NUMBERS: dict[str, _Rule] = {
    "cast": _cast,
    "concatenation": _concatenation,
    "filled": _filled,
    "gather": _gather,
    "identity": _both(lambda one: one),
    "maximum": _folded(np.maximum),
    "minimum": _folded(np.minimum),
    "quotient": _both(_quotient),
    "range": _range,
    "reduce_max": _reduction(np.max),
    "reduce_min": _reduction(np.min),
    "reduce_prod": _reduction(np.prod),
    "reduce_sum": _reduction(np.sum),
    "reshape": _reshape,
    "size": lambda _node, given: np.array(given[0].size, np.int64),
    "slice": _slice,
    "squeeze": _squeeze,
    "transpose": lambda node, given: np.transpose(given[0], attribute(node, "perm", None)),
    "unsqueeze": _unsqueeze,
}
"""Rules of the book of operators that are more than one function of numpy."""


def _rule_of(name: str) -> _Rule:
    module, _, function = name.partition(".")
    return _both(getattr(np, function)) if module == "np" else _NUMBERS[name]


_RULES = {op: _rule_of(name) for op, name in operators_by(lambda row: row.numbers).items()}
"""Operator -> what computes it."""
