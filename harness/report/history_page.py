"""A history as one self-contained page with small charts."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.core.errors import Problem, UsageError
from harness.report.chart import HEIGHT, WIDTH, Chart, chart
from harness.report.drift import HEADROOM_WARNING
from harness.report.figures import Share, brief
from harness.report.page import Pages
from harness.report.precision import SCALE_BITS
from harness.report.trend import Failing, Rising, Series, TrendPoint, Trends

SHOWN_POINTS = 60
"""Runs in one chart and table: two months of nights."""

SHOWN_CELLS = 300
"""How many failing or rising cells are listed."""

_OVER = 1.25
"""Upper edge of the chart of errors: the limit is 1."""


class PageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run in the table below the charts of a target."""

    run: str
    first: str
    passed: str
    bits: str
    headroom: str
    latency: str
    changed: tuple[str, ...]


class PageSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One target: its charts, and the same figures in a table; newest run first."""

    matrix: str
    label: str
    charts: tuple[Chart, ...]
    rows: tuple[PageRow, ...]
    left_out: int


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    runs: int
    first: str
    last: str
    series: tuple[PageSeries, ...]
    failing: tuple[Failing, ...]
    failing_left_out: int
    rising: tuple[Rising, ...]
    rising_left_out: int


def write_history_page(trends: Trends, out: Path, *, templates: Path | None = None) -> Path:
    """Write ``out/index.html``.

    Raises:
        UsageError: It cannot be written, or a template is wrong.
    """
    page = Pages(templates).make("history.html", history=_page(trends), width=WIDTH, height=HEIGHT)
    path = out / "index.html"
    try:
        out.mkdir(parents=True, exist_ok=True)
        # The page states hashes of its own style and script, so its line ends must not be translated.
        path.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        what = f"the page cannot be written: {error.strerror or error}"
        raise UsageError(Problem(where=str(path), what=what, hint="choose another --out")) from error
    return path


def _page(trends: Trends) -> HistoryPage:
    return HistoryPage(
        runs=len(trends.runs),
        first=trends.runs[0].first if trends.runs else "",
        last=trends.runs[-1].first if trends.runs else "",
        series=tuple(map(_series, trends.series)),
        failing=trends.failing[:SHOWN_CELLS],
        failing_left_out=max(0, len(trends.failing) - SHOWN_CELLS),
        rising=trends.rising[:SHOWN_CELLS],
        rising_left_out=max(0, len(trends.rising) - SHOWN_CELLS),
    )


def _series(series: Series) -> PageSeries:
    points = series.points[-SHOWN_POINTS:]
    rows = tuple(_row(point) for point in points)
    marked = [bool(point.changed) for point in points]
    shares = [(p.passed + p.passed_in_part) / p.tried if p.tried else None for p in points]
    found = (
        chart(
            "Passed, of the tried", shares, _words(points, [r.passed for r in rows]), top=1.0, marked=marked
        ),
        chart(
            "Delivered bits, median",
            [point.median_bits for point in points],
            _words(points, [row.bits for row in rows]),
            top=SCALE_BITS,
            marked=marked,
        ),
        chart(
            "Error, of the allowed one (95% are below)",
            [point.headroom_high for point in points],
            _words(points, [row.headroom for row in rows]),
            top=_OVER,
            marked=marked,
            limits=(HEADROOM_WARNING, 1.0),
        ),
        chart(
            "Latency, median",
            [point.median_p50_ms for point in points],
            _words(points, [row.latency for row in rows]),
            top=1.1 * max((point.median_p50_ms or 0.0 for point in points), default=0.0),
            marked=marked,
        ),
    )
    return PageSeries(
        matrix=series.matrix,
        label=series.label,
        charts=tuple(each for each in found if each),
        rows=tuple(reversed(rows)),
        left_out=len(series.points) - len(points),
    )


def _row(point: TrendPoint) -> PageRow:
    passed = Share(point.passed + point.passed_in_part, point.tried, not point.run.complete)
    return PageRow(
        run=point.run.name,
        first=point.run.first,
        passed=passed.text + (f", {point.not_run:,} not run" if point.not_run else ""),
        bits=brief(point.median_bits),
        headroom=brief(point.headroom_high),
        latency="–" if point.median_p50_ms is None else f"{brief(point.median_p50_ms)} ms",  # noqa: RUF001
        changed=point.changed,
    )


def _words(points: Sequence[TrendPoint], figures: Sequence[str]) -> list[str]:
    return [f"{figure} ({point.run.first[:10]})" for point, figure in zip(points, figures, strict=True)]
