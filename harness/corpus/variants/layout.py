"""Other layouts: an operator on transposed tensors, whose result is transposed back."""

from collections.abc import Sequence
from typing import Any

import onnx

from harness.corpus.nodes import number_of, operators
from harness.corpus.variants.draft import Draft, Part, Type, attributes_of
from harness.corpus.variants.pieces import UNARY
from harness.corpus.variants.transformation import Transformation, change_a_node

_BINARY = operators("Add Sub Mul Div Max Min And Or Xor")
_ALONG_AN_AXIS = operators("Softmax LogSoftmax Concat")
"""Operators with an axis, which moves with the layout."""

_IMAGE_RANK, _SEQUENCE_RANK = 4, 3


def elements_turned(draft: Draft) -> str:
    """Transpose the operands of an operator on single elements, and its result back.

    Each element is computed from the same operands; see ``cut_through`` about the last bits.
    """
    return change_a_node(draft, draft.nodes(UNARY | _BINARY), _turned)


def axis_moved(draft: Draft) -> str:
    """Let an operator work along another axis, to which a transposition moved its own."""
    return change_a_node(draft, draft.nodes(_ALONG_AN_AXIS), _moved)


def image_turned(draft: Draft) -> str:
    """Convolve an image whose height and width are exchanged, with filters that are turned likewise."""
    return change_a_node(draft, draft.nodes({"Conv"}), _turned_image)


def sequence_as_image(draft: Draft) -> str:
    """Convolve a sequence as an image of height 1: each sum has the same terms."""
    return change_a_node(draft, draft.nodes({"Conv"}), _lifted)


def _turned(part: Part, node: onnx.NodeProto, kind: Type) -> str:
    kinds = [part.draft.type_of(name) for name in node.input]
    if kind.rank < 2 or len({len(one.shape) for one in kinds}) != 1:  # noqa: PLR2004 - one axis has one order
        return ""
    order = _order(part, kind.rank)
    turned = [part.op("Transpose", name, perm=order) for name in node.input]
    return part.op("Transpose", part.like(node, turned), perm=_inverse(order))


def _moved(part: Part, node: onnx.NodeProto, kind: Type) -> str:
    if kind.rank < 2:  # noqa: PLR2004 - one axis has one order
        return ""
    order = _order(part, kind.rank)
    axis = int(number_of(node, "axis", -1)) % kind.rank
    turned = [part.op("Transpose", name, perm=order) for name in node.input]
    moved = part.op(node.op_type, *turned, axis=order.index(axis))
    return part.op("Transpose", moved, perm=_inverse(order))


def _turned_image(part: Part, node: onnx.NodeProto, kind: Type) -> str:
    given = attributes_of(node)
    if kind.rank != _IMAGE_RANK or given.get("auto_pad", "NOTSET") not in {"NOTSET", "VALID"}:
        return ""
    if part.draft.type_of(node.input[1]).rank != _IMAGE_RANK:
        return ""
    order = [0, 1, 3, 2]
    pads = given.get("pads")
    swapped: dict[str, Any] = {
        "group": given.get("group"),
        "auto_pad": given.get("auto_pad"),
        "pads": pads and [pads[1], pads[0], pads[3], pads[2]],
        **{name: _swapped(given.get(name)) for name in ("kernel_shape", "strides", "dilations")},
    }
    x, w = (part.op("Transpose", name, perm=order) for name in node.input[:2])
    return part.op("Transpose", part.op("Conv", x, w, *node.input[2:], **swapped), perm=order)


def _lifted(part: Part, node: onnx.NodeProto, kind: Type) -> str:
    given = attributes_of(node)
    if kind.rank != _SEQUENCE_RANK or given.get("auto_pad", "NOTSET") not in {"NOTSET", "VALID"}:
        return ""
    pads = given.get("pads")
    lifted: dict[str, Any] = {
        "group": given.get("group"),
        "auto_pad": given.get("auto_pad"),
        "pads": pads and [0, pads[0], 0, pads[1]],
        **{
            name: [1, *given[name]] if name in given else None
            for name in ("kernel_shape", "strides", "dilations")
        },
    }
    axis = part.ints(2)
    x, w = (part.op("Unsqueeze", name, axis) for name in node.input[:2])
    return part.op("Squeeze", part.op("Conv", x, w, *node.input[2:], **lifted), axis)


def _order(part: Part, rank: int) -> list[int]:
    order = list(range(rank))
    while order == sorted(order):
        order = part.draft.random.some(order, len(order))
    return order


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]


def _swapped(sizes: list[int] | None) -> list[int] | None:
    return sizes and sizes[::-1]


LAYOUT: tuple[Transformation, ...] = (
    Transformation(name="elements turned", apply=elements_turned, exact=False),
    Transformation(name="axis moved", apply=axis_moved, exact=False),
    Transformation(name="image turned", apply=image_turned, exact=False),
    Transformation(name="sequence as image", apply=sequence_as_image, exact=False),
)
