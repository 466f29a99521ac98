"""Tensors that count along an axis, and what is compared with them: lengths of rows, and positions in them.

A mask of padding is ``Less(Range(0, extent, 1), lengths)``, whatever the input of the lengths is called.
"""

from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

from harness.corpus.node_use import Use
from harness.corpus.nodes import operator_set
from harness.operators.value_domains import Domain, Extent, Extents

if TYPE_CHECKING:
    import onnx

_ORDERS = operator_set("Greater GreaterOrEqual Less LessOrEqual")
_KEEPS_NUMBERS = operator_set("Cast Expand Identity Reshape Squeeze Tile Unsqueeze")
_OPEN_END = 1 << 40


class AxisCounts:
    """What is known by the names of tensors; an inner scope sees the facts of the outer one."""

    def __init__(self, outer: "AxisCounts | None" = None) -> None:
        self.extents: MutableMapping[str, Extents] = ChainMap({}, outer.extents if outer else {})
        """Tensor -> its elements, which are extents of axes."""
        self.counts: MutableMapping[str, Extent] = ChainMap({}, outer.counts if outer else {})
        """Tensor that holds 0, 1, 2 and so on -> the extent up to which it counts."""

    def alias(self, name: str, outer: "AxisCounts", of: str) -> None:
        """Give a name the facts that another scope has under another name."""
        if of in outer.extents:
            self.extents[name] = outer.extents[of]
        if of in outer.counts:
            self.counts[name] = outer.counts[of]

    def follow(self, node: "onnx.NodeProto", use: Use) -> None:
        """Note what the result of a node of ONNX's own domain counts."""
        if not node.input or not node.output:
            return
        given = self.extents.get(node.input[0])
        found: Extents | None = None
        if node.op_type == "Shape":
            first, end = int(use.number("start", 0)), int(use.number("end", _OPEN_END))
            found = (use.shape(0) or ())[first:end]
        elif node.op_type == "Range":
            limit = self.extents.get(node.input[1], ())
            if use.constant(0) == (0,) and use.constant(2) == (1,) and len(limit) == 1 and limit[0]:
                self.counts[node.output[0]] = limit[0]
        elif node.op_type in _KEEPS_NUMBERS:
            self.alias(node.output[0], self, node.input[0])
        elif given is not None and node.op_type == "Gather":
            found = tuple(given[int(at)] for at in use.constant(1) if -len(given) <= at < len(given))
        elif given is not None and node.op_type == "Slice":
            starts, ends, steps = use.constant(1), use.constant(2), use.constant(4) or (1,)
            if len(starts) == len(ends) == 1 and steps == (1,):
                found = given[int(starts[0]) : int(ends[0])]
        if found:
            self.extents[node.output[0]] = found

    def compared(self, node: "onnx.NodeProto") -> Iterator[tuple[int, Domain]]:
        """Yield the inputs of a node that are compared with a count: their indices, and their values."""
        if node.op_type not in _ORDERS and node.op_type != "Equal":
            return
        for index, other in ((0, 1), (1, 0)):
            extent = self.counts.get(node.input[other])
            if extent is not None:
                is_equal = node.op_type == "Equal"
                yield index, Domain(extents=(extent,)) if is_equal else Domain(lengths=(extent,))
