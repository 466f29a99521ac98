"""Tensors that count along an axis: 0, 1, 2 and so on, as a mask of padding is made of them.

Such a mask is ``Less(Range(0, extent, 1), lengths)``, whatever the input of the lengths is called.
"""

from collections import ChainMap
from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from harness.corpus.model.node_use import Use
from harness.operators.book import operators_with
from harness.operators.value_domains import Extent, Extents

if TYPE_CHECKING:
    import onnx

_KEEPS_VALUES = operators_with(lambda row: row.keeps_values)
_OPEN_END = 1 << 40


class AxisCounts:
    """What is known by the names of tensors; an inner scope sees the facts of the outer one."""

    def __init__(self, outer: "AxisCounts | None" = None) -> None:
        self.extents: MutableMapping[str, Extents] = ChainMap({}, outer.extents if outer else {})
        """Tensor -> its elements, which are extents of axes."""
        self.positions: MutableMapping[str, Extent] = ChainMap({}, outer.positions if outer else {})
        """Tensor that holds such positions -> the extent of their axis."""

    def alias(self, name: str, outer: "AxisCounts", of: str) -> None:
        """Give a name the facts that another scope has under another name."""
        if of in outer.extents:
            self.extents[name] = outer.extents[of]
        if of in outer.positions:
            self.positions[name] = outer.positions[of]

    def fact(self, name: str) -> tuple[Extents | None, Extent | None]:
        """Return what is known of a tensor: the extents that it holds, and the axis that it counts along."""
        return self.extents.get(name), self.positions.get(name)

    def follow(self, node: "onnx.NodeProto", use: Use) -> None:
        """Note what the result of a node of ONNX's own domain counts."""
        if not node.input or not node.output:
            return
        name = node.output[0]
        if node.op_type == "Range":
            limit = self.extents.get(node.input[1], ())
            if use.constant(0) == (0,) and use.constant(2) == (1,) and len(limit) == 1 and limit[0]:
                self.positions[name] = limit[0]
        elif node.op_type in _KEEPS_VALUES and node.input[0] in self.positions:
            self.positions[name] = self.positions[node.input[0]]
        found = _extents_in(node, use, self.extents.get(node.input[0], ()))
        if found:
            self.extents[name] = found


def _extents_in(node: "onnx.NodeProto", use: Use, given: Extents) -> Extents:
    """Return the extents of axes that the result of a node holds; ``given`` are those of its first input."""
    if node.op_type == "Shape":
        first, end = int(use.number("start", 0)), int(use.number("end", _OPEN_END))
        return (use.shape(0) or ())[first:end]
    if node.op_type == "Gather":
        return tuple(given[int(at)] for at in use.constant(1) if -len(given) <= at < len(given))
    if node.op_type == "Slice":
        starts, ends, steps = use.constant(1), use.constant(2), use.constant(4) or (1,)
        plain = len(starts) == len(ends) == 1 and steps == (1,)
        return given[int(starts[0]) : int(ends[0])] if plain else ()
    return given if len(given) == 1 and node.op_type in _KEEPS_VALUES else ()
