"""Operators whose result ONNX leaves undefined for some values, and which graph outputs such results reach.

A new rule is one entry of ``RULES``. Only nodes of the graph itself are looked at; what happens in bodies and
local functions excuses nobody.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.value import DTYPES, Array, Tensor, Value
from harness.corpus.element_types import ELEMENT_TYPES
from harness.corpus.port import model_text
from harness.corpus.schema_types import bodies, domain_of

if TYPE_CHECKING:
    import onnx

MOST = 64
"""Nodes of a model that are looked at; their inputs are computed and compared once more."""

UNSIGNED_FLOAT = "float8e8m0"
"""The floating type without a sign."""

_LARGEST = 1 << 24
"""Elements of a tensor that are looked at."""


class Partial(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose operator has no defined result for some values.

    Attributes:
        op: The operator.
        inputs: Names of the tensors that it reads; empty where one is left out.
        axis: Its attribute ``axis``.
        to: Of a ``Cast`` the element type of the result.
        reaches: Graph outputs that depend on its result.
    """

    op: str
    inputs: tuple[str, ...]
    axis: int = 0
    to: str = ""
    reaches: tuple[str, ...] = ()


Rule = Callable[[Partial, tuple[Array | None, ...]], str]
"""Node and the values that it reads -> why its result is undefined; empty where it is defined."""


def partials_of(model: "onnx.ModelProto") -> tuple[Partial, ...]:
    """The nodes of a graph whose operators have no defined result for some values."""
    graph = model.graph
    outputs = {info.name for info in graph.output}
    reached: dict[str, frozenset[str]] = {name: frozenset({name}) for name in outputs}
    for node in reversed(graph.node):
        reaches = frozenset[str]().union(*(reached.get(name, frozenset()) for name in node.output))
        for name in _read(node):
            reached[name] = reached.get(name, frozenset()) | reaches
    found = []
    for node in graph.node:
        reaches = frozenset[str]().union(*(reached.get(name, frozenset()) for name in node.output))
        if domain_of(node) or node.op_type not in RULES or not reaches or not _may_be_undefined(node):
            continue
        found.append(
            Partial(
                op=node.op_type,
                inputs=tuple(map(model_text, node.input)),
                axis=_attribute(node, "axis", 0),
                to=ELEMENT_TYPES.get(_attribute(node, "to", 0), ""),
                reaches=tuple(sorted(map(model_text, reaches))),
            )
        )
    return tuple(found[:MOST])


def hidden_from(partials: Iterable[Partial], known: Iterable[str]) -> tuple[str, ...]:
    """Names of tensors that rules read and that are not among the known ones, sorted."""
    return tuple(sorted({name for one in partials for name in one.inputs if name} - set(known)))


def undefined_outputs(partials: Iterable[Partial], values: Mapping[str, Value]) -> dict[str, str]:
    """Graph output -> why its values are undefined.

    Args:
        partials: The nodes.
        values: The tensors that they read, by name; where one is missing, nothing is undefined.
    """
    found: dict[str, str] = {}
    for node in partials:
        given = tuple(_array(values.get(name)) for name in node.inputs)
        if why := RULES[node.op](node, given):
            for name in node.reaches:
                found.setdefault(name, why)
    return found


def _read(node: "onnx.NodeProto") -> "Iterable[str]":
    """What a node reads, what its bodies read from outside included."""
    yield from node.input
    for body in bodies(node):
        for inner in body.node:
            yield from _read(inner)


def _may_be_undefined(node: "onnx.NodeProto") -> bool:
    if node.op_type == "Cast":
        to = ELEMENT_TYPES.get(_attribute(node, "to", 0), "")
        return "int" in to or to == UNSIGNED_FLOAT
    reduces = any(one.name == "reduction" and one.s not in {b"", b"none"} for one in node.attribute)
    return not reduces


def _attribute(node: "onnx.NodeProto", name: str, default: int) -> int:
    return next((int(one.i) for one in node.attribute if one.name == name), default)


def _array(value: Value | None) -> Array | None:
    if not isinstance(value, Tensor) or value.array.size > _LARGEST:
        return None
    return value.array


def _is_floating(array: Array) -> bool:
    return "float" in array.dtype.name


def _cast(node: Partial, given: tuple[Array | None, ...]) -> str:
    """Text of Cast: from floating point to fixed point "undefined if OOR", out of range."""
    data = given[0]
    if data is None or not _is_floating(data) or node.to not in DTYPES:
        return ""
    if node.to == UNSIGNED_FLOAT:  # "Casting negative values to FLOAT8E8M0 gives undefined behavior."
        return f"Cast of a negative value to {node.to}" if np.any(data.astype(np.float64) < 0) else ""
    return _out_of_range(data, node.to)


def _quantized(node: Partial, given: tuple[Array | None, ...]) -> str:
    """Saturation says nothing about NaN (QuantizeLinear, DynamicQuantizeLinear)."""
    data = given[0]
    if data is None or not _is_floating(data) or not np.isnan(data.astype(np.float64)).any():
        return ""
    return f"{node.op} of NaN to an integer"


def _power(node: Partial, given: tuple[Array | None, ...]) -> str:
    """A negative base has a real power for whole exponents only; the text of Pow names no other result."""
    del node
    base, exponent = given[:2] if len(given) > 1 else (None, None)
    if base is None or exponent is None or not _broadcast(base, exponent):
        return ""
    fraction = exponent.astype(np.float64) != np.floor(exponent.astype(np.float64))
    negative = base.astype(np.float64) < 0
    return "Pow of a negative base with a fraction as exponent" if np.any(negative & fraction) else ""


def _divided(node: Partial, given: tuple[Array | None, ...]) -> str:
    """ONNX gives no result for a division of integers by zero, and C none either (Div, Mod)."""
    divisor = given[1] if len(given) > 1 else None
    if divisor is None or not np.issubdtype(divisor.dtype, np.integer) or divisor.all():
        return ""
    return f"{node.op} of integers by zero"


def _shifted(node: Partial, given: tuple[Array | None, ...]) -> str:
    """A shift by the width of the type or more has no defined result in C (BitShift)."""
    del node
    by = given[1] if len(given) > 1 else None
    if by is None or not np.issubdtype(by.dtype, np.integer) or not np.any(by >= 8 * by.dtype.itemsize):
        return ""
    return "BitShift by the width of the type or more"


def _scattered(node: Partial, given: tuple[Array | None, ...]) -> str:
    """Text of ScatterElements: without a reduction "indices should not have duplicate entries"."""
    data, indices = given[:2] if len(given) > 1 else (None, None)
    if data is None or indices is None or data.ndim != indices.ndim or not indices.size:
        return ""
    if not -data.ndim <= node.axis < data.ndim:
        return ""
    size = data.shape[node.axis]
    along = np.sort(np.where(indices < 0, indices + size, indices), axis=node.axis)
    twice = np.any(np.diff(along, axis=node.axis) == 0)
    return f"{node.op} to the same element twice, without a reduction" if twice else ""


def _scattered_tuples(node: Partial, given: tuple[Array | None, ...]) -> str:
    """Text of ScatterND: "indices should not have duplicate entries"."""
    data, indices = given[:2] if len(given) > 1 else (None, None)
    if data is None or indices is None or not indices.size or not 0 < indices.shape[-1] <= data.ndim:
        return ""
    sizes = np.array(data.shape[: indices.shape[-1]])
    tuples = indices.reshape(-1, indices.shape[-1])
    tuples = np.where(tuples < 0, tuples + sizes, tuples)
    twice = len(np.unique(tuples, axis=0)) < len(tuples)
    return f"{node.op} to the same element twice, without a reduction" if twice else ""


def _out_of_range(data: Array, dtype: str) -> str:
    numbers = data.astype(np.float64)
    if not np.isfinite(numbers).all():
        return f"Cast of NaN or infinity to {dtype}"
    low, high = _limits(dtype)
    whole = np.trunc(numbers)
    if np.any(whole < low) or np.any(whole > high):
        worst = numbers.reshape(-1)[int(np.argmax(np.maximum(low - whole, whole - high)))]
        return f"Cast of {worst:.6g} to {dtype}, which holds {low} to {high}"
    return ""


def _limits(dtype: str) -> tuple[int, int]:
    bits = int(dtype.rpartition("int")[2])
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _broadcast(one: Array, other: Array) -> bool:
    try:
        np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return False
    return True


RULES: dict[str, Rule] = {
    "BitShift": _shifted,
    "Cast": _cast,
    "Div": _divided,
    "DynamicQuantizeLinear": _quantized,
    "Mod": _divided,
    "Pow": _power,
    "QuantizeLinear": _quantized,
    "Scatter": _scattered,
    "ScatterElements": _scattered,
    "ScatterND": _scattered_tuples,
}
"""Operator of ONNX's own domain -> when its result is undefined."""
