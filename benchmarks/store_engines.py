"""SQLite and DuckDB as the store of many runs: the same rows in both, by the same steps.

The rows are those of a store: for each cell of each run the verdict and figures, 12 columns. The steps: load
run by run (in transactions of ten runs), add one run more, read one cell, count verdicts for each target with
one SQL statement. Each engine runs in a process of its own, which prints seconds, size and peak memory.

`python benchmarks/store_engines.py [RUNS [CELLS]]`; 1,000 runs of 10,000 cells need 3 GB of disk.
"""

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ENGINES = ("sqlite", "duckdb")
TOGETHER = 10  # runs in one transaction
VERDICTS = ("pass", "pass_partial", "fallback", "unsupported", "mismatch", "crash")
SHARES = (0.6, 0.1, 0.1, 0.15, 0.04, 0.01)
COLUMNS = (
    "run INTEGER, cell INTEGER, verdict VARCHAR, expected BOOLEAN, headroom DOUBLE, bits DOUBLE, "
    "create_ms DOUBLE, first_ms DOUBLE, p50_ms DOUBLE, reason VARCHAR, started VARCHAR, attempt INTEGER"
)
NAMES = tuple(column.split()[0] for column in COLUMNS.split(", "))
MARKS = ", ".join("?" * len(NAMES))
INSERT = f"INSERT INTO record VALUES ({MARKS})"  # noqa: S608 - question marks
FROM_BATCH = f"INSERT INTO record SELECT {', '.join(NAMES)} FROM batch"  # noqa: S608 - names of this module
HISTORY = "SELECT run, verdict, headroom FROM record WHERE cell = ? ORDER BY run"
COUNTS = "SELECT target, verdict, count(*) FROM record JOIN cell ON cell.id = record.cell GROUP BY ALL"
TARGETS = 10


def batch(run: int, cells: int) -> dict[str, np.ndarray]:
    """Return the rows of one run; the same for the same number."""
    draw = np.random.default_rng(run)
    verdict = draw.choice(np.array(VERDICTS, dtype=object), cells, p=SHARES)
    failed = np.isin(verdict.astype(str), ("mismatch", "crash"))
    columns: dict[str, Any] = {
        "run": np.full(cells, run),
        "cell": np.arange(cells),
        "verdict": verdict,
        "expected": ~failed,
        "headroom": draw.random(cells),
        "bits": draw.random(cells) * 24,
        "create_ms": np.round(draw.random(cells) * 10, 3),
        "first_ms": np.round(draw.random(cells), 3),
        "p50_ms": np.round(draw.random(cells), 3),
        "reason": np.where(failed, "the values differ", "").astype(object),
        "started": np.full(cells, f"2026-01-01T00:{run % 60:02}:00Z", dtype=object),
        "attempt": np.ones(cells, dtype=int),
    }
    return columns


class Sqlite:
    """The layout of a history: one tree, in which the results of a cell are neighbours."""

    def __init__(self, path: Path, cells: int) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA cache_size = -400000")
        self.database.execute(f"CREATE TABLE record ({COLUMNS}, PRIMARY KEY (cell, run)) WITHOUT ROWID")
        self.database.execute("CREATE TABLE cell (id INTEGER PRIMARY KEY, target TEXT)")
        self.database.executemany("INSERT INTO cell VALUES (?, ?)", targets(cells))

    def add(self, *batches: dict[str, np.ndarray]) -> None:
        self.database.execute("BEGIN")
        for rows in batches:
            lists = [rows[name].tolist() for name in NAMES]
            self.database.executemany(INSERT, zip(*lists, strict=True))
        self.database.execute("COMMIT")

    def ask(self, sql: str, *values: object) -> list[Any]:
        # SQLite has no GROUP BY ALL.
        return self.database.execute(sql.replace("ALL", "target, verdict"), values).fetchall()


class Duckdb:
    """Columns in the order of the runs; the results of a cell are found by reading one column."""

    def __init__(self, path: Path, cells: int) -> None:
        import duckdb

        self.database = duckdb.connect(path, config={"memory_limit": "400MB", "threads": 2})
        self.database.execute(f"CREATE TABLE record ({COLUMNS})")
        self.database.execute("CREATE TABLE cell (id INTEGER, target VARCHAR)")
        self.database.executemany("INSERT INTO cell VALUES (?, ?)", list(targets(cells)))

    def add(self, *batches: dict[str, np.ndarray]) -> None:
        self.database.execute("BEGIN")
        for rows in batches:
            self.database.register("batch", rows)
            self.database.execute(FROM_BATCH)
            self.database.unregister("batch")
        self.database.execute("COMMIT")

    def ask(self, sql: str, *values: object) -> list[Any]:
        return self.database.execute(sql, list(values)).fetchall()


def targets(cells: int) -> Iterator[tuple[int, str]]:
    return ((number, f"target{number % TARGETS}") for number in range(cells))


def measure(engine: str, runs: int, cells: int) -> None:
    """Print the row of one engine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store")
        store = (Sqlite if engine == "sqlite" else Duckdb)(path, cells)
        load_s = 0.0
        for first in range(0, runs, TOGETHER):
            batches = [batch(run, cells) for run in range(first, min(first + TOGETHER, runs))]
            load_s += took(lambda some=batches: store.add(*some))
        one = batch(runs, cells)
        add_s = took(lambda: store.add(one))
        found: list[Any] = []
        cell_s = took(lambda: found.extend(store.ask(HISTORY, cells // 2)))
        if len(found) != runs + 1:
            raise SystemExit(f"{engine}: {len(found)} results of a cell instead of {runs + 1}")
        sql_s = took(lambda: store.ask(COUNTS))
        size_mb = sum(each.stat().st_size for each in Path(folder).iterdir()) / 1e6
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    figures = (f"{seconds:.2f} s" for seconds in (load_s, add_s, cell_s, sql_s))
    print(f"| {engine} | {' | '.join(figures)} | {size_mb:,.0f} MB | {peak_mb:,.0f} MB |", flush=True)


def took(act: Any) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int, nargs="?", default=1000)
    parser.add_argument("cells", type=int, nargs="?", default=10_000)
    parser.add_argument("--engine", choices=ENGINES, help="only this one, in this process")
    chosen = parser.parse_args()
    if chosen.engine:
        measure(chosen.engine, chosen.runs, chosen.cells)
        return
    print("| engine | load | one more run | one cell | one SQL query | size | peak memory |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for engine in ENGINES:
        command = [sys.executable, __file__, str(chosen.runs), str(chosen.cells), "--engine", engine]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
