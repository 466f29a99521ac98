"""Other layouts: an operator on transposed tensors, whose result is transposed back."""

from collections.abc import Callable
from typing import Any

import onnx

from harness.annex.made.variants.draft import NewNodes, Type, attributes_of, inverse
from harness.annex.made.variants.pieces import UNARY
from harness.annex.made.variants.transformation import Transformation, change
from harness.corpus.model.nodes import number_of, operator_set

_BINARY = operator_set("Add Sub Mul Div Max Min And Or Xor")
_ALONG_AN_AXIS = operator_set("Softmax LogSoftmax Concat")
"""Operators with an axis, which moves with the layout."""

_IMAGE_RANK, _SEQUENCE_RANK = 4, 3


def elements_turned(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Transpose the operands of an elementwise operator, and its result back.

    Each element is computed from the same operands; see ``cut_through`` about the last bits.
    """
    kinds = [part.draft.type_of(name) for name in node.input]
    if kind.rank < 2 or len({len(one.shape) for one in kinds}) != 1:  # noqa: PLR2004 - one axis has one order
        return ""
    order = _order(part, kind.rank)
    turned = [part.op("Transpose", name, perm=order) for name in node.input]
    return part.op("Transpose", part.like(node, turned), perm=inverse(order))


def axis_moved(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Let an operator work along another axis, after a transposition has moved its own axis there."""
    if kind.rank < 2:  # noqa: PLR2004 - one axis has one order
        return ""
    order = _order(part, kind.rank)
    axis = int(number_of(node, "axis", -1)) % kind.rank
    turned = [part.op("Transpose", name, perm=order) for name in node.input]
    moved = part.op(node.op_type, *turned, axis=order.index(axis))
    return part.op("Transpose", moved, perm=inverse(order))


def image_turned(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Convolve an image with exchanged height and width, with filters exchanged likewise."""
    swapped = _in_other_space(node, lambda sizes, _: sizes[::-1])
    if {kind.rank, part.draft.type_of(node.input[1]).rank} != {_IMAGE_RANK} or swapped is None:
        return ""
    order = [0, 1, 3, 2]
    x, w = (part.op("Transpose", name, perm=order) for name in node.input[:2])
    return part.op("Transpose", part.op("Conv", x, w, *node.input[2:], **swapped), perm=order)


def sequence_as_image(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Convolve a sequence as an image of height 1: each sum has the same terms."""
    lifted = _in_other_space(node, lambda sizes, neutral: [neutral, *sizes])
    if kind.rank != _SEQUENCE_RANK or lifted is None:
        return ""
    axis = part.ints(2)
    x, w = (part.op("Unsqueeze", name, axis) for name in node.input[:2])
    return part.op("Squeeze", part.op("Conv", x, w, *node.input[2:], **lifted), axis)


def _in_other_space(
    node: onnx.NodeProto, change_sizes: Callable[[list[int], int], list[int]]
) -> dict[str, Any] | None:
    """Return the attributes of a convolution with other sizes; None if its padding depends on the image.

    ``change_sizes`` gets the sizes along each axis, and the size that changes nothing.
    """
    given = attributes_of(node)
    if given.get("auto_pad", "NOTSET") not in {"NOTSET", "VALID"}:
        return None
    for name in given.keys() & {"kernel_shape", "strides", "dilations"}:
        given[name] = change_sizes(given[name], 1)
    if pads := given.get("pads"):
        half = len(pads) // 2
        given["pads"] = change_sizes(pads[:half], 0) + change_sizes(pads[half:], 0)
    return given


def _order(part: NewNodes, rank: int) -> list[int]:
    order = list(range(rank))
    while order == sorted(order):
        order = part.draft.random.order(rank)
    return order


LAYOUT: tuple[Transformation, ...] = (
    change("elements turned", elements_turned, UNARY | _BINARY, exact=False),
    change("axis moved", axis_moved, _ALONG_AN_AXIS, exact=False),
    change("image turned", image_turned, {"Conv"}, exact=False),
    change("sequence as image", sequence_as_image, {"Conv"}, exact=False),
)
