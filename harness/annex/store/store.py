"""The store of a folder of runs: once opened, it contains every run that the folder has at that moment."""

import contextlib
import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import msgspec

from harness.annex.store.database import (
    DATABASE_FILE,
    Unreadable,
    open_read_only,
    open_writable,
    reporting,
    require_duckdb,
)
from harness.annex.store.intake import RunRows, content_or_nothing, read_rows
from harness.annex.store.scan import FoundRun, scan
from harness.annex.store.schema import STORE_SCHEMA, table_statements
from harness.annex.store.tables import remove_runs, write_runs
from harness.core.collector import without_collector
from harness.core.text.counted import plural
from harness.core.text.errors import UsageError
from harness.corpus.caches.cache import cache_root

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BATCH_RECORDS = 50_000
"""Number of records written in one transaction: more take more memory, fewer more time."""

_FETCHED = 5_000
_TELL_S = 5.0
_WAIT_S = 600.0
"""Seconds to wait: the first reading of many runs takes minutes, and a second process waits for it."""

TellLine = Callable[[str], None]


class Store:
    """An open store, which only reads; while it is open, no other process can add runs.

    It has the folder of each run by name. Its database opens no other file.
    """

    def __init__(self, place: Path, paths: Mapping[str, Path], database: "DuckDBPyConnection") -> None:
        self.place = place
        self.paths = paths
        self.database = database

    def rows(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query of this program; ``?`` in it stand for the values.

        Raises:
            UsageError: The store cannot be read.
        """
        with reporting(self.place):
            cursor = self.database.cursor()
            cursor.execute(sql, list(values))
            while some := cursor.fetchmany(_FETCHED):
                yield from some

    def unreadable(self) -> tuple[tuple[str, str], ...]:
        """Return ``(name, problem)`` of each run that cannot be read."""
        rows = self.rows("SELECT name, problem FROM run WHERE problem IS NOT NULL ORDER BY name")
        return tuple((name, problem) for name, problem in rows)


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    state: str
    content: str


def default_place(folder: Path) -> Path:
    """Return the default place of a folder's store: in the cache, never among the runs."""
    whole = str(folder.resolve()).encode(errors="surrogateescape")
    return cache_root() / "store" / hashlib.sha256(whole).hexdigest()[:16]


@contextlib.contextmanager
def open_store(
    folder: Path, place: Path | None, tell: TellLine, *, allowed: Path | None = None
) -> Iterator[Store]:
    """Read new and changed runs into the store of a folder, or of a run, and open it.

    Queries may write the file ``allowed``; the store is at ``default_place`` if no place is given.

    Raises:
        UsageError: DuckDB is not installed, there is no run, or the store cannot be used.
    """
    require_duckdb()
    found = scan(folder)
    place = place or default_place(folder)
    with reporting(place), _alone(place, tell):
        _bring_up_to_date(place, found, tell)
        database = open_read_only(place, tell, allowed=allowed)
    try:
        yield Store(place, {run.name: run.path for run in found}, database)
    finally:
        database.close()


@contextlib.contextmanager
def _alone(place: Path, tell: TellLine) -> Iterator[None]:
    """Keep other processes from updating the store."""
    place.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(place / "store.lock")
    try:
        try:
            lock.acquire(timeout=1.0)
        except filelock.Timeout:
            tell(f"{place}: waiting for another process that reads runs")
            lock.acquire(timeout=_WAIT_S)
    except filelock.Timeout as error:
        what = f"another process has been reading runs for {_WAIT_S / 60:.0f} minutes"
        raise UsageError.at(place, what, "wait for it, or name another folder with --store") from error
    try:
        yield
    finally:
        lock.release()


def _bring_up_to_date(place: Path, found: tuple[FoundRun, ...], tell: TellLine) -> None:
    try:
        if (place / DATABASE_FILE).exists() and _is_up_to_date(place, found, tell):
            return
        _update(place, found, tell)
    except Unreadable as error:
        # It is a cache: the run folders have everything that was in it.
        tell(f"{place}: the store is built anew: {error}")
        _clear(place)
        _update(place, found, tell)


def _is_up_to_date(place: Path, found: tuple[FoundRun, ...], tell: TellLine) -> bool:
    with contextlib.closing(open_read_only(place, tell)) as database:
        _check(database)
        known = _known(database)
    return {run.name: run.state for run in found} == {name: run.state for name, run in known.items()} and all(
        run.state for run in found
    )


def _update(place: Path, found: tuple[FoundRun, ...], tell: TellLine) -> None:
    with contextlib.closing(open_writable(place, tell)) as database, without_collector():
        _prepare(database)
        known = _known(database)
        changed = [
            run
            for run in found
            if run.name not in known or known[run.name].state != run.state or not run.state
        ]
        gone = known.keys() - {run.name for run in found}
        read = []
        for run in changed:
            digest = content_or_nothing(run) if run.name in known else ""
            if digest and digest == known[run.name].content:
                database.execute("UPDATE run SET state = ? WHERE id = ?", [run.state, known[run.name].id])
            else:
                read.append(run)
        remove_runs(
            database, [known[name].id for name in gone | {run.name for run in read if run.name in known}]
        )
        _read(database, read, tell)


def _read(database: "DuckDBPyConnection", runs: list[FoundRun], tell: TellLine) -> None:
    number = max((run.id for run in _known(database).values()), default=0)
    batch: list[RunRows] = []
    told = time.monotonic()
    for index, run in enumerate(runs, start=1):
        batch.append(read_rows(number + index, run, content_or_nothing(run)))
        if sum(rows.records for rows in batch) >= BATCH_RECORDS:
            write_runs(database, batch)
            batch = []
        if time.monotonic() - told > _TELL_S:
            tell(f"read {index:,} of {plural(len(runs), 'new run')}")
            told = time.monotonic()
    if batch:
        write_runs(database, batch)


def _prepare(database: "DuckDBPyConnection") -> None:
    """Create the tables of a new file; check those of an old one."""
    if not database.execute("SELECT 1 FROM duckdb_tables() LIMIT 1").fetchone():
        database.execute("BEGIN")
        for statement in table_statements():
            database.execute(statement)
        database.execute("COMMIT")
    _check(database)


def _check(database: "DuckDBPyConnection") -> None:
    import duckdb

    try:
        row = database.execute("SELECT schema FROM meta").fetchone()
    except duckdb.Error as error:
        raise Unreadable("it has no tables of a store") from error
    if row != (STORE_SCHEMA,):
        raise Unreadable(f"its schema is {row and row[0]}, not {STORE_SCHEMA}")


def _known(database: "DuckDBPyConnection") -> dict[str, _Known]:
    rows = database.execute("SELECT name, id, state, content FROM run").fetchall()
    return {name: _Known(id=number, state=state, content=content) for name, number, state, content in rows}


def _clear(place: Path) -> None:
    for old in place.glob(f"{DATABASE_FILE}*"):
        old.unlink()
    shutil.rmtree(place / "tmp", ignore_errors=True)
