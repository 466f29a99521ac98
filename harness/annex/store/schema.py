"""The store's tables, and the views on them that people query."""

import zlib
from typing import cast

import msgspec

from harness.annex.store.columns import RECORD_COLUMNS
from harness.annex.store.columns import ViewColumn as Column
from harness.report.formats.cell_columns import Kind, RecordColumn
from harness.report.history.history_rows import TREND_COLUMNS

_RULES = 4
"""Changes with the rules that fill the tables, and with the views."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A view that people query; its columns are a public contract.

    Attributes:
        source: The tables that it reads, as the ``FROM`` clause.
        columns: ``(column, its expression)`` pairs.
    """

    name: str
    row: str
    source: str
    columns: tuple[tuple[Column | RecordColumn, str], ...]

    @property
    def statement(self) -> str:
        """The statement that creates the view."""
        selected = ", ".join(f"{expression} AS {column.name}" for column, expression in self.columns)
        # All of it is in this module.
        return f"CREATE VIEW {self.name} AS SELECT {selected} FROM {self.source}"  # noqa: S608


RUN_KINDS: dict[str, Kind] = {
    "id": "BIGINT",
    "name": "VARCHAR",
    "state": "VARCHAR",
    "content": "VARCHAR",
    "problem": "VARCHAR",
    "matrix": "VARCHAR",
    "first": "VARCHAR",
    "last": "VARCHAR",
    "planned": "BIGINT",
    "not_run": "BIGINT",
    "complete": "BOOLEAN",
    "records": "BIGINT",
}
"""Columns of the table of runs; ``state`` and ``content`` show whether a run has changed."""

ENVIRONMENT_KINDS: dict[str, Kind] = {"run": "BIGINT", "target": "VARCHAR", "fingerprint": "VARCHAR"}

TREND_KINDS: dict[str, Kind] = {"run": "BIGINT", **cast("dict[str, Kind]", TREND_COLUMNS)}

CELL_KINDS: dict[str, Kind] = dict.fromkeys(
    ("matrix", "cell", "label", "target", "suite", "model", "axes"), "VARCHAR"
)

RESULT_KINDS: dict[str, Kind] = {"run": "BIGINT", **{column.name: column.kind for column in RECORD_COLUMNS}}

_TABLES = repr((RUN_KINDS, ENVIRONMENT_KINDS, TREND_KINDS, CELL_KINDS, RESULT_KINDS))

STORE_SCHEMA = _RULES << 32 | zlib.crc32(_TABLES.encode())
"""Changes with the tables, and with the rules that fill them: a store of another schema is built anew."""


def table_statements() -> tuple[str, ...]:
    """Return the statements that create an empty store."""
    return (
        "CREATE TABLE meta (schema BIGINT)",
        f"INSERT INTO meta VALUES ({STORE_SCHEMA})",  # noqa: S608 - a number of this module
        f"CREATE TABLE run ({_declared(RUN_KINDS)})",
        f"CREATE TABLE environment ({_declared(ENVIRONMENT_KINDS)})",
        f"CREATE TABLE trend ({_declared(TREND_KINDS)})",
        f"CREATE TABLE cell (id BIGINT, {_declared(CELL_KINDS)})",
        f"CREATE TABLE result (cell BIGINT, {_declared(RESULT_KINDS)})",
        _MEASURES,
        _FAILURES,
        _LATENCIES,
        *(view.statement for view in VIEWS),
    )


_MEASURES = (
    "CREATE VIEW measures AS SELECT cell, run, coalesce(model_digest, '') AS model, "
    "coalesce(golden, '') AS golden, coalesce(golden_digest, '') AS golden_digest, "
    "coalesce(policy, '') AS policy FROM result"
)
"""Facts that a history keeps in separate tables; see ``harness.report.history.history_file``."""


_FAILURES = (
    "CREATE VIEW failures AS SELECT cell, run, coalesce(cause, '') AS cause, coalesce(phase, '') AS phase, "
    "coalesce(reason, '') AS reason, flaky FROM result WHERE family = 'failed'"
)

_LATENCIES = "CREATE VIEW latencies AS SELECT cell, run, p50_ms, p50_error FROM result WHERE p50_ms > 0"


def _declared(kinds: dict[str, Kind]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in kinds.items())


def _at(table: str, kind: str, name: str, meaning: str, source: str = "") -> tuple[Column, str]:
    return Column(name=name, kind=kind, meaning=meaning), source or f"{table}.{name}"


_RUN_OF = "run ON run.id = {table}.run"

VIEWS = (
    View(
        name="records",
        row="one cell of one run",
        source=f"result JOIN cell ON cell.id = result.cell JOIN {_RUN_OF.format(table='result')}",
        columns=(
            _at("run", "VARCHAR", "run", "Name of the run: its folder below the folder of runs.", "run.name"),
            _at("run", "VARCHAR", "matrix", "File name of the matrix."),
            _at("cell", "VARCHAR", "cell", "Id of the cell."),
            _at("cell", "VARCHAR", "suite", "Suite of the model."),
            _at("cell", "VARCHAR", "model", "Name of the model."),
            _at("cell", "VARCHAR", "target", "Target."),
            _at("cell", "VARCHAR", "label", "Target, with axes that are not at their default."),
            _at(
                "cell",
                "MAP(VARCHAR, VARCHAR)",
                "axes",
                "Axis → value, such as `axes['precision']`.",
                "cell.axes::JSON::MAP(VARCHAR, VARCHAR)",
            ),
            *((column, f"result.{column.name}") for column in RECORD_COLUMNS),
        ),
    ),
    View(
        name="runs",
        row="one run, readable or not",
        source="run",
        columns=(
            _at("run", "VARCHAR", "run", "Name of the run.", "run.name"),
            _at("run", "VARCHAR", "matrix", "File name of the matrix."),
            _at("run", "TIMESTAMP", "first", "Start of the first cell, UTC.", "TRY_CAST(first AS TIMESTAMP)"),
            _at("run", "TIMESTAMP", "last", "Start of the last cell, UTC.", "TRY_CAST(last AS TIMESTAMP)"),
            _at("run", "BIGINT", "planned", "Planned cells."),
            _at("run", "BIGINT", "not_run", "Planned cells without a result."),
            _at("run", "BOOLEAN", "complete", "Whether every planned cell has its result."),
            _at("run", "BIGINT", "records", "Rows of the run in `records`."),
            _at("run", "VARCHAR", "problem", "Why the run cannot be read; null if it can."),
        ),
    ),
    View(
        name="targets",
        row="one target at one point of its axes in one run",
        source=f"trend JOIN {_RUN_OF.format(table='trend')}",
        columns=(
            _at("run", "VARCHAR", "run", "Name of the run.", "run.name"),
            _at("run", "VARCHAR", "matrix", "File name of the matrix."),
            _at("run", "TIMESTAMP", "first", "Start of its first cell.", "TRY_CAST(first AS TIMESTAMP)"),
            _at("trend", "VARCHAR", "label", "Target, with axes that are not at their default."),
            _at("trend", "VARCHAR", "target", "Target."),
            _at("trend", "VARCHAR", "provider", "First preferred provider."),
            _at("trend", "BIGINT", "cells", "Cells."),
            *(
                _at("trend", "BIGINT", name, meaning)
                for name, meaning in (
                    ("tried", "Cells that were tried."),
                    ("passed", "Right, by the EP."),
                    ("passed_in_part", "Right, with some nodes on the CPU EP."),
                    ("untested", "Right, not by the EP."),
                    ("unsupported", "Refused by the EP."),
                    ("failed", "Failed."),
                    ("skipped", "Skipped."),
                    ("excluded", "Excluded."),
                    ("not_run", "Planned, without a result."),
                )
            ),
            _at("trend", "DOUBLE", "median_bits", "Median of the delivered bits of compute-heavy cells."),
            _at("trend", "DOUBLE", "headroom_high", "Share of the allowed error below which 95% are."),
            _at("trend", "DOUBLE", "headroom_most", "Largest such share."),
            _at("trend", "DOUBLE", "median_p50_ms", "Median over the cells of their median latency."),
        ),
    ),
    View(
        name="environments",
        row="one environment of one target in one run",
        source=f"environment JOIN {_RUN_OF.format(table='environment')}",
        columns=(
            _at("run", "VARCHAR", "run", "Name of the run.", "run.name"),
            _at("environment", "VARCHAR", "target", "Target."),
            _at(
                "environment",
                "JSON",
                "fingerprint",
                "Its fingerprint, such as `fingerprint->>'onnxruntime'`.",
                "environment.fingerprint::JSON",
            ),
        ),
    ),
)
"""Every view, in the order of the reference."""
