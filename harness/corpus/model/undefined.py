"""Operators whose result ONNX leaves undefined for some values, and the graph outputs that depend on it.

The book of operators says which rule of ``_RULES`` an operator has. Only nodes of the graph itself count;
bodies and local functions do not.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.values.value import DTYPES, Array, Tensor, Value
from harness.corpus.model.element_types import ELEMENT_TYPES, limits_of
from harness.corpus.model.nodes import all_nodes, domain_of, number_of, opsets_of
from harness.corpus.model.port import model_text
from harness.operators.book import operators_by, rules_of

if TYPE_CHECKING:
    import onnx

_MOST = 64
"""Largest number of a model's nodes that are examined; their inputs are computed and compared."""

_LARGEST = 1 << 24
"""Largest number of elements of an examined tensor."""

_UNSIGNED_FLOAT = "float8e8m0"
"""The floating type without a sign."""

_FINITE_FLOAT = "float4e2m1"
"""The floating type without NaN and infinity."""

_NAN_TO_FINITE = f"Cast of NaN to {_FINITE_FLOAT}, which has none: ONNX's description says 6, its tests -0"

CONTESTED = frozenset({_NAN_TO_FINITE})
"""Reasons that also apply to outputs with expected data: ONNX contradicts itself.

The description is in ``docs/docsgen/source/technical/float4.md``, section *Cast*; the tests of onnx 1.23.2
have ml_dtypes' results for NaN.
"""


class Partial(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose operator has no defined result for some values.

    Attributes:
        inputs: Names of the tensors that it reads; empty for an omitted optional input.
        to: The element type of the result of a ``Cast``; empty for a ``CastLike``, which reads it.
        opset: Version of ONNX's operators that the model imports.
        reaches: Graph outputs that depend on its result.
    """

    op: str
    inputs: tuple[str, ...]
    axis: int = 0
    to: str = ""
    opset: int = 0
    reaches: tuple[str, ...] = ()


def partials_of(model: "onnx.ModelProto") -> tuple[Partial, ...]:
    """Return the nodes of a graph whose operators have no defined result for some values."""
    graph = model.graph
    opset = opsets_of(model).get("", 0)
    found = reaching(graph)
    if not found:
        return ()
    # One bit for each of them: a model may have as many outputs as nodes.
    own = {at: 1 << place for place, at in enumerate(found)}
    bits: dict[str, int] = {}
    for at, node in enumerate(graph.node):
        reached = own.get(at, 0)
        for name in _read(node):
            reached |= bits.get(name, 0)
        if reached:
            for name in filter(None, node.output):
                bits[name] = bits.get(name, 0) | reached
    reaches: list[set[str]] = [set() for _ in found]
    for info in graph.output:
        for index in _places(bits.get(info.name, 0)):
            reaches[index].add(model_text(info.name))
    return tuple(
        Partial(
            op=node.op_type,
            inputs=tuple(map(model_text, node.input)),
            axis=int(number_of(node, "axis", 0)),
            to=cast_target(node),
            opset=opset,
            reaches=tuple(sorted(names)),
        )
        for node, names in zip((graph.node[at] for at in found), reaches, strict=True)
    )


def reaching(graph: "onnx.GraphProto") -> list[int]:
    """Return the indices of the first nodes that may have an undefined result on which an output depends."""
    if not any(node.op_type in UNDEFINED_RULES for node in graph.node):
        return []  # most tests of operators
    live = {info.name for info in graph.output}
    found = []
    for at, node in zip(range(len(graph.node) - 1, -1, -1), reversed(graph.node), strict=True):
        if live.isdisjoint(node.output):
            continue
        live.update(_read(node))
        if not domain_of(node) and node.op_type in UNDEFINED_RULES and _may_be_undefined(node):
            found.append(at)
    return found[::-1][:_MOST]


def _read(node: "onnx.NodeProto") -> "Iterator[str]":
    """Yield the tensors that a node and its bodies read."""
    return (name for one in all_nodes([node]) for name in one.input if name)


def _places(bits: int) -> Iterator[int]:
    """Yield the indices of the set bits."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def hidden_from(partials: Iterable[Partial], known: Iterable[str]) -> tuple[str, ...]:
    """Return the names of tensors that rules read and that are unknown, sorted."""
    return tuple(sorted({name for one in partials for name in one.inputs if name} - set(known)))


def undefined_outputs(partials: Iterable[Partial], values: Mapping[str, Value]) -> dict[str, str]:
    """Return the graph outputs with undefined values, each with the reason; unknown inputs give none."""
    found: dict[str, str] = {}
    for node in partials:
        if node.opset >= _DEFINED_FROM.get(node.op, node.opset + 1):
            continue
        read, rule = UNDEFINED_RULES[node.op]
        given = [_array(values.get(node.inputs[index])) for index in read if index < len(node.inputs)]
        known = [array for array in given if array is not None]
        if len(known) == len(read) and (why := rule(node, *known)):
            for name in node.reaches:
                found.setdefault(name, why)
    return found


def cast_target(node: "onnx.NodeProto") -> str:
    """Return the element type to which a ``Cast`` leads; empty for another node."""
    return ELEMENT_TYPES.get(int(number_of(node, "to", 0)), "")


def can_be_settled(node: Partial) -> bool:
    """Return whether ``harness.corpus.derived.settled`` can give the undefined result of a node a value."""
    return node.op != "CastLike" and (node.op != "Cast" or "int" in node.to)


def _may_be_undefined(node: "onnx.NodeProto") -> bool:
    if node.op_type == "Cast":
        return _is_partial(cast_target(node))
    return not any(one.name == "reduction" and one.s not in {b"", b"none"} for one in node.attribute)


def _is_partial(to: str) -> bool:
    """Return whether a cast to an element type has values without a defined result."""
    return "int" in to or to in {_UNSIGNED_FLOAT, _FINITE_FLOAT}


def _array(value: Value | None) -> Array | None:
    return value.array if isinstance(value, Tensor) and value.array.size <= _LARGEST else None


def _is_floating(array: Array) -> bool:
    return "float" in array.dtype.name


def _is_whole(array: Array) -> bool:
    return np.issubdtype(array.dtype, np.integer)


def _cast(node: Partial, data: Array) -> str:
    """Text of Cast: from floating point to fixed point "undefined if OOR", out of range."""
    if not _is_floating(data) or node.to not in DTYPES:
        return ""
    numbers = data.astype(np.float64)
    if node.to == _UNSIGNED_FLOAT:  # "Casting negative values to FLOAT8E8M0 gives undefined behavior."
        return f"Cast of a negative value to {node.to}" if np.any(numbers < 0) else ""
    if node.to == _FINITE_FLOAT:
        return _NAN_TO_FINITE if np.isnan(numbers).any() else ""
    if not np.isfinite(numbers).all():
        return f"Cast of NaN or infinity to {node.to}"
    low, high = limits_of(node.to)
    whole = np.trunc(numbers)
    if np.any(whole < low) or np.any(whole > high):
        worst = numbers.reshape(-1)[int(np.argmax(np.maximum(low - whole, whole - high)))]
        return f"Cast of {worst:.6g} to {node.to}, which holds {low} to {high}"
    return ""


def _cast_like(node: Partial, data: Array, like: Array) -> str:
    """Text of CastLike: as Cast, to the type of its second input."""
    to = next((name for name, dtype in DTYPES.items() if dtype == like.dtype), "")
    return _cast(msgspec.structs.replace(node, to=to), data) if _is_partial(to) else ""


def _quantized(node: Partial, data: Array) -> str:
    """Saturation says nothing about NaN (QuantizeLinear, DynamicQuantizeLinear)."""
    if not _is_floating(data) or not np.isnan(data.astype(np.float64)).any():
        return ""
    return f"{node.op} of NaN to an integer"


def _power(_node: Partial, base: Array, exponent: Array) -> str:
    """A negative base has a real power for whole exponents only; the text of Pow names no other result."""
    try:
        np.broadcast_shapes(base.shape, exponent.shape)
    except ValueError:
        return ""
    fraction = exponent.astype(np.float64) != np.floor(exponent.astype(np.float64))
    negative = base.astype(np.float64) < 0
    return "Pow of a negative base with a fraction as exponent" if np.any(negative & fraction) else ""


def _divided(node: Partial, divisor: Array) -> str:
    """ONNX gives no result for a division of integers by zero, and C none either (Div, Mod)."""
    return f"{node.op} of integers by zero" if _is_whole(divisor) and not divisor.all() else ""


def _shifted(_node: Partial, by: Array) -> str:
    """A shift by the width of the type or more has no defined result in C (BitShift)."""
    if not _is_whole(by) or not np.any(by >= 8 * by.dtype.itemsize):
        return ""
    return "BitShift by the width of the type or more"


def _scattered(node: Partial, data: Array, indices: Array) -> str:
    """Text of ScatterElements: without a reduction "indices should not have duplicate entries"."""
    if data.ndim != indices.ndim or not indices.size or not -data.ndim <= node.axis < data.ndim:
        return ""
    size = data.shape[node.axis]
    along = np.sort(np.where(indices < 0, indices + size, indices), axis=node.axis)
    return _twice(node, at_all=bool(np.any(np.diff(along, axis=node.axis) == 0)))


def _scattered_tuples(node: Partial, data: Array, indices: Array) -> str:
    """Text of ScatterND: "indices should not have duplicate entries"."""
    if not indices.size or not 0 < indices.shape[-1] <= data.ndim:
        return ""
    sizes = np.array(data.shape[: indices.shape[-1]])
    tuples = indices.reshape(-1, indices.shape[-1])
    tuples = np.where(tuples < 0, tuples + sizes, tuples)
    return _twice(node, at_all=len(np.unique(tuples, axis=0)) < len(tuples))


def _twice(node: Partial, *, at_all: bool) -> str:
    return f"{node.op} to the same element twice, without a reduction" if at_all else ""


_RULES: dict[str, tuple[tuple[int, ...], Callable[..., str]]] = {
    "cast": ((0,), _cast),
    "cast_like": ((0, 1), _cast_like),
    "integer_division": ((1,), _divided),
    "nan": ((0,), _quantized),
    "power": ((0, 1), _power),
    "scatter": ((0, 1), _scattered),
    "scatter_tuples": ((0, 1), _scattered_tuples),
    "shift": ((1,), _shifted),
}
"""Rule of the book of operators -> the inputs that it reads, and what it does.

A rule takes the node and these inputs. It returns why the result is undefined, or an empty text.
"""

_DEFINED_FROM = operators_by(lambda row: row.defined_from)
UNDEFINED_RULES = rules_of(lambda row: row.undefined, _RULES)
"""Operator of ONNX's own domain -> its rule."""
