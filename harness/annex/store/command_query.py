"""`ep-harness query`: one SELECT on the results of a folder of runs; a table of 80 columns, CSV or JSON."""

import csv
import io
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.annex.store.store import Store, open_store
from harness.annex.store.user_query import QueryResult, ask, partial_file, write_parquet
from harness.cli.output import notify, print_lines
from harness.core.files.writing import aside, writing
from harness.core.text.counted import plural
from harness.core.text.errors import EXIT_OK, UsageError
from harness.core.text.visible_text import WIDTH
from harness.report.words.inert import inert_csv, inert_json, plain_line

SHOWN_ROWS = 1000
"""Largest number of rows of a table; they are read before the first one is printed, to find the widths."""

_CELL_CHARS = 200
_NARROWEST = 8
"""Least width of a column: below it a table is unreadable, and each row becomes a block of lines."""

_GAP = "  "
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_FIGURES = frozenset((*_INTEGERS, *(f"U{name}" for name in _INTEGERS), "FLOAT", "DOUBLE", "DECIMAL"))
"""Types that are right-aligned: https://duckdb.org/docs/stable/sql/data_types/numeric"""

_CSV_ROWS = 1000
_BITS = 64


def query(runs: Path, sql: str, *, style: str, out: Path | None, store: Path | None) -> int:
    """Print the rows of a query, or write them into a file."""
    if style == "parquet" and out is None:
        raise UsageError.at("--format", "Parquet needs a file to be written to", "name it: --out FILE")
    allowed = partial_file(out) if out is not None and style == "parquet" else None
    with open_store(runs, store, notify, allowed=allowed) as opened:
        note_unreadable(opened)
        if out is not None and style == "parquet":
            write_parquet(opened, sql, out)
        else:
            text = _FORMATS[style](ask(opened, sql))
            if out is None:
                sys.stdout.writelines(text)
                sys.stdout.flush()
            else:
                _write(text, out)
    if out is not None:
        print_lines([str(out)])
    return EXIT_OK


def note_unreadable(store: Store) -> None:
    """Report the runs that cannot be read."""
    problems = store.unreadable()
    if problems:
        name, problem = problems[0]
        also = f" (and {plural(len(problems) - 1, 'other run')})" if len(problems) > 1 else ""
        notify(f"{name}: left out{also}: {problem}")


def _write(text: Iterable[str], out: Path) -> None:
    with writing(out, "the file"), aside(out) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        file.writelines(text)


def table_lines(answer: QueryResult) -> Iterator[str]:
    """Yield the lines of a table, or a block of lines for each row if it has too many columns."""
    rows = [[_word(value) for value in row] for row in itertools.islice(answer.rows, SHOWN_ROWS)]
    more = " shown, there are more; --format csv prints all" if next(answer.rows, None) is not None else ""
    names = [plain_line(name, _CELL_CHARS) for name in answer.names]
    widths = _fitting([max(map(len, column)) for column in zip(names, *rows, strict=True)])
    if widths is None:
        lines = _blocks(names, rows)
    else:
        right = [kind.partition("(")[0] in _FIGURES for kind in answer.kinds]
        lines = (_line(row, widths, right) for row in (names, ["-" * width for width in widths], *rows))
    for line in (*lines, plural(len(rows), "row") + more):
        yield f"{line}\n"


def csv_lines(answer: QueryResult) -> Iterator[str]:
    """Yield CSV in parts; texts that a spreadsheet would read as a formula get an apostrophe."""
    yield _csv([[inert_csv(name) for name in answer.names]])
    while rows := list(itertools.islice(answer.rows, _CSV_ROWS)):
        yield _csv([[_csv_value(value) for value in row] for row in rows])


def json_lines(answer: QueryResult) -> Iterator[str]:
    """Yield one JSON array, with an object in ASCII for each row, one a line."""
    opened = "["
    for row in answer.rows:
        encoded = inert_json(
            {name: _json_value(value) for name, value in zip(answer.names, row, strict=True)}
        )
        yield f"{opened}\n{encoded.decode().rstrip()}"
        opened = ","
    yield "[]\n" if opened == "[" else "\n]\n"


_FORMATS = {"table": table_lines, "csv": csv_lines, "json": json_lines}


def _word(value: object) -> str:
    """Return a value in one visible line."""
    if value is None:
        return "–"  # noqa: RUF001 - as in every table of this program
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (dict, list)):
        return plain_line(msgspec.json.encode(_json_value(value)).decode(), _CELL_CHARS)
    return plain_line(value, _CELL_CHARS)


def _csv_value(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (dict, list)):
        return inert_csv(msgspec.json.encode(_json_value(value)).decode())
    return inert_csv(str(value))


def _json_value(value: Any) -> object:
    """Return a value that JSON has; integers that do not fit into 64 bits become text."""
    if isinstance(value, dict):
        return {str(key): _json_value(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(each) for each in value]
    if isinstance(value, int) and value.bit_length() >= _BITS:
        return str(value)
    return value


def _fitting(widths: Sequence[int]) -> list[int] | None:
    """Return widths that fit into 80 columns together, with the widest ones reduced.

    Return None if they are too narrow.
    """
    room = WIDTH - len(_GAP) * (len(widths) - 1)
    fitting = list(widths)
    while sum(fitting) > room:
        widest = max(fitting)
        if widest <= _NARROWEST:
            return None
        fitting[fitting.index(widest)] = widest - 1
    return fitting


def _line(words: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    shown = (
        f"{_cut(word, width):>{width}}" if flush else f"{_cut(word, width):<{width}}"
        for word, width, flush in zip(words, widths, right, strict=True)
    )
    return _GAP.join(shown).rstrip()


def _blocks(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    width = min(max(map(len, names)), WIDTH // 3)
    for row in rows:
        for name, word in zip(names, row, strict=True):
            yield _cut(f"{_cut(name, width):<{width}}{_GAP}{word}", WIDTH)
        yield ""


def _cut(word: str, width: int) -> str:
    return word if len(word) <= width else word[: width - 1] + "…"


def _csv(rows: Sequence[Sequence[object]]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()
