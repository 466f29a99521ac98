"""`ep-harness query`: one SELECT on the results of a folder of runs."""

import sys
from collections.abc import Iterable
from pathlib import Path

from harness.cli.output import notify, print_lines
from harness.cli.query_text import csv_lines, json_lines, table_lines
from harness.core.errors import EXIT_OK, Problem, UsageError
from harness.report.figures import plural
from harness.report.writing import writing
from harness.store.query import ask, partial_file, write_parquet
from harness.store.store import Store, open_store

_FORMATS = {"table": table_lines, "csv": csv_lines, "json": json_lines}


def query(runs: Path, sql: str, *, style: str, out: Path | None, store: Path | None) -> int:
    """Print the rows of a query, or write them into a file."""
    if style == "parquet" and out is None:
        hint = "name it: --out FILE"
        raise UsageError(Problem(where="--format", what="Parquet needs a file to be written to", hint=hint))
    allowed = partial_file(out) if out is not None and style == "parquet" else None
    with open_store(runs, store, notify, allowed=allowed) as opened:
        note_unreadable(opened)
        if out is not None and style == "parquet":
            write_parquet(opened, sql, out)
        else:
            text = _FORMATS[style](ask(opened, sql))
            if out is None:
                sys.stdout.writelines(text)
            else:
                _write(text, out)
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


def _write(text: Iterable[str], out: Path) -> None:
    fresh = partial_file(out)
    try:
        with writing(out, "the file"):
            with fresh.open("w", encoding="utf-8", newline="") as file:
                file.writelines(text)
            fresh.replace(out)
    finally:
        fresh.unlink(missing_ok=True)
