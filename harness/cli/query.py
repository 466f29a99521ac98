"""`ep-harness query`: one SELECT on the results of a folder of runs."""

import sys
from collections.abc import Iterator
from pathlib import Path

from harness.cli.output import notify, print_lines
from harness.cli.query_text import csv_lines, json_lines, table_lines
from harness.core.errors import EXIT_OK, Problem, UsageError
from harness.report.figures import plural
from harness.report.writing import writing
from harness.store.query import ask, partial_file, write_parquet
from harness.store.store import Store, open_store


def query(runs: Path, sql: str, *, style: str, out: Path | None, store: Path | None) -> int:
    """Print the rows of a query, or write them into a file."""
    if style == "parquet" and out is None:
        hint = "name it: --out FILE"
        raise UsageError(Problem(where="--format", what="Parquet needs a file to be written to", hint=hint))
    allowed = partial_file(out) if out is not None and style == "parquet" else None
    with open_store(runs, store, notify, allowed=allowed) as opened:
        note_unreadable(opened)
        if out is None:
            _print(opened, sql, style)
        elif style == "parquet":
            write_parquet(opened, sql, out)
        else:
            _write(opened, sql, style, out)
    if out is not None:
        print_lines([str(out)])
    return EXIT_OK


def note_unreadable(store: Store) -> None:
    """Tell which runs cannot be read."""
    problems = store.unreadable()
    if problems:
        name, problem = problems[0]
        also = f" (and {plural(len(problems) - 1, 'other run')})" if len(problems) > 1 else ""
        notify(f"{name}: left out{also}: {problem}")


def _print(store: Store, sql: str, style: str) -> None:
    if style == "table":
        print_lines(table_lines(ask(store, sql)))
        return
    for part in _parts(store, sql, style):
        sys.stdout.write(part)
    sys.stdout.flush()


def _parts(store: Store, sql: str, style: str) -> Iterator[str]:
    answer = ask(store, sql)
    return csv_lines(answer) if style == "csv" else json_lines(answer)


def _write(store: Store, sql: str, style: str, out: Path) -> None:
    parts = (
        (f"{line}\n" for line in table_lines(ask(store, sql)))
        if style == "table"
        else _parts(store, sql, style)
    )
    fresh = partial_file(out)
    try:
        with writing(out, "the file"):
            with fresh.open("w", encoding="utf-8", newline="") as file:
                file.writelines(parts)
            fresh.replace(out)
    finally:
        fresh.unlink(missing_ok=True)
