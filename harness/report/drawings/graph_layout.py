"""Places the boxes of a directed graph in layers, and routes its edges between them.

The method of Sugiyama, as Graphviz's dot and Netron have it: layers, an order within each that crosses few
edges, then positions that keep edges straight.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise

import msgspec

BETWEEN_LAYERS = 44.0
BETWEEN_BOXES = 26.0
_BEND_WIDTH = 14.0
_SWEEPS = 8

_Neighbours = list[list[int]]


class Point(msgspec.Struct, frozen=True):
    """A place in the drawing, in pixels from its upper left corner."""

    x: float
    y: float


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The positions of all parts.

    Attributes:
        corners: Upper left corner of each box.
        routes: Edge -> the points on its way, starting at the lower side of its first box. Between the second
            and the third, and the fourth and the fifth point, it crosses a layer vertically.
    """

    width: float
    height: float
    corners: tuple[Point, ...]
    routes: dict[tuple[int, int], tuple[Point, ...]]


def arrange(sizes: Sequence[tuple[float, float]], edges: Collection[tuple[int, int]]) -> Layout | None:
    """Place boxes of given widths and heights so that edges, pairs of their indices, point downwards.

    None if edges form a circle.
    """
    layer_of = _layers(len(sizes), edges)
    if layer_of is None:
        return None
    widths = [width for width, _ in sizes]
    above: _Neighbours = [[] for _ in sizes]
    below: _Neighbours = [[] for _ in sizes]
    chains: dict[tuple[int, int], list[int]] = {}
    for start, end in sorted(set(edges)):
        chain = [start]
        # An edge that crosses a layer has a bend in it, which takes a place among the boxes.
        for layer in range(layer_of[start] + 1, layer_of[end]):
            chain.append(len(layer_of))
            layer_of.append(layer)
            widths.append(_BEND_WIDTH)
            above.append([])
            below.append([])
        chain.append(end)
        chains[start, end] = chain
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    layers = _ordered(layer_of, above, below)
    centres = _centres(layers, widths, above, below)
    return _layout(sizes, widths, layers, centres, chains)


def _layers(count: int, edges: Collection[tuple[int, int]]) -> list[int] | None:
    import networkx as nx  # takes 0.1 s to import, and most reports have no fault

    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    layer_of = [0] * count
    try:
        for layer, boxes in enumerate(nx.topological_generations(graph)):
            for box in boxes:
                layer_of[box] = layer
    except nx.NetworkXUnfeasible:
        return None
    for box in range(count):
        if not graph.pred[box] and graph.succ[box]:  # an input belongs near its readers
            layer_of[box] = min(layer_of[other] for other in graph.succ[box]) - 1
    return layer_of


def _ordered(layer_of: Sequence[int], above: _Neighbours, below: _Neighbours) -> list[list[int]]:
    """Return the boxes and bends of each layer, in the order with the fewest crossings that was found."""
    layers: list[list[int]] = [[] for _ in range(max(layer_of, default=-1) + 1)]
    for box, number in enumerate(layer_of):
        layers[number].append(box)
    best, fewest = layers, _crossings(layers, below)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        sides = above if downwards else below
        place = {box: index for boxes in layers for index, box in enumerate(boxes)}
        layers = [list(boxes) for boxes in layers]
        for layer in layers if downwards else reversed(layers):
            wanted = {box: _mean([place[other] for other in sides[box]], place[box]) for box in layer}
            layer.sort(key=wanted.__getitem__)
            place.update((box, index) for index, box in enumerate(layer))
        crossings = _crossings(layers, below)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _crossings(layers: Sequence[Sequence[int]], below: _Neighbours) -> int:
    count = 0
    for upper, lower in pairwise(layers):
        place = {box: index for index, box in enumerate(lower)}
        ends = [place[end] for box in upper for end in sorted(below[box], key=place.__getitem__)]
        count += sum(one > other for index, one in enumerate(ends) for other in ends[index + 1 :])
    return count


def _centres(
    layers: Sequence[Sequence[int]], widths: Sequence[float], above: _Neighbours, below: _Neighbours
) -> list[float]:
    """Return the horizontal centre of each box and bend: near its neighbours, without overlaps."""
    centres = [0.0] * len(widths)
    for layer in layers:
        for box, centre in zip(layer, _apart(layer, [0.0] * len(layer), widths), strict=True):
            centres[box] = centre
    for sweep in range(2 * _SWEEPS + 1):
        sides = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = [_mean([centres[other] for other in sides[box]], centres[box]) for box in layer]
            for box, centre in zip(layer, _apart(layer, wanted, widths), strict=True):
                centres[box] = centre
    return centres


def _apart(layer: Sequence[int], wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return centres as near to the wanted ones as order and widths allow, by least squares."""
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + BETWEEN_BOXES)
    blocks: list[tuple[float, int]] = []  # pool adjacent violators: boxes of one block touch
    for want, offset in zip(wanted, offsets, strict=True):
        total, count = want - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            more, boxes = blocks.pop()
            total, count = total + more, count + boxes
        blocks.append((total, count))
    shifts = [total / count for total, count in blocks for _ in range(count)]
    return [shift + offset for shift, offset in zip(shifts, offsets, strict=True)]


def _layout(
    sizes: Sequence[tuple[float, float]],
    widths: Sequence[float],
    layers: Sequence[Sequence[int]],
    centres: Sequence[float],
    chains: dict[tuple[int, int], list[int]],
) -> Layout:
    count = len(sizes)
    heights = [max((sizes[box][1] for box in layer if box < count), default=0.0) for layer in layers]
    tops = [0.0]
    for height in heights[:-1]:
        tops.append(tops[-1] + height + BETWEEN_LAYERS)
    layer_of = {box: index for index, layer in enumerate(layers) for box in layer}
    left = min((centre - width / 2 for centre, width in zip(centres, widths, strict=True)), default=0.0)
    right = max((centre + width / 2 for centre, width in zip(centres, widths, strict=True)), default=0.0)

    def top(box: int) -> float:
        # The boxes of a layer have their centres at one height.
        return tops[layer_of[box]] + (heights[layer_of[box]] - sizes[box][1]) / 2

    def route(chain: Sequence[int]) -> tuple[Point, ...]:
        first, *bends, last = chain
        points = [Point(centres[first] - left, top(first) + sizes[first][1])]
        for bend in bends:
            upper = tops[layer_of[bend]]
            points += [
                Point(centres[bend] - left, upper),
                Point(centres[bend] - left, upper + heights[layer_of[bend]]),
            ]
        return (*points, Point(centres[last] - left, top(last)))

    return Layout(
        width=right - left,
        height=tops[-1] + heights[-1] if heights else 0.0,
        corners=tuple(Point(centres[box] - sizes[box][0] / 2 - left, top(box)) for box in range(count)),
        routes={edge: route(chain) for edge, chain in chains.items()},
    )


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
