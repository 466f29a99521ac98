"""Rows, written to the tables of the store in batches, and removed from them."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.annex.store.columns import from_array, to_array
from harness.annex.store.intake import RunRows
from harness.annex.store.schema import CELL_KINDS, ENVIRONMENT_KINDS, RESULT_KINDS, RUN_KINDS, TREND_KINDS
from harness.report.formats.cell_columns import Kind

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PLAIN: dict[str, dict[str, Kind]] = {
    "run": RUN_KINDS,
    "environment": ENVIRONMENT_KINDS,
    "trend": TREND_KINDS,
}
"""Tables that get the rows of a run unchanged."""

_RESULTS: dict[str, Kind] = {**CELL_KINDS, **RESULT_KINDS}


def write_runs(database: "DuckDBPyConnection", runs: Sequence[RunRows]) -> None:
    """Write the rows of runs in one transaction."""
    with _transaction(database):
        for table, kinds in _PLAIN.items():
            with _batch(database, runs, table, kinds):
                database.execute(f"INSERT INTO {table} SELECT {_selected(kinds)} FROM batch")  # noqa: S608 - own names
        with _batch(database, runs, "result", _RESULTS):
            database.execute(
                "INSERT INTO cell SELECT (SELECT coalesce(max(id), 0) FROM cell) + row_number() OVER (), * "  # noqa: S608
                f"FROM (SELECT DISTINCT ON (matrix, cell) {_selected(CELL_KINDS)} FROM batch) "
                "ANTI JOIN cell USING (matrix, cell)"
            )
            figures = ", ".join(from_array(name, kind, "batch.") for name, kind in RESULT_KINDS.items())
            database.execute(
                f"INSERT INTO result SELECT cell.id, {figures} FROM batch "  # noqa: S608 - own names
                "JOIN cell ON cell.matrix = batch.matrix AND cell.cell = batch.cell"
            )


def remove_runs(database: "DuckDBPyConnection", runs: Collection[int]) -> None:
    """Remove runs with all their rows, in one transaction."""
    if not runs:
        return
    with _transaction(database):
        for table, key in (("result", "run"), ("trend", "run"), ("environment", "run"), ("run", "id")):
            statement = f"DELETE FROM {table} WHERE {key} IN (SELECT unnest(?))"  # noqa: S608 - own names
            database.execute(statement, [list(runs)])


@contextlib.contextmanager
def _transaction(database: "DuckDBPyConnection") -> Iterator[None]:
    database.execute("BEGIN")
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # after a full disk there is no transaction any more
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


@contextlib.contextmanager
def _batch(
    database: "DuckDBPyConnection", runs: Sequence[RunRows], table: str, kinds: dict[str, Kind]
) -> Iterator[None]:
    """Make the rows of a table readable as ``batch``."""
    parts = [run.tables[table] for run in runs if table in run.tables]
    values = {name: [value for part in parts for value in part[name]] for name in kinds}
    database.register("batch", {name: to_array(kinds[name], values.pop(name)) for name in kinds})
    try:
        yield
    finally:
        database.unregister("batch")


def _selected(kinds: dict[str, Kind]) -> str:
    return ", ".join(from_array(name, kind) for name, kind in kinds.items())
