"""A node as the rules of the book of operators read it: which values its operator is defined for."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.model.nodes import number_of
from harness.corpus.model.protos import few_numbers
from harness.operators.value_domains import Extent, Extents

if TYPE_CHECKING:
    import onnx

_SMALL_CONSTANT = 64
"""Elements of a constant that a rule may read."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A node as a rule reads it. Inputs go by their index; an unknown one is None or empty.

    Shapes, constants and counts are those that are known, by the names of tensors.
    """

    node: "onnx.NodeProto"
    shapes: Mapping[str, Extents]
    constants: "Mapping[str, onnx.TensorProto]"
    counts: Mapping[str, Extent]

    def number(self, attribute: str, default: float) -> float:
        """Return a numeric attribute of the node."""
        return number_of(self.node, attribute, default)

    def shape(self, index: int) -> Extents | None:
        """Return the shape of an input."""
        return self.shapes.get(self._name(index))

    def extent(self, index: int, axis: int) -> Extent | None:
        """Return the length of an axis of an input, unless it is unknown or 0."""
        shape = self.shape(index) or ()
        extent = shape[axis] if -len(shape) <= axis < len(shape) else None
        return None if isinstance(extent, int) and extent <= 0 else extent

    def count(self, index: int) -> Extent | None:
        """Return the length of the axis along which an input holds positions: 0, 1, 2 and so on."""
        return self.counts.get(self._name(index))

    def constant(self, index: int, most: int = _SMALL_CONSTANT) -> tuple[float, ...]:
        """Return the elements of an input that is a small constant."""
        return few_numbers(self.constants.get(self._name(index)), most)

    def _name(self, index: int) -> str:
        return self.node.input[index] if index < len(self.node.input) else ""
