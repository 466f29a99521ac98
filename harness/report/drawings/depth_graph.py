"""The graph of a model, coloured by the error that each node makes; chains of healthy nodes are one box."""

from collections.abc import Sequence

import msgspec

from harness.core.records.trace import BAND, TracedNode, TraceError
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.drawings.graph_layout import Point, arrange
from harness.report.words.figures import brief

MOST_BOXES = 160
"""A graph with more boxes is not drawn: nobody reads it."""

_BOX_HEIGHT, _CHAR_PX, _SIDE = 20.0, 6.6, 8.0
_LEAST_WIDTH = 40.0
_MARGIN = 6.0
_CHARS = 18
_LEVELS = (1.0, BAND, 10 * BAND, 100 * BAND)


class DepthBox(msgspec.Struct, frozen=True, kw_only=True):
    """A node, or a chain of healthy ones; ``level`` is 0 for rounding and 4 for the largest errors."""

    text: str
    tip: str
    level: int
    guilty: bool
    width: float
    x: float = 0.0
    y: float = 0.0
    height: float = _BOX_HEIGHT


class DepthGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The drawing; without boxes if the graph is too large."""

    words: str
    width: float = 0.0
    height: float = 0.0
    boxes: tuple[DepthBox, ...] = ()
    edges: tuple[str, ...] = ()


def depth_graph(nodes: Sequence[TracedNode]) -> DepthGraph:
    """Draw the nodes of one target."""
    guilty = sum(node.guilty for node in nodes)
    words = f"{plural(len(nodes), 'node')}, {guilty} of them guilty."
    chains = _chains(nodes)
    if not 0 < len(chains) <= MOST_BOXES:
        return DepthGraph(words=f"{words} It is too large to draw.")
    home = {node.node: number for number, chain in enumerate(chains) for node in chain}
    edges = {
        (home[name], home[node.node])
        for node in nodes
        for name in node.inputs
        if name in home and home[name] != home[node.node]
    }
    boxes = [_box(chain) for chain in chains]
    layout = arrange([(box.width, box.height) for box in boxes], edges)
    if layout is None:
        return DepthGraph(words=words)
    return DepthGraph(
        words=words,
        width=round(layout.width + 2 * _MARGIN),
        height=round(layout.height + 2 * _MARGIN),
        boxes=tuple(
            msgspec.structs.replace(box, x=round(corner.x + _MARGIN, 1), y=round(corner.y + _MARGIN, 1))
            for box, corner in zip(boxes, layout.corners, strict=True)
        ),
        edges=tuple(_line(layout.routes[edge]) for edge in sorted(edges)),
    )


def _chains(nodes: Sequence[TracedNode]) -> list[list[TracedNode]]:
    """Return nodes, healthy ones in a row together: one whose only reader reads nothing else."""
    readers: dict[str, int] = {}
    for node in nodes:
        for name in node.inputs:
            readers[name] = readers.get(name, 0) + 1
    chains: list[list[TracedNode]] = []
    home: dict[str, int] = {}
    for node in nodes:
        before = home.get(node.inputs[0]) if len(node.inputs) == 1 else None
        last = None if before is None else chains[before][-1]
        if (
            before is not None
            and last is not None
            and last.node == node.inputs[0]
            and readers[last.node] == 1
            and _level(last) == _level(node) == 0
            and last.partition == node.partition
        ):
            chains[before].append(node)
            home[node.node] = before
        else:
            home[node.node] = len(chains)
            chains.append([node])
    return chains


def _box(chain: Sequence[TracedNode]) -> DepthBox:
    first, last = chain[0], chain[-1]
    if len(chain) == 1:
        text = one_line(visible(first.op_type), _CHARS)
        tip = f"{visible(first.op_type)} {one_line(visible(first.node), 80)}: {_made(first.made)}"
    else:
        text = f"{len(chain)} nodes"
        names = [one_line(visible(node.node), 60) for node in (first, last)]
        tip = f"{len(chain)} nodes that make only rounding, from {names[0]} to {names[1]}"
    width = max(_LEAST_WIDTH, _CHAR_PX * (len(text) + 2 * first.guilty) + 2 * _SIDE)
    return DepthBox(text=text, tip=tip, level=_level(first), guilty=first.guilty, width=round(width, 1))


def _level(node: TracedNode) -> int:
    made = node.made
    if made is None:
        return 0
    if made.noise is None or made.special or made.differs:
        return len(_LEVELS) if made.is_beyond else 0
    return sum(made.noise > level for level in _LEVELS)


def _made(error: TraceError | None) -> str:
    if error is None:
        return "not measured"
    if error.exact:
        return "exact"
    if error.noise is None and error.allowed:
        return "an error that verdicts allow"
    return "no multiple of noise" if error.noise is None else f"makes {brief(error.noise)} times the noise"


def _line(route: Sequence[Point]) -> str:
    points = [f"{point.x + _MARGIN:.1f} {point.y + _MARGIN:.1f}" for point in route]
    return f"M{'L'.join(points)}"
