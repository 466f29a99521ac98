"""The chart of a trace: error against depth, in multiples of rounding noise, with the band of noise."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from harness.core.records.trace import BAND, TracedNode, TracedPartition, TracedTarget, TraceError
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.drawings.chart import Tick
from harness.report.words.figures import brief

# Drawn as wide as it is on a narrow screen, so that its texts are legible there.
DEPTH_WIDTH, _HEIGHT = 400, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 8.0, 40.0, 34.0
_LEAST, _MOST = 1e-2, 1e9
_NAMED = 3
_NAME_CHARS = 30
_LINE_PX = 11.0
_MOST_POINTS, _POINT_PX = 170, 2.0
"""Points of a line at most, and their distance then: a page cuts off longer texts."""


class DepthLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of one target: ``whole`` or ``made``."""

    target: int
    kind: str
    path: str


class DepthDot(msgspec.Struct, frozen=True, kw_only=True):
    """A guilty node, with its tooltip."""

    target: int
    x: float
    y: float
    title: str


class CompiledLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a partition makes as it is compiled, from its first depth to its last one."""

    target: int
    x: float
    end: float
    y: float
    guilty: bool
    title: str


class DepthName(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a guilty node or partition above the chart, and the place of its dot."""

    x: float
    y: float
    text: str
    end: bool
    dot_x: float
    dot_y: float


class Stripe(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of the first target as the background of its depths."""

    x: float
    width: float
    odd: bool
    guilty: bool
    title: str


class DepthChart(msgspec.Struct, frozen=True, kw_only=True):
    """The whole chart; lengths in pixels.

    Attributes:
        band: Height of the upper edge of the band of noise.
        ends: The first and the last depth, with their places.
        label: The chart in words, for screen readers.
    """

    lines: tuple[DepthLine, ...]
    dots: tuple[DepthDot, ...]
    compiled: tuple[CompiledLine, ...]
    names: tuple[DepthName, ...]
    stripes: tuple[Stripe, ...]
    ticks: tuple[Tick, ...]
    ends: tuple[tuple[float, str], ...]
    band: float
    label: str
    width: int = DEPTH_WIDTH
    height: int = _HEIGHT
    left: float = _LEFT
    right: float = DEPTH_WIDTH - _RIGHT
    top: float = _TOP
    floor: float = _HEIGHT - _BOTTOM


def depth_chart(
    targets: Sequence[tuple[TracedTarget, Sequence[TracedNode]]], partitions: Sequence[TracedPartition] = ()
) -> DepthChart | None:
    """Draw the largest error of each depth for each target; None if nothing was measured."""
    every = [node for _, nodes in targets for node in nodes]
    measured: list[TracedNode | TracedPartition] = [*every, *partitions]
    heights = [
        size for node in measured for one in (node.whole, node.made) if (size := _size(one)) is not None
    ]
    if not heights:
        return None
    scale = _Scale(max(node.depth for node in every), heights)
    lines, dots = [], []
    compiled = tuple(_compiled(targets, partitions, scale))
    for number, (_, nodes) in enumerate(targets):
        for kind in ("whole", "made"):
            path = _path(nodes, kind, scale)
            if path:
                lines.append(DepthLine(target=number, kind=kind, path=path))
        for node in nodes:
            size = _size(node.made)
            if node.guilty and size is not None:
                title = f"{_name(node)}: makes {_words(node.made)}"
                dots.append(DepthDot(target=number, x=scale.x(node.depth), y=scale.y(size), title=title))
    return DepthChart(
        lines=tuple(lines),
        dots=tuple(dots),
        compiled=compiled,
        names=tuple(_names(targets, compiled, scale)),
        stripes=tuple(_stripes(targets[0], partitions, scale)),
        ticks=tuple(Tick(y=scale.y(value), text=_power(value)) for value in scale.decades()),
        ends=((scale.x(0), "0"), (scale.x(scale.deepest), str(scale.deepest))),
        band=scale.y(BAND),
        label=" ".join(f"{target.target}: {target.sentence}" for target, _ in targets),
    )


class _Scale:
    """From depths and multiples of noise to pixels; the vertical axis is logarithmic."""

    def __init__(self, deepest: int, sizes: Sequence[float]) -> None:
        self.deepest = deepest
        self._low = math.log10(_LEAST)
        self._high = math.ceil(math.log10(min(_MOST, max(10.0, *sizes))))

    def x(self, depth: float) -> float:
        return round(_LEFT + depth * (DEPTH_WIDTH - _LEFT - _RIGHT) / max(1, self.deepest), 1)

    def y(self, size: float) -> float:
        at = math.log10(min(_MOST, max(_LEAST, size)))
        share = (at - self._low) / (self._high - self._low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)

    def decades(self) -> Iterable[float]:
        step = 1 if self._high - self._low <= 6 else 2  # noqa: PLR2004 - as many as fit without touching
        return (10.0**power for power in range(round(self._low), self._high + 1, step))


def _path(nodes: Sequence[TracedNode], kind: str, scale: _Scale) -> str:
    """Return the largest error of each depth as a path; in deep models, of depths that share a place."""
    largest: dict[float, float] = {}
    for node in nodes:
        size = _size(node.whole if kind == "whole" else node.made)
        if size is not None:
            x = scale.x(node.depth)
            x = x if scale.deepest <= _MOST_POINTS else round(x / _POINT_PX) * _POINT_PX
            largest[x] = max(size, largest.get(x, 0.0))
    points = [f"{x:g} {scale.y(largest[x])}" for x in sorted(largest)]
    return f"M{'L'.join(points)}" if points else ""


def _names(
    targets: Sequence[tuple[TracedTarget, Sequence[TracedNode]]],
    compiled: Sequence[CompiledLine],
    scale: _Scale,
) -> Iterator[DepthName]:
    """Yield the names of what makes the largest errors, a line for each above the chart."""
    guilty = [node for _, nodes in targets for node in nodes if node.guilty and _size(node.made) is not None]
    marks = [(scale.x(node.depth), scale.y(_size(node.made) or 0.0), _name(node)) for node in guilty]
    marks += [((one.x + one.end) / 2, one.y, one.title.partition(":")[0]) for one in compiled if one.guilty]
    marks.sort(key=lambda mark: mark[1])  # the vertical axis of a picture points downwards
    for row, (x, y, text) in enumerate(marks[:_NAMED]):
        end = x > DEPTH_WIDTH / 2
        yield DepthName(
            x=round(x - 4 if end else x + 4, 1),
            y=round(_LINE_PX * (row + 1) - 2, 1),
            text=text,
            end=end,
            dot_x=round(x, 1),
            dot_y=y,
        )


def _compiled(
    targets: Sequence[tuple[TracedTarget, Sequence[TracedNode]]],
    partitions: Sequence[TracedPartition],
    scale: _Scale,
) -> Iterator[CompiledLine]:
    for number, (target, nodes) in enumerate(targets):
        spans = _spans(nodes, scale)
        for one in partitions:
            size = _size(one.made)
            if one.target == target.target and one.nodes > 1 and size is not None and one.number in spans:
                x, end = spans[one.number]
                title = f"partition {one.number + 1}, {plural(one.nodes, 'node')}: makes {_words(one.made)}"
                yield CompiledLine(
                    target=number,
                    x=x,
                    end=end,
                    y=scale.y(size),
                    guilty=one.guilty,
                    title=f"{title} as compiled",
                )


def _stripes(
    target: tuple[TracedTarget, Sequence[TracedNode]], partitions: Sequence[TracedPartition], scale: _Scale
) -> Iterator[Stripe]:
    result, nodes = target
    sizes = Counter(node.partition for node in nodes)
    guilty = {one.number for one in partitions if one.target == result.target and one.guilty}
    for number, (start, end) in _spans(nodes, scale).items():
        yield Stripe(
            x=start,
            width=round(end - start, 1),
            odd=bool(number % 2),
            guilty=number in guilty,
            title=f"partition {number + 1}: {plural(sizes[number], 'node')}",
        )


def _spans(nodes: Sequence[TracedNode], scale: _Scale) -> dict[int, tuple[float, float]]:
    """Return for each partition where its depths begin and end."""
    depths: dict[int, list[int]] = {}
    for node in nodes:
        if node.partition is not None:
            depths.setdefault(node.partition, []).append(node.depth)
    half = (scale.x(1) - scale.x(0)) / 2
    return {
        number: (
            round(max(scale.x(min(own)) - half, _LEFT), 1),
            round(min(scale.x(max(own)) + half, DEPTH_WIDTH - _RIGHT), 1),
        )
        for number, own in sorted(depths.items())
    }


def _size(error: TraceError | None) -> float | None:
    """Return the height of an error; the largest where no multiple of noise is finite."""
    if error is None:
        return None
    if error.special or error.differs:
        return _MOST
    return error.noise


def _words(error: TraceError | None) -> str:
    if error is None or error.noise is None:
        return "an error without a multiple of noise"
    return f"{brief(error.noise)} times the noise"


def _name(node: TracedNode) -> str:
    return one_line(visible(f"{node.op_type} {node.node}"), _NAME_CHARS)


def _power(value: float) -> str:
    return f"{value:g}" if _LEAST <= value <= 1e4 else f"1e{round(math.log10(value))}"  # noqa: PLR2004
