"""The table of models by lanes, cut into pages that a browser opens at once."""

from collections.abc import Iterator, Sequence

import msgspec

from harness.core.cell import AXIS_DEFAULTS
from harness.core.errors import one_line
from harness.core.record import Record
from harness.core.verdict import Family
from harness.report.cell import ReportCell
from harness.report.figures import Share
from harness.report.lane import Lane
from harness.report.tone import SYMBOLS, spoken, tone_of

MAX_SQUARES = 8_000
"""Squares in one page, which a browser lays out in a fraction of a second."""

MAX_CHARS = 2_000_000
"""About how large one page may be, the records behind its squares included."""

_TITLE_CHARS = 120


class GridCell(msgspec.Struct, frozen=True, kw_only=True):
    """One square of the table.

    Attributes:
        tone: How its verdict looks.
        symbol: The verdict's symbol.
        text: Delivered bits of a pass where there are any; else the verdict, spoken, and whether it is flaky.
        title: What a pointer resting on it shows; empty where there are details, and for a plain pass.
        href: Where its details stand in the site; empty where there are none.
        expected: False where the verdict is not what the matrix expects.
    """

    tone: str
    symbol: str
    text: str
    title: str
    href: str
    expected: bool


class GridRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model; a square per lane, None where the lane has no record of it.

    Attributes:
        model: Its name.
        cells: Its squares.
        records: The records behind the squares that there are, in their order.
    """

    model: str
    cells: tuple[GridCell | None, ...]
    records: tuple[Record, ...]


class GridSuite(msgspec.Struct, frozen=True, kw_only=True):
    """Models of one suite, sorted.

    Attributes:
        name: The suite.
        models: How many models it has, on this page or not.
        passed: Per lane how many of the tried cells of the whole suite passed.
        rows: The models on this page.
    """

    name: str
    models: int
    passed: tuple[Share, ...]
    rows: tuple[GridRow, ...]


class GridPage(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the table.

    Attributes:
        file: Its name, such as ``models-2.html``.
        first: The first model on it, with its suite.
        last: The last one.
        models: How many there are.
        suites: The suites that begin or go on in it.
    """

    file: str
    first: str
    last: str
    models: int
    suites: tuple[GridSuite, ...]

    @property
    def records(self) -> Iterator[Record]:
        """The records behind the squares, row by row."""
        return (record for suite in self.suites for row in suite.rows for record in row.records)


class LaneFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A choice among the lanes.

    Attributes:
        name: ``target``, or an axis.
        choices: ``(value, indices of the lanes that have it)``.
    """

    name: str
    choices: tuple[tuple[str, tuple[int, ...]], ...]


def grid(cells: Sequence[ReportCell], lanes: Sequence[Lane], *, complete: bool) -> tuple[GridPage, ...]:
    """Lay the cells out: suites and models sorted by name, lanes in the order given; one page at least."""
    column = {lane: index for index, lane in enumerate(lanes)}
    suites: dict[str, dict[str, list[ReportCell | None]]] = {}
    for cell in cells:
        rows = suites.setdefault(cell.record.suite, {})
        row = rows.setdefault(cell.record.model, [None] * len(lanes))
        row[column[cell.lane]] = cell
    whole = [_suite(name, suites[name], len(lanes), complete=complete) for name in sorted(suites)]
    return tuple(_pages(whole))


def lane_filters(lanes: Sequence[Lane]) -> tuple[LaneFilter, ...]:
    """What the lanes differ in: their targets, and each axis with more than one value."""
    filters = [_filter("target", [lane.target for lane in lanes])]
    for axis in sorted({axis for lane in lanes for axis, _ in lane.axes}):
        default = AXIS_DEFAULTS.get(axis, "not set")
        filters.append(_filter(axis, [dict(lane.axes).get(axis, default) for lane in lanes]))
    return tuple(found for found in filters if len(found.choices) > 1)


def least_bits(record: Record) -> float | None:
    """Delivered bits of the least precise output; None where every output is exact or not a float."""
    return min((o.delivered_bits for o in record.outputs if o.delivered_bits is not None), default=None)


def _filter(name: str, values: Sequence[str]) -> LaneFilter:
    having: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        having.setdefault(value, []).append(index)
    return LaneFilter(name=name, choices=tuple((value, tuple(lanes)) for value, lanes in having.items()))


def _pages(suites: Sequence[GridSuite]) -> Iterator[GridPage]:
    """Fill page after page; a suite that does not fit goes on in the next one."""
    number = 0
    page: list[GridSuite] = []
    squares = chars = 0
    for suite in suites:
        begin = 0
        for index, row in enumerate(suite.rows):
            size = _chars(row)
            if squares and (squares + len(row.cells) > MAX_SQUARES or chars + size > MAX_CHARS):
                if index > begin:
                    page.append(msgspec.structs.replace(suite, rows=suite.rows[begin:index]))
                yield _page(number, page)
                number, page, begin, squares, chars = number + 1, [], index, 0, 0
            squares += len(row.cells)
            chars += size
        page.append(msgspec.structs.replace(suite, rows=suite.rows[begin:]))
    if page or not number:
        yield _page(number, page)


def _chars(row: GridRow) -> int:
    """About how much of the page a row takes: its markup, and its records, compressed."""
    squares = sum(40 + len(cell.title) + len(cell.text) + len(cell.href) for cell in row.cells if cell)
    outputs = sum(len(record.outputs) for record in row.records)
    runs = sum(record.latency.runs for record in row.records if record.latency is not None)
    return 40 + len(row.model) + squares + 90 * len(row.records) + 90 * outputs + 8 * runs


def _page(number: int, suites: Sequence[GridSuite]) -> GridPage:
    names = [f"{suite.name}/{row.model}" for suite in suites for row in (suite.rows[0], suite.rows[-1])]
    return GridPage(
        file=f"models-{number + 1}.html" if number else "models.html",
        first=names[0] if names else "",
        last=names[-1] if names else "",
        models=sum(len(suite.rows) for suite in suites),
        suites=tuple(suites),
    )


def _suite(name: str, rows: dict[str, list[ReportCell | None]], lanes: int, *, complete: bool) -> GridSuite:
    passed = []
    for index in range(lanes):
        families = [cell.record.verdict.family for row in rows.values() if (cell := row[index])]
        tried = sum(f not in (Family.SKIPPED, Family.EXCLUDED, Family.MISSING) for f in families)
        passed.append(Share(families.count(Family.PASSED), tried, not complete))
    return GridSuite(
        name=name,
        models=len(rows),
        passed=tuple(passed),
        rows=tuple(
            GridRow(
                model=model,
                cells=tuple(_square(cell) if cell else None for cell in rows[model]),
                records=tuple(cell.record for cell in rows[model] if cell),
            )
            for model in sorted(rows)
        ),
    )


def _square(cell: ReportCell) -> GridCell:
    record = cell.record
    look = tone_of(record)
    return GridCell(
        tone=look,
        symbol=SYMBOLS[look],
        text=_text(record),
        # Where there are details the link leads to the same text; twice, it would double the page.
        title="" if cell.href or look == "passed" else _title(record),
        href=cell.href,
        expected=record.expected,
    )


def _text(record: Record) -> str:
    if record.verdict.family is not Family.PASSED:
        return spoken(record.verdict) + (", flaky" if record.flaky else "")
    bits = least_bits(record)
    return "" if bits is None else f"{bits:.1f}"


def _title(record: Record) -> str:
    parts = (record.cause.replace("_", " "), record.reason, record.weak_golden)
    return one_line(" · ".join(part for part in parts if part), _TITLE_CHARS)
