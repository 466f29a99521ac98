"""Tensors that a graph copies or chooses from its inputs and constants, or rounds once to nearest."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.corpus.model.element_types import ELEMENT_TYPES, NARROWER
from harness.corpus.model.nodes import constant_of, domain_of, number_of
from harness.operators.book import operators_by

if TYPE_CHECKING:
    import onnx

_COPYING = operators_by(lambda row: row.copies)
"""Operators that copy or choose elements -> input whose type they have."""

_CASTING = frozenset({"Cast", "CastLike"})


class Copy(NamedTuple):
    """A tensor whose elements each have one right answer.

    Attributes:
        dtype: Its element type; empty if unknown.
        rounding: Operators on the way that round.
    """

    dtype: str
    rounding: frozenset[str] = frozenset()


def copies_of(nodes: "Iterable[onnx.NodeProto]", given: Mapping[str, int]) -> dict[str, Copy]:
    """Return the copies of a graph by their names, including the given ones.

    Args:
        nodes: In topological order.
        given: Input or weight -> ONNX's number for its element type.
    """
    found = {name: Copy(ELEMENT_TYPES.get(number, "")) for name, number in given.items()}
    for node in nodes:
        read = [found[name] for name in node.input if name in found]
        if domain_of(node) or len(read) < sum(map(bool, node.input)):
            continue
        dtype = _type_of(node, [one.dtype for one in read])
        if not dtype:
            continue
        rounding = frozenset[str]().union(*(one.rounding for one in read))
        if node.op_type in _CASTING and not _holds(dtype, read[0].dtype):
            rounding |= {node.op_type}
        # Further outputs are positions, counts and masks.
        names = node.output if node.op_type == "Split" else node.output[:1]
        found.update(dict.fromkeys(names, Copy(dtype, rounding)))
    return found


def _type_of(node: "onnx.NodeProto", read: Sequence[str]) -> str:
    """Return the element type that a node copies, chooses or rounds to; empty if it computes something.

    Args:
        node: Of ONNX's own domain, with exact operands.
        read: Their element types.
    """
    op = node.op_type
    if op == "Constant":
        value = constant_of(node)
        return "" if value is None else ELEMENT_TYPES.get(value.data_type, "")
    if op in _CASTING:
        to = ELEMENT_TYPES.get(int(number_of(node, "to", 0)), "") if op == "Cast" else read[1]
        # Accelerators convert other types in two steps, by way of float32, and so round twice.
        return to if read[0] in NARROWER or (read[0], to) == ("float64", "float32") else ""
    at = _COPYING.get(op, len(read))
    return read[at] if at < len(read) else ""


def _holds(wide: str, narrow: str) -> bool:
    """Return whether a type holds all values of another one, as far as casts between them are followed."""
    return wide == narrow or (wide == "float32" and narrow in NARROWER)
