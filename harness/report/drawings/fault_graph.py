"""The minimal model of a fault as a drawing: nodes as boxes with their attributes, tensors on the edges."""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, Literal

import msgspec

from harness.core.records.fault import GraphNode, GraphTensor, ReducedModel
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.drawings.graph_layout import BETWEEN_BOXES, Point, arrange
from harness.report.words.figures import first_of

MAX_NODES = 60
"""Larger models are described in words: nobody reads such a drawing."""

_MAX_BOXES = 160
_MAX_EDGES = 200
_MAX_ROWS = 8
_NAME_CHARS = 24
_ROW_CHARS = 34
_SHOWN_OPS = 8
_HEAD_PX = 26.0
_ROW_PX = 17.0
_LEAST_WIDTH = 96.0
_SIDE = 10.0
_MARGIN = 6.0
# Widths of characters of a system's sans serif, wide ones included: better too wide a box than text beside
# it.
_HEAD_CHAR_PX = 7.9
_CHAR_PX = 6.7


class BoxLine(msgspec.Struct, frozen=True):
    """One line in a box, with the height of its baseline in the box."""

    label: str
    text: str
    y: float


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A node, or an input or output of the model; all lengths in pixels.

    Attributes:
        rows: Attributes and initializers of a node, type of an input or output.
        below: The types of a node's results.
    """

    kind: Literal["node", "input", "output"]
    guilty: bool
    head: str
    rows: tuple[BoxLine, ...]
    tip: str
    below: str
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    head_px: ClassVar = _HEAD_PX


class DrawnEdge(msgspec.Struct, frozen=True, kw_only=True):
    """The tensors that one box passes to another, as paths of a line and of its arrow head."""

    line: str
    head: str


class Label(msgspec.Struct, frozen=True):
    """A text with its place: the types of a node's results, below the node."""

    text: str
    x: float
    y: float


class GraphDrawing(msgspec.Struct, frozen=True, kw_only=True):
    """The drawing, and the same in words; without boxes if the model is too large or has no order."""

    words: str
    width: float = 0.0
    height: float = 0.0
    boxes: tuple[Box, ...] = ()
    edges: tuple[DrawnEdge, ...] = ()
    labels: tuple[Label, ...] = ()


def draw(model: ReducedModel) -> GraphDrawing:
    """Draw a model, or describe it if it is too large to draw."""
    words = _words(model.nodes)
    if len(model.nodes) > MAX_NODES:
        return GraphDrawing(words=f"{words} It is too large to draw.")
    boxes, edges = _boxes(model)
    if len(boxes) > _MAX_BOXES or len(edges) > _MAX_EDGES:
        return GraphDrawing(words=f"{words} It has too many tensors to draw.")
    layout = arrange([(box.width, box.height) for box in boxes], edges)
    if layout is None:
        return GraphDrawing(words=f"{words} It has a circle, so it is not drawn.")
    placed = tuple(
        msgspec.structs.replace(box, x=round(corner.x + _MARGIN, 1), y=round(corner.y + _MARGIN, 1))
        for box, corner in zip(boxes, layout.corners, strict=True)
    )
    return GraphDrawing(
        words=words,
        width=round(layout.width + 2 * _MARGIN),
        height=round(layout.height + 2 * _MARGIN),
        boxes=placed,
        edges=tuple(_edge(layout.routes[edge]) for edge in sorted(edges)),
        labels=tuple(
            Label(box.below, round(box.x + box.width / 2 + 6, 1), round(box.y + box.height + 13, 1))
            for box in placed
            if box.below
        ),
    )


def _words(nodes: Sequence[GraphNode]) -> str:
    ops = Counter(_short(node.op_type) for node in nodes).most_common()
    listed = [f"{op} ({count:,})" if count > 1 else op for op, count in ops]
    guilty = list(dict.fromkeys(_short(node.op_type) for node in nodes if node.guilty))
    where = f" The failure is in {', '.join(guilty[:_SHOWN_OPS])}." if guilty else ""
    told = ", ".join(first_of(listed, _SHOWN_OPS, "types"))
    return f"The model has {plural(len(nodes), 'node')}: {told}.{where}"


def _boxes(model: ReducedModel) -> tuple[list[Box], set[tuple[int, int]]]:
    """Return the boxes, and the edges between them as pairs of their indices."""
    tensors: dict[str, GraphTensor] = {}
    for tensor in model.tensors:
        tensors.setdefault(tensor.name, tensor)
    boxes = [_node(node, tensors) for node in model.nodes]
    makers = {name: index for index, node in enumerate(model.nodes) for name in node.outputs if name}
    edges: set[tuple[int, int]] = set()

    def source(name: str) -> int:
        """Return the box of a tensor's source; a tensor that no node makes is an input."""
        if name not in makers:
            makers[name] = len(boxes)
            boxes.append(_end("input", name, tensors.get(name)))
        return makers[name]

    for index, node in enumerate(model.nodes):
        for name in dict.fromkeys(node.inputs):
            read = tensors.get(name)
            is_weight = read is not None and read.role == "initializer" and name not in makers
            if name and not is_weight:
                edges.add((source(name), index))
    for name, tensor in tensors.items():
        if tensor.role == "output":
            start = source(name)
            edges.add((start, len(boxes)))
            boxes.append(_end("output", name, tensor))
    return boxes, edges


def _node(node: GraphNode, tensors: Mapping[str, GraphTensor]) -> Box:
    rows = [(f"{_short(name)} =", _short(value)) for name, value in node.attributes.items()]
    for name in dict.fromkeys(node.inputs):
        tensor = tensors.get(name)
        if tensor is not None and tensor.role == "initializer":
            rows.append((f"{_short(name, 16)}:", _type(tensor) or "unknown type"))
    if len(rows) > _MAX_ROWS:
        rows = [*rows[: _MAX_ROWS - 1], ("…", f"{len(rows) - _MAX_ROWS + 1} more")]
    domain = f"{node.domain}." if node.domain not in ("", "ai.onnx") else ""
    # The model's outputs have their types in their own boxes.
    inner = (tensors.get(name) for name in node.outputs)
    types = (_type(tensor) for tensor in inner if tensor is not None and tensor.role == "inner")
    below = _short(", ".join(dict.fromkeys(filter(None, types))), _ROW_CHARS)
    head = _short(domain + node.op_type, _ROW_CHARS)
    return _box("node", head, _short(node.name, 120), rows, guilty=node.guilty, below=below)


def _end(kind: Literal["input", "output"], name: str, tensor: GraphTensor | None) -> Box:
    text = _type(tensor)
    return _box(kind, _short(name), f"{kind} {_short(name, 120)}", [("", text)] if text else [])


def _type(tensor: GraphTensor | None) -> str:
    return "" if tensor is None else _short(f"{tensor.dtype} {tensor.shape}".strip(), _ROW_CHARS)


def _box(
    kind: Literal["node", "input", "output"],
    head: str,
    tip: str,
    rows: Sequence[tuple[str, str]],
    *,
    guilty: bool = False,
    below: str = "",
) -> Box:
    """Return a box as large as its texts; it has no position yet."""
    widest = max((_columns(label) + _columns(text) + 1 for label, text in rows), default=0)
    mark = 2 if guilty else 0
    width = max(_HEAD_CHAR_PX * (_columns(head) + mark), _CHAR_PX * widest) + 2 * _SIDE
    # The label begins at the middle of the box, and must end before that of the next one begins.
    label_px = _CHAR_PX * _columns(below) - BETWEEN_BOXES / 2
    return Box(
        kind=kind,
        guilty=guilty,
        head=head,
        rows=tuple(
            BoxLine(label, text, _HEAD_PX + _ROW_PX * (index + 1) - 2)
            for index, (label, text) in enumerate(rows)
        ),
        tip=tip,
        below=below,
        width=round(max(width, label_px, _LEAST_WIDTH), 1),
        height=_HEAD_PX + _ROW_PX * len(rows) + (7.0 if rows else 0.0),
    )


def _edge(route: Sequence[Point]) -> DrawnEdge:
    points = [Point(at.x + _MARGIN, at.y + _MARGIN) for at in route]
    line = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
    for index, (one, other) in enumerate(pairwise(points)):
        half = (one.y + other.y) / 2
        curve = f"C{one.x:.1f} {half:.1f} {other.x:.1f} {half:.1f} {other.x:.1f} {other.y:.1f}"
        line.append(f"V{other.y:.1f}" if index % 2 else curve)
    tip = points[-1]
    sides = f"L{tip.x:.1f} {tip.y:.1f}L{tip.x + 4:.1f} {tip.y - 7:.1f}"
    return DrawnEdge(line=" ".join(line), head=f"M{tip.x - 4:.1f} {tip.y - 7:.1f}{sides}Z")


def _short(text: str, limit: int = _NAME_CHARS) -> str:
    # Spelled out first, because that lengthens a text.
    return one_line(visible(text[: 4 * limit]), limit)


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
