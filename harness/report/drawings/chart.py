"""A small line chart as SVG: one figure of one target over the runs."""

from collections.abc import Sequence

import msgspec

CHART_WIDTH, HEIGHT = 300, 100
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 6.0, 8.0, 20.0


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """One run's figure; ``title`` is the tooltip."""

    x: float
    y: float
    title: str
    marked: bool


class ChartEdge(msgspec.Struct, frozen=True):
    """The upper edge of a chart: its value, and the value in words."""

    value: float
    text: str


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """A figure beside the upper or the lower edge."""

    y: float
    text: str


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A line with gaps where runs have no figure.

    Attributes:
        latest: The newest figure in words; empty if the newest run has none.
        dots: A dot for each figure; marked if the environment changed before it.
        ticks: The figures at its edges.
        dates: The first and the last date; the last is empty if there is one run.
        left: Left end of the lines.
        floor: Position of 0.
        label: The whole chart in words, for screen readers.
    """

    name: str
    latest: str
    path: str
    dots: tuple[Dot, ...]
    limits: tuple[float, ...]
    ticks: tuple[Tick, ...]
    dates: tuple[str, str]
    label: str
    left: float = _LEFT
    floor: float = HEIGHT - _BOTTOM


def chart(
    name: str,
    values: Sequence[float | None],
    words: Sequence[str],
    *,
    top: ChartEdge,
    dates: Sequence[str],
    marked: Sequence[bool],
    limits: Sequence[float] = (),
) -> Chart | None:
    """Draw a value for each run, oldest first, None where a run has none; return None without any figure.

    ``top`` is the upper edge, where larger values are drawn as well; the lower edge is 0. ``dates`` has one
    date for each run. ``marked`` are runs before which the environment changed.
    """
    if all(value is None for value in values):
        return None
    step = (CHART_WIDTH - _LEFT - _RIGHT) / max(1, len(values) - 1)

    def height(value: float) -> float:
        share = min(max(value / top.value, 0.0), 1.0) if top.value else 0.0
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    dots: list[Dot] = []
    path: list[str] = []
    pen = "M"
    for index, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        x, y = round(_LEFT + index * step, 1), height(value)
        dots.append(Dot(x=x, y=y, title=words[index], marked=marked[index]))
        path.append(f"{pen}{x} {y}")
        pen = "L"
    return Chart(
        name=name,
        latest=words[-1] if values[-1] is not None else "",
        path=" ".join(path),
        dots=tuple(dots),
        limits=tuple(height(limit) for limit in limits),
        ticks=(Tick(y=height(top.value), text=top.text), Tick(y=height(0.0), text="0")),
        dates=(dates[0], dates[-1] if len(dates) > 1 else ""),
        label=f"{name}, {len(dots)} runs: from {dots[0].title} to {dots[-1].title}",
    )
