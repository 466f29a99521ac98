"""The minimal model of a fault as a drawing: nodes as boxes with their attributes, tensors on the edges."""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from harness.core.errors import one_line
from harness.core.fault import GraphNode, GraphTensor, ReducedModel
from harness.core.text import visible
from harness.report.figures import plural
from harness.report.graph_layout import BETWEEN_BOXES, Point, arrange

MAX_NODES = 60
"""Larger models are told in words: nobody reads such a drawing."""

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
# Of the characters of a system's sans serif, wide ones included: rather too wide a box than text beside it.
_HEAD_CHAR_PX = 7.9
_CHAR_PX = 6.7


class Row(msgspec.Struct, frozen=True):
    """One line in a box, with the height of its baseline in the drawing."""

    label: str
    text: str
    y: float


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A node, or an input or output of the model; all lengths in pixels.

    Attributes:
        head: Its operator or its name.
        head_px: Height of the upper part with it.
        rows: Attributes and initializers of a node, type of an input or output.
        tip: Its name in full.
    """

    kind: Literal["node", "input", "output"]
    guilty: bool
    head: str
    head_px: float
    rows: tuple[Row, ...]
    tip: str
    x: float
    y: float
    width: float
    height: float


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """What one box passes to another, as paths of a line and of its arrow head."""

    line: str
    head: str


class Label(msgspec.Struct, frozen=True):
    """A text with its place: below a node, the types of what it passes on."""

    text: str
    x: float
    y: float


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """The drawing, and the same in words; without boxes if the model is too large or has no order."""

    words: str
    width: float = 0.0
    height: float = 0.0
    boxes: tuple[Box, ...] = ()
    edges: tuple[Edge, ...] = ()
    labels: tuple[Label, ...] = ()


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A box before it has a place; its rows are pairs of label and text, ``below`` is what it passes on."""

    kind: Literal["node", "input", "output"]
    head: str
    tip: str
    rows: tuple[tuple[str, str], ...]
    guilty: bool = False
    below: str = ""

    @property
    def size(self) -> tuple[float, float]:
        widest = max((_columns(label) + _columns(text) + 1 for label, text in self.rows), default=0)
        mark = 2 if self.guilty else 0
        width = max(_HEAD_CHAR_PX * (_columns(self.head) + mark), _CHAR_PX * widest) + 2 * _SIDE
        rows = _ROW_PX * len(self.rows) + (7.0 if self.rows else 0.0)
        # The label begins at the middle of the box, and must end before that of the next one begins.
        label = _CHAR_PX * _columns(self.below) - BETWEEN_BOXES / 2
        return max(width, label, _LEAST_WIDTH), _HEAD_PX + rows


def draw(model: ReducedModel) -> Drawing:
    """Draw a model, or tell what it has if it is too large to draw."""
    words = _words(model.nodes)
    if len(model.nodes) > MAX_NODES:
        return Drawing(words=f"{words} It is too large to draw.")
    parts, edges = _parts(model)
    if len(parts) > _MAX_BOXES or len(edges) > _MAX_EDGES:
        return Drawing(words=f"{words} It has too many tensors to draw.")
    layout = arrange([part.size for part in parts], edges)
    if layout is None:
        return Drawing(words=f"{words} It has a circle, so it is not drawn.")
    return Drawing(
        words=words,
        width=round(layout.width + 2 * _MARGIN),
        height=round(layout.height + 2 * _MARGIN),
        boxes=tuple(_box(part, corner) for part, corner in zip(parts, layout.corners, strict=True)),
        edges=tuple(_edge(layout.routes[edge]) for edge in sorted(edges)),
        labels=tuple(
            Label(
                part.below,
                round(corner.x + _MARGIN + part.size[0] / 2 + 6, 1),
                round(corner.y + _MARGIN + part.size[1] + 13, 1),
            )
            for part, corner in zip(parts, layout.corners, strict=True)
            if part.below
        ),
    )


def _words(nodes: Sequence[GraphNode]) -> str:
    ops = Counter(_short(node.op_type) for node in nodes)
    listed = [f"{op} ({count:,})" if count > 1 else op for op, count in ops.most_common(_SHOWN_OPS)]
    more = [f"{len(ops) - _SHOWN_OPS:,} more types"] if len(ops) > _SHOWN_OPS else []
    guilty = list(dict.fromkeys(_short(node.op_type) for node in nodes if node.guilty))
    where = f" The failure is in {', '.join(guilty[:_SHOWN_OPS])}." if guilty else ""
    return f"The model has {plural(len(nodes), 'node')}: {', '.join(listed + more)}.{where}"


def _parts(model: ReducedModel) -> tuple[list[_Part], set[tuple[int, int]]]:
    """Return the boxes, and the edges between them as pairs of their indices."""
    tensors: dict[str, GraphTensor] = {}
    for tensor in model.tensors:
        tensors.setdefault(tensor.name, tensor)
    parts = [_node(node, tensors) for node in model.nodes]
    makers = {name: index for index, node in enumerate(model.nodes) for name in node.outputs if name}
    edges: set[tuple[int, int]] = set()

    def source(name: str) -> int:
        """Return the box that a tensor comes from; what no node makes is an input."""
        if name not in makers:
            makers[name] = len(parts)
            parts.append(_end("input", name, tensors.get(name)))
        return makers[name]

    for index, node in enumerate(model.nodes):
        for name in dict.fromkeys(node.inputs):
            if name and not _is_initializer(tensors.get(name), name in makers):
                edges.add((source(name), index))
    for name, tensor in tensors.items():
        if tensor.role == "output":
            start = source(name)
            edges.add((start, len(parts)))
            parts.append(_end("output", name, tensor))
    return parts, edges


def _is_initializer(tensor: GraphTensor | None, made: bool) -> bool:  # noqa: FBT001 - a plain fact
    return tensor is not None and tensor.role == "initializer" and not made


def _node(node: GraphNode, tensors: Mapping[str, GraphTensor]) -> _Part:
    rows = [(f"{_short(name)} =", _short(value)) for name, value in node.attributes.items()]
    for name in dict.fromkeys(node.inputs):
        tensor = tensors.get(name)
        if tensor is not None and tensor.role == "initializer":
            rows.append((f"{_short(name, 16)}:", _type(tensor) or "unknown type"))
    if len(rows) > _MAX_ROWS:
        rows = [*rows[: _MAX_ROWS - 1], ("…", f"{len(rows) - _MAX_ROWS + 1} more")]
    domain = f"{node.domain}." if node.domain not in ("", "ai.onnx") else ""
    return _Part(
        kind="node",
        head=_short(domain + node.op_type, _ROW_CHARS),
        tip=_short(node.name, 120),
        rows=tuple(rows),
        guilty=node.guilty,
        below=_short(_passed_on(node, tensors), _ROW_CHARS),
    )


def _passed_on(node: GraphNode, tensors: Mapping[str, GraphTensor]) -> str:
    """Return the types of its results; outputs of the model have theirs in their own boxes."""
    inner = (tensors.get(name) for name in node.outputs)
    types = (_type(tensor) for tensor in inner if tensor is not None and tensor.role == "inner")
    return ", ".join(dict.fromkeys(filter(None, types)))


def _end(kind: Literal["input", "output"], name: str, tensor: GraphTensor | None) -> _Part:
    text = _type(tensor)
    return _Part(
        kind=kind,
        head=_short(name),
        tip=f"{kind} {_short(name, 120)}",
        rows=(("", text),) if text else (),
    )


def _type(tensor: GraphTensor | None) -> str:
    return "" if tensor is None else _short(f"{tensor.dtype} {tensor.shape}".strip(), _ROW_CHARS)


def _box(part: _Part, corner: Point) -> Box:
    width, height = part.size
    x, y = corner.x + _MARGIN, corner.y + _MARGIN
    rows = (
        Row(label, text, round(y + _HEAD_PX + _ROW_PX * (index + 1) - 2, 1))
        for index, (label, text) in enumerate(part.rows)
    )
    return Box(
        kind=part.kind,
        guilty=part.guilty,
        head=part.head,
        head_px=_HEAD_PX,
        rows=tuple(rows),
        tip=part.tip,
        x=round(x, 1),
        y=round(y, 1),
        width=round(width, 1),
        height=round(height, 1),
    )


def _edge(route: Sequence[Point]) -> Edge:
    points = [Point(at.x + _MARGIN, at.y + _MARGIN) for at in route]
    line = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
    for index, (one, other) in enumerate(pairwise(points)):
        half = (one.y + other.y) / 2
        curve = f"C{one.x:.1f} {half:.1f} {other.x:.1f} {half:.1f} {other.x:.1f} {other.y:.1f}"
        line.append(f"V{other.y:.1f}" if index % 2 else curve)
    tip = points[-1]
    sides = f"L{tip.x:.1f} {tip.y:.1f}L{tip.x + 4:.1f} {tip.y - 7:.1f}"
    return Edge(line=" ".join(line), head=f"M{tip.x - 4:.1f} {tip.y - 7:.1f}{sides}Z")


def _short(text: str, limit: int = _NAME_CHARS) -> str:
    # Spelled out first, because that makes a text longer.
    return one_line(visible(text[: 4 * limit]), limit)


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
