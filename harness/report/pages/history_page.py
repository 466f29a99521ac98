"""A history as one self-contained page with small charts."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.report.cells.column_precision import SCALE_BITS
from harness.report.cells.worst import HEADROOM_WARNING
from harness.report.drawings.chart import CHART_WIDTH, HEIGHT, Chart, ChartEdge, chart
from harness.report.history.nights import Nights
from harness.report.history.trend_points import Series, TrendPoint, Trends
from harness.report.pages.nights_page import NightsPage
from harness.report.pages.page import Pages, write_pages
from harness.report.words.figures import brief

_SHOWN_POINTS = 60
"""Runs in one chart and table: two months of nights."""

_SHOWN_CELLS = 300
"""How many failing or rising cells are listed."""

_OVER = 1.25
"""Upper edge of the chart of errors: the limit is 1."""


class ShownSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One target: its charts, and its newest points, oldest first."""

    series: Series
    points: tuple[TrendPoint, ...]
    charts: tuple[Chart, ...]


def write_history_page(
    trends: Trends, nights: Sequence[Nights], out: Path, *, templates: Path | None = None
) -> Path:
    """Write ``out/index.html``; ``nights`` has those of each matrix.

    Raises:
        UsageError: It cannot be written, or a template is wrong.
    """
    series = [
        ShownSeries(series=each, points=points, charts=tuple(_charts(points)))
        for each in trends.series
        for points in [each.points[-_SHOWN_POINTS:]]
    ]
    page = Pages(templates).make(
        "history.html",
        trends=trends,
        nights=[NightsPage(nights=each) for each in nights],
        series=series,
        shown=_SHOWN_CELLS,
        width=CHART_WIDTH,
        height=HEIGHT,
    )
    write_pages(out, [("index.html", page)])
    return out / "index.html"


def _charts(points: tuple[TrendPoint, ...]) -> Iterator[Chart]:
    latencies = [point.median_p50_ms for point in points]
    slowest = max((ms for ms in latencies if ms is not None), default=0.0)
    shares = [point.share.count / point.share.total if point.share.total else None for point in points]
    # name, values, words, top of the chart, lines across
    figures = (
        ("Passed, of the tried", shares, [point.passed_text for point in points], ChartEdge(1.0, "100%"), ()),
        (
            "Delivered bits, median",
            [point.median_bits for point in points],
            [brief(point.median_bits) for point in points],
            ChartEdge(SCALE_BITS, brief(SCALE_BITS)),
            (),
        ),
        (
            "Error, of the allowed one (95% are below)",
            [point.headroom_high for point in points],
            [brief(point.headroom_high) for point in points],
            ChartEdge(_OVER, brief(_OVER)),
            (HEADROOM_WARNING, 1.0),
        ),
        (
            "Latency, median",
            latencies,
            [point.latency_text for point in points],
            ChartEdge(slowest, f"{brief(slowest)} ms"),
            (),
        ),
    )
    dates = [point.run.first[:10] for point in points]
    for name, values, words, top, limits in figures:
        dated = [f"{text} ({point.run.first[:10]})" for text, point in zip(words, points, strict=True)]
        marked = [bool(point.changed) for point in points]
        drawn = chart(name, values, dated, top=top, dates=dates, marked=marked, limits=limits)
        if drawn:
            yield drawn
