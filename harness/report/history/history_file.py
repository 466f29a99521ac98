"""The history of runs: one SQLite file, to which runs are added; nothing in it is ever changed."""

import contextlib
import datetime as dt
import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import msgspec

from harness.core.files.reading import MOST_RECORDS, open_regular
from harness.core.findings.cause import plain_cause
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.core.text.errors import UsageError, one_line
from harness.report.cells.column import column_of
from harness.report.cells.worst import least_bits, most_headroom
from harness.report.changes.latency_change import median_error
from harness.report.changes.run_comparison import read_side
from harness.report.changes.same_measure import policy_json
from harness.report.history.history_rows import run_row, trend_rows
from harness.report.runs.merged_run import MergedRun
from harness.report.runs.read import run_folders

HISTORY_SCHEMA = 1

_APPLICATION = 0x45504831
"""``EPH1``: marks the file as a history, for this program and for `file`."""

_REASON_CHARS = 200
_BUSY_S = 60.0
_DIGITS = 16
"""Digits of a model's digest that are kept."""


_TABLES = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, name TEXT NOT NULL, matrix TEXT NOT NULL,
    first TEXT NOT NULL, last TEXT NOT NULL, added TEXT NOT NULL,
    planned INTEGER NOT NULL, not_run INTEGER NOT NULL, complete INTEGER NOT NULL
);
CREATE TABLE environment (
    run INTEGER NOT NULL REFERENCES run, target TEXT NOT NULL, fingerprint TEXT NOT NULL,
    PRIMARY KEY (run, target, fingerprint)
) WITHOUT ROWID;
CREATE TABLE trend (
    run INTEGER NOT NULL REFERENCES run, label TEXT NOT NULL, target TEXT NOT NULL, provider TEXT NOT NULL,
    cells INTEGER NOT NULL, skipped INTEGER NOT NULL, excluded INTEGER NOT NULL, not_run INTEGER NOT NULL,
    tried INTEGER NOT NULL, passed INTEGER NOT NULL, passed_in_part INTEGER NOT NULL,
    untested INTEGER NOT NULL, unsupported INTEGER NOT NULL, failed INTEGER NOT NULL,
    median_bits REAL, headroom_high REAL, headroom_most REAL, median_p50_ms REAL,
    PRIMARY KEY (run, label)
) WITHOUT ROWID;
CREATE TABLE cell (
    id INTEGER PRIMARY KEY, matrix TEXT NOT NULL, cell TEXT NOT NULL, label TEXT NOT NULL,
    target TEXT NOT NULL, UNIQUE (matrix, cell)
);
CREATE TABLE result (
    cell INTEGER NOT NULL REFERENCES cell, run INTEGER NOT NULL REFERENCES run, verdict TEXT NOT NULL,
    expected INTEGER NOT NULL, headroom REAL, bits REAL, p50_ms REAL, PRIMARY KEY (cell, run)
) WITHOUT ROWID;
"""

_MEASURES = """
CREATE TABLE IF NOT EXISTS measure (
    id INTEGER PRIMARY KEY, model TEXT NOT NULL, golden TEXT NOT NULL, golden_digest TEXT NOT NULL,
    policy TEXT NOT NULL, UNIQUE (model, golden, golden_digest, policy)
);
CREATE TABLE IF NOT EXISTS judged_by (
    cell INTEGER NOT NULL REFERENCES cell, run INTEGER NOT NULL REFERENCES run,
    measure INTEGER NOT NULL REFERENCES measure, PRIMARY KEY (cell, run)
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS measures AS SELECT cell, run, model, golden, golden_digest, policy
    FROM judged_by JOIN measure ON measure.id = judged_by.measure;
"""
"""The measure of each result.

A history of an earlier version gets these tables with the next run; older versions ignore them.
"""

_SIGNATURES = """
CREATE TABLE IF NOT EXISTS failure (
    id INTEGER PRIMARY KEY, cause TEXT NOT NULL, phase TEXT NOT NULL, reason TEXT NOT NULL,
    UNIQUE (cause, phase, reason)
);
CREATE TABLE IF NOT EXISTS failed_by (
    cell INTEGER NOT NULL REFERENCES cell, run INTEGER NOT NULL REFERENCES run,
    failure INTEGER NOT NULL REFERENCES failure, flaky INTEGER NOT NULL, PRIMARY KEY (cell, run)
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS failures AS SELECT cell, run, cause, phase, reason, flaky
    FROM failed_by JOIN failure ON failure.id = failed_by.failure;
"""
"""A short form of how each cell failed.

Added to a history of an earlier version like the tables of measures.
"""

_LATENCIES = """
CREATE TABLE IF NOT EXISTS timed (
    cell INTEGER NOT NULL REFERENCES cell, run INTEGER NOT NULL REFERENCES run, p50_error REAL NOT NULL,
    PRIMARY KEY (cell, run)
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS latencies AS SELECT result.cell, result.run, p50_ms, p50_error
    FROM result LEFT JOIN timed ON timed.cell = result.cell AND timed.run = result.run WHERE p50_ms > 0;
"""
"""How uncertain each latency is.

Added to a history of an earlier version like the tables of measures.
"""

_NO_LATENCIES = (
    "CREATE TEMP VIEW latencies AS SELECT cell, run, p50_ms, NULL AS p50_error FROM result WHERE p50_ms > 0"
)

_NO_FAILURES = (
    "CREATE TEMP VIEW failures AS SELECT 0 AS cell, 0 AS run, '' AS cause, '' AS phase, '' AS reason, "
    "0 AS flaky WHERE 0"
)

_NO_MEASURES = (
    "CREATE TEMP VIEW measures AS SELECT 0 AS cell, 0 AS run, '' AS model, '' AS golden, "
    "'' AS golden_digest, '' AS policy WHERE 0"
)


class History:
    """An open history; ``create`` makes it if it does not exist.

    Raises:
        UsageError: It does not exist, cannot be opened, is not a history, or is of a later version.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        if not create and not path.is_file():
            hint = "make it with: ep-harness history add RUN --db FILE"
            raise UsageError.at(path, "there is no history", hint)
        with self._reporting():
            self.database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
            try:
                self._prepare(create=create)
            except BaseException:
                self.database.close()
                raise

    def rows(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query of this program.

        Raises:
            UsageError: The file cannot be read.
        """
        with self._reporting():
            yield from self.database.execute(sql, values)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()

    def add(self, path: Path, tell: Callable[[str], object] = len, run: MergedRun | None = None) -> bool:
        """Add a run, or a folder of runs as one; return False if the history already has it.

        Args:
            path: The run's folder.
            tell: Receives a line for each claim of a record that differs from the derived fact, and for each
                contradiction between parts of the run.
            run: The run, if it was already read.

        Raises:
            UsageError: The run cannot be read, or the file is not writable.
        """
        run = run or read_side(path)
        digest = _digest(run_folders(path))
        name = path.resolve().name
        with self._reporting(), self._writing():
            if self.database.execute("SELECT 1 FROM run WHERE digest = ?", (digest,)).fetchone():
                return False
            self._insert(run, digest, name)
        for line in (*run.told, *run.contradictions):
            tell(line)
        return True

    def _insert(self, run: MergedRun, digest: str, name: str) -> None:
        records = [record for _, record in run.records]
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        row = run_row(run, otherwise=now)
        matrix = row.matrix
        number = self.database.execute(
            "INSERT INTO run (digest, name, matrix, first, last, added, planned, not_run, complete) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (digest, name, matrix, row.first, row.last, now, row.planned, row.not_run, row.complete),
        ).lastrowid
        self.database.executemany(
            "INSERT OR IGNORE INTO environment VALUES (?, ?, ?)",
            [
                (number, each.target, msgspec.json.encode(each.fingerprint, order="deterministic").decode())
                for each in run.environments
            ],
        )
        self.database.executemany(
            f"INSERT INTO trend VALUES ({', '.join('?' * 18)})",  # noqa: S608 - nothing but question marks
            [(number, *row) for row in trend_rows(records, complete=run.complete)],
        )
        self.database.executemany(
            "INSERT INTO cell (matrix, cell, label, target) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            ((matrix, record.cell, column_of(record).label, record.target) for record in records),
        )
        self.database.executemany(
            "INSERT INTO result SELECT id, ?, ?, ?, ?, ?, ? FROM cell WHERE matrix = ? AND cell = ?",
            ((number, *_result(record), matrix, record.cell) for record in records),
        )
        self._insert_measures(records, number, matrix)
        self._insert_failures(records, number, matrix)
        self._insert_latencies(records, number, matrix)

    def _insert_measures(self, records: list[Record], number: int | None, matrix: str) -> None:
        self.database.execute("DROP VIEW IF EXISTS temp.measures")
        for statement in _with_triggers(_MEASURES, ("measure", "judged_by")):
            self.database.execute(statement)
        rows = [(measure, record.cell) for record in records if any(measure := _measure(record))]
        names = "model, golden, golden_digest, policy"
        self.database.executemany(
            f"INSERT OR IGNORE INTO measure ({names}) VALUES (?, ?, ?, ?)",  # noqa: S608 - own names
            {measure for measure, _ in rows},
        )
        self.database.executemany(
            "INSERT INTO judged_by SELECT cell.id, ?, measure.id FROM cell JOIN measure "
            "WHERE cell.matrix = ? AND cell.cell = ? AND measure.model = ? AND measure.golden = ? "
            "AND measure.golden_digest = ? AND measure.policy = ?",
            ((number, matrix, cell, *measure) for measure, cell in rows),
        )

    def _insert_failures(self, records: list[Record], number: int | None, matrix: str) -> None:
        self.database.execute("DROP VIEW IF EXISTS temp.failures")
        for statement in _with_triggers(_SIGNATURES, ("failure", "failed_by")):
            self.database.execute(statement)
        failed = [record for record in records if record.verdict.family is Family.FAILED]
        rows = [(_failure(record), record) for record in failed]
        self.database.executemany(
            "INSERT OR IGNORE INTO failure (cause, phase, reason) VALUES (?, ?, ?)",
            {failure for failure, _ in rows},
        )
        self.database.executemany(
            "INSERT INTO failed_by SELECT cell.id, ?, failure.id, ? FROM cell JOIN failure "
            "WHERE cell.matrix = ? AND cell.cell = ? AND cause = ? AND phase = ? AND reason = ?",
            ((number, record.flaky, matrix, record.cell, *failure) for failure, record in rows),
        )

    def _insert_latencies(self, records: list[Record], number: int | None, matrix: str) -> None:
        self.database.execute("DROP VIEW IF EXISTS temp.latencies")
        for statement in _with_triggers(_LATENCIES, ("timed",)):
            self.database.execute(statement)
        timed = ((record.cell, median_error(record.latency)) for record in records if record.latency)
        self.database.executemany(
            "INSERT INTO timed SELECT id, ?, ? FROM cell WHERE matrix = ? AND cell = ?",
            ((number, error, matrix, cell) for cell, error in timed if error is not None),
        )

    def _prepare(self, *, create: bool) -> None:
        (version,) = self.database.execute("PRAGMA user_version").fetchone()
        (application,) = self.database.execute("PRAGMA application_id").fetchone()
        empty = not self.database.execute("SELECT 1 FROM sqlite_master").fetchone()
        if empty and create:
            with self._writing():
                # Another process may have created it meanwhile.
                if not self.database.execute("SELECT 1 FROM sqlite_master").fetchone():
                    for statement in _statements():
                        self.database.execute(statement)
            self.database.execute(_NO_MEASURES)
            self.database.execute(_NO_FAILURES)
            self.database.execute(_NO_LATENCIES)
            return
        if application != _APPLICATION:
            hint = "name another file with --db"
            raise UsageError.at(self.path, "a database, but not a history", hint)
        if version != HISTORY_SCHEMA:
            what = f"a history of schema {version}, but this version reads schema {HISTORY_SCHEMA}"
            raise UsageError.at(self.path, what, "update ort-ep-harness")
        for name, view in (
            ("measures", _NO_MEASURES),
            ("failures", _NO_FAILURES),
            ("latencies", _NO_LATENCIES),
        ):
            if not self.database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone():
                self.database.execute(view)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Write in one transaction, and lock out other writers."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        """Turn errors of SQLite into a message for users."""
        try:
            yield
        except sqlite3.Error as error:
            hint = "name a history, or a new file in a folder that can be written, with --db"
            raise UsageError.at(self.path, f"no history: {error}", hint) from error


def _statements() -> Iterator[str]:
    yield from _with_triggers(_TABLES, ("run", "environment", "trend", "cell", "result"))
    yield f"PRAGMA application_id = {_APPLICATION}"
    yield f"PRAGMA user_version = {HISTORY_SCHEMA}"


def _with_triggers(script: str, tables: tuple[str, ...]) -> Iterator[str]:
    """Yield the statements of a script, and those that make its tables append-only."""
    yield from filter(None, map(str.strip, script.split(";")))
    for table in tables:
        for action in ("UPDATE", "DELETE"):
            yield (
                f"CREATE TRIGGER IF NOT EXISTS {table}_no_{action.lower()} BEFORE {action} ON {table} "
                "BEGIN SELECT RAISE(ABORT, 'a history is append-only'); END"
            )


def _digest(folders: tuple[Path, ...]) -> str:
    """Return a digest of the recorded results, independent of the folders' place."""

    def digest(path: Path) -> bytes:
        with open_regular(path, MOST_RECORDS) as file:
            return hashlib.file_digest(file, "sha256").digest()

    parts = sorted(digest(folder / "records.jsonl") for folder in folders)
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _measure(record: Record) -> tuple[str, str, str, str]:
    policy = policy_json(record.policy)
    return record.model_digest[:_DIGITS], record.golden, record.golden_digest, policy


def _failure(record: Record) -> tuple[str, str, str]:
    reason = one_line(plain_cause(record.reason), _REASON_CHARS)
    return record.cause, record.phase.value if record.phase else "", reason


def _result(record: Record) -> tuple[object, ...]:
    p50 = record.latency.p50_ms if record.latency else None
    return record.verdict.value, record.expected, most_headroom(record), least_bits(record), p50
