"""The page of models by targets: a square for each cell, split into files that a browser opens at once.

The page contains the records behind the squares, compressed; its script unpacks them when a reader opens a
cell. Base64 has no character with a meaning in HTML, so no text of a model or provider is in the source.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby

import msgspec
from markupsafe import Markup

from harness.core.agreement.agreement import agreements_words, answers_ratio, task_name
from harness.core.findings.compute_share import nodes_on_ep
from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.record import Record, encode_record
from harness.core.records.verdict import Family
from harness.core.text.errors import one_line
from harness.report.cells import paging
from harness.report.cells.column import Column
from harness.report.cells.margin import is_near_limit, lower_precision
from harness.report.cells.report_cell import ReportCell, command_of, page_file
from harness.report.cells.worst import least_bits
from harness.report.pages.model_index import model_index
from harness.report.pages.page import packed_text
from harness.report.view import Report
from harness.report.words.figures import Share
from harness.report.words.tone import SYMBOLS, spoken, tone_of

_LARGEST_INDEX = 0.75
"""Largest part of the first file that the index of all models takes: it holds some 250,000 cells."""

_TITLE_CHARS = 120
_TAG_CHARS = 24
_LEVEL = 4
"""Level of compression: a tenth larger than by the default, in half the time."""


class GridCell(msgspec.Struct, frozen=True, kw_only=True):
    """One square of the table.

    Attributes:
        text: Delivered bits of a pass, if there are any; else the verdict, and whether it is flaky.
        nodes: For a pass in part, the compute nodes on the EP: ``82/84``.
        precision: The precision that was delivered where it is lower than asked, such as ``bf16``.
        near: Whether a right answer has hardly more bits than required.
        tag: For a pass, the answers that equal the golden's, if some differ: ``top-1 39/40``.
        title: Tooltip; empty if there are details, and for a pass without answers.
    """

    tone: str
    symbol: str
    text: str
    nodes: str
    precision: str
    near: bool
    tag: str
    title: str
    href: str
    expected: bool

    @property
    def classes(self) -> str:
        """Return the classes of its element."""
        return self.tone + " near" * self.near + " unexpected" * (not self.expected)


class GridRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model.

    Attributes:
        cells: A square for each column; None if the column has no record of the model.
    """

    model: str
    cells: tuple[GridCell | None, ...]
    records: tuple[Record, ...]

    @property
    def looks(self) -> tuple[tuple[str, str] | None, ...]:
        """``(classes, symbol and verdict)`` of each square; None without a record."""
        return tuple(
            None
            if cell is None
            else (cell.classes, f"{cell.symbol} {cell.text}" if _is_word(cell.text) else cell.symbol)
            for cell in self.cells
        )


class GridSuite(msgspec.Struct, frozen=True, kw_only=True):
    """Models of one suite, sorted.

    Attributes:
        models: Number of its models in all files.
        passed: For each column the passed cells among the tried ones of the whole suite.
    """

    name: str
    models: int
    passed: tuple[Share, ...]
    rows: tuple[GridRow, ...]


class ColumnFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A choice among the columns.

    Attributes:
        name: ``target``, or an axis.
        choices: ``(value, indices of the columns that have it)``.
    """

    name: str
    choices: tuple[tuple[str, tuple[int, ...]], ...]


class ModelPage(msgspec.Struct, frozen=True, kw_only=True):
    """The view of one file.

    Attributes:
        files: ``(file, its first and last model)`` of all files, for links.
        suites: The suites that begin or continue in it.
        models: Number of models in all files.
        index: What the script needs to look for models in all files: see
            :mod:`harness.report.pages.model_index`. Empty if there is one file, in all files but the first,
            and if there are too many models.
        starts: Number of the first model of each file, from 0.
        indexed: Whether the first file has an index.
    """

    file: str
    files: tuple[tuple[str, str], ...]
    suites: tuple[GridSuite, ...]
    models: int
    index: Markup
    starts: tuple[int, ...]
    indexed: bool
    filters: tuple[ColumnFilter, ...]
    matrix_path: str

    @property
    def records(self) -> Iterator[Record]:
        """The records behind the squares, row by row."""
        return (record for suite in self.suites for row in suite.rows for record in row.records)

    @property
    def archive(self) -> Markup:
        """Base64 of zlib of a JSON line for each record: ``[command that repeats it, record]``."""
        encoder = msgspec.json.Encoder()
        lines = (
            b"["
            + encoder.encode(command_of(record, self.matrix_path))
            + b","
            + encode_record(record)
            + b"]\n"
            for record in self.records
        )
        return packed_text(b"".join(lines), _LEVEL)


def model_pages(report: Report) -> Iterator[ModelPage]:
    """Yield a view for each file; suites and models are sorted by name. There is at least one."""
    index_of = {column: index for index, column in enumerate(report.columns)}
    suites: dict[str, dict[str, list[ReportCell | None]]] = {}
    for cell in report.cells:
        rows = suites.setdefault(cell.record.suite, {})
        row = rows.setdefault(cell.record.model, [None] * len(report.columns))
        row[index_of[cell.column]] = cell
    whole = [
        _suite(name, suites[name], len(report.columns), complete=report.complete) for name in sorted(suites)
    ]
    every = [(suite, row) for suite in whole for row in suite.rows]
    index = Markup()
    if sum(_chars(row) for _, row in every) > paging.PART_CHARS:
        index = model_index((suite.name, suite.rows) for suite in whole)
    if len(index) > paging.PART_CHARS * _LARGEST_INDEX:
        index = Markup()
    parts = list(paging.split(every, lambda pair: _chars(pair[1]), used=len(index))) or [[]]
    files = tuple((page_file("models", number), _label(part)) for number, part in enumerate(parts, start=1))
    filters = column_filters(report.columns)
    for number, ((file, _), part) in enumerate(zip(files, parts, strict=True)):
        yield ModelPage(
            file=file,
            files=files,
            suites=tuple(_suites_of(part)),
            models=len(every),
            index=Markup() if number else index,
            starts=tuple(accumulate(map(len, parts[:-1]), initial=0)),
            indexed=bool(index),
            filters=filters,
            matrix_path=report.matrix_path,
        )


def column_filters(columns: Sequence[Column]) -> tuple[ColumnFilter, ...]:
    """Return how the columns differ: in their targets, and in each axis with more than one value."""
    filters = [_filter("target", [column.target for column in columns])]
    for axis in sorted({axis for column in columns for axis, _ in column.axes}):
        default = AXIS_DEFAULTS.get(axis, "not set")
        filters.append(_filter(axis, [dict(column.axes).get(axis, default) for column in columns]))
    return tuple(found for found in filters if len(found.choices) > 1)


def _filter(name: str, values: Iterable[str]) -> ColumnFilter:
    having: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        having.setdefault(value, []).append(index)
    return ColumnFilter(name=name, choices=tuple((value, tuple(its)) for value, its in having.items()))


def _suites_of(part: Iterable[tuple[GridSuite, GridRow]]) -> Iterator[GridSuite]:
    for _, pairs in groupby(part, key=lambda pair: id(pair[0])):
        its = list(pairs)
        yield msgspec.structs.replace(its[0][0], rows=tuple(row for _, row in its))


def _chars(row: GridRow) -> int:
    """Return the approximate size of a row in the page: its markup, and its compressed records."""
    squares = sum(
        40 + len(cell.title) + len(cell.text) + len(cell.tag) + len(cell.href) for cell in row.cells if cell
    )
    outputs = sum(len(record.outputs) for record in row.records)
    runs = sum(record.latency.runs for record in row.records if record.latency is not None)
    return 40 + len(row.model) + squares + 90 * len(row.records) + 90 * outputs + 8 * runs


def _label(part: Sequence[tuple[GridSuite, GridRow]]) -> str:
    names = [f"{suite.name}/{one_line(row.model, 40)}" for suite, row in (*part[:1], *part[-1:])]
    return " … ".join(dict.fromkeys(names))


def _suite(name: str, rows: dict[str, list[ReportCell | None]], columns: int, *, complete: bool) -> GridSuite:
    passed = []
    for index in range(columns):
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
        nodes=nodes_on_ep(record),
        precision=lower_precision(record),
        near=is_near_limit(record),
        tag=_tag(record),
        # The linked details have the same text; a second copy would double the page.
        title="" if cell.href else _title(record, is_plain=look == "passed"),
        href=cell.href,
        expected=record.expected,
    )


def _text(record: Record) -> str:
    if record.verdict.family is not Family.PASSED:
        return spoken(record.verdict) + (", flaky" if record.flaky else "")
    bits = least_bits(record)
    return "" if bits is None else f"{bits:.1f}"


def _is_word(text: str) -> bool:
    """Return whether a square has its verdict in words, not delivered bits."""
    return text[:1].isalpha()


def _tag(record: Record) -> str:
    """Return the first task for which some answers of a right cell differ."""
    if record.verdict.family is not Family.PASSED:
        return ""
    one = next((one for one in record.agreement if one.share != 1.0 or one.failed), None)
    if one is None:
        return ""
    return f"{one_line(task_name(one.kind), _TAG_CHARS)} {answers_ratio((one,))}"


def _title(record: Record, *, is_plain: bool) -> str:
    parts: tuple[str, ...] = (record.cause.replace("_", " "), record.reason, record.weak_golden)
    if is_plain:
        parts = ()
    parts = (*parts, agreements_words(record.agreement))
    return one_line(" · ".join(part for part in parts if part), _TITLE_CHARS)
