"""What a fault is: in which nodes it shows, and what it does to their result."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import onnx
import onnx.helper

Array = np.ndarray[Any, Any]


class Site:
    """One node of a model's main graph in one run, with the tensors that it reads and makes.

    Args:
        graph: The main graph.
        opset: Version of ONNX's operators.
        node: The node.
        values: The tensors of the healthy run by name.
    """

    def __init__(
        self, graph: onnx.GraphProto, opset: int, node: onnx.NodeProto, values: Mapping[str, Any]
    ) -> None:
        self.graph = graph
        self.opset = opset
        self.node = node
        self.values = values

    @property
    def op(self) -> str:
        """The operator."""
        return str(self.node.op_type)

    @cached_property
    def given(self) -> dict[str, Any]:
        """The attributes that the node has; texts as such."""
        found = {one.name: onnx.helper.get_attribute_value(one) for one in self.node.attribute}
        return {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}

    def has(self, index: int) -> bool:
        """Whether the node has an input of this index."""
        return len(self.node.input) > index and bool(self.node.input[index])

    def x(self, index: int = 0) -> Array:
        """An input; an empty tensor of rank 0 to 1 if it is not there."""
        found = self.values.get(self.node.input[index]) if self.has(index) else None
        return found if isinstance(found, np.ndarray) else np.zeros(0, np.float32)

    @property
    def y(self) -> Array:
        """The first output of the healthy run."""
        array: Array = self.values[self.node.output[0]]
        return array

    def is_weight(self, index: int) -> bool:
        """Whether an input is an initializer."""
        return self.has(index) and self.node.input[index] in {one.name for one in self.graph.initializer}

    def maker(self, index: int = 0) -> onnx.NodeProto | None:
        """The node that makes an input; None if none does."""
        name = self.node.input[index] if self.has(index) else ""
        return next((node for node in self.graph.node if name and name in node.output), None)

    def behind(self, op_type: str, index: int = 0) -> bool:
        """Whether an input comes from a node of an operator."""
        maker = self.maker(index)
        return maker is not None and maker.op_type == op_type and not maker.domain

    def readers(self, name: str) -> int:
        """How many nodes read a tensor."""
        return sum(name in node.input for node in self.graph.node)


Applies = Callable[[Site], bool]
Damage = Callable[[Site], Array]


def off(site: Site) -> Array:
    """Make the whole result wrong."""
    return _off(site.y)


def last(axis: int) -> Damage:
    """Make the last entry along an axis wrong."""

    def damage(site: Site) -> Array:
        if site.y.ndim <= axis or not site.y.size:
            return _off(site.y)
        y = site.y.copy()
        places: Any = (slice(None),) * axis + (-1,)
        y[places] = _off(y[places])
        return y

    return damage


def _off(y: Array) -> Array:
    if y.dtype == np.bool_:
        return ~y
    is_float = "float" in y.dtype.name
    factor, more = (1.25, 0.5) if is_float else (1, 1)
    spoilt: Array = y * np.array(factor, y.dtype) + np.array(more, y.dtype)
    return spoilt.astype(y.dtype, copy=False)


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of fault.

    Attributes:
        name: Of the fault.
        kind: Of rarity.
        ops: Operators that it is in; all if empty.
        applies: Whether a node has the form.
        damage: Returns the wrong first output.
    """

    name: str
    kind: str
    ops: frozenset[str]
    applies: Applies
    damage: Damage = off


def fault(kind: str, name: str, ops: str, applies: Applies, damage: Damage = off) -> Fault:
    """Return a fault; operators are separated by blanks."""
    return Fault(name=name, kind=kind, ops=frozenset(ops.split()), applies=applies, damage=damage)
