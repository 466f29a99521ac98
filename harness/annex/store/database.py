"""DuckDB, as the store uses it: bounded memory, one file, and errors in words."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.text.errors import UsageError, one_line

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DATABASE_FILE = "results.duckdb"

MEMORY_LIMIT = "400MB"
"""Data beyond the limit is written beside the store; Python and its libraries take about 150 MB more."""

_BUSY_S = 60.0
_RETRY_S = 0.1
_BUSY = ("could not set lock", "conflicting lock", "used by another process")
"""Texts of DuckDB and of Windows about a file that another process has open."""

_NOT_THE_FILE = ("permission denied", "no space left", "disk quota", "read-only file system")


class Unreadable(Exception):  # noqa: N818 - a state of the file, handled by building it anew
    """The file is not a store, is damaged, or has another version."""


def require_duckdb() -> None:
    """Raise UsageError unless DuckDB is installed."""
    try:
        import duckdb  # noqa: F401
    except ImportError as error:
        hint = "install it: pip install 'ort-ep-harness[store]'"
        raise UsageError.at("duckdb", "a store needs DuckDB", hint) from error


def open_writable(place: Path, tell: Callable[[str], None]) -> "DuckDBPyConnection":
    """Open or create the file to write; wait while other processes read it.

    Raises:
        UsageError: Others read it for a minute, or it cannot be written.
        Unreadable: It is not a database.
    """
    settings = {"preserve_insertion_order": "false"}
    return _patient(place, lambda: _connect(place, read_only=False, **settings), tell)


def open_read_only(
    place: Path, tell: Callable[[str], None], *, allowed: Path | None = None
) -> "DuckDBPyConnection":
    """Open the file so that SQL can read it and nothing else, and may write only the file ``allowed``.

    Raises:
        UsageError: It is being written, or cannot be read.
        Unreadable: It is no database.
    """
    database = _patient(place, lambda: _connect(place, read_only=True), tell)
    # By then, DuckDB allows its own file and the folder for data beyond the memory limit.
    for setting in (
        *(() if allowed is None else (f"allowed_paths = [{_quoted(str(allowed.absolute()))}]",)),
        # Names of tables never refer to variables of this program.
        "python_enable_replacements = false",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        database.execute(f"SET {setting}")
    return database


@contextlib.contextmanager
def reporting(place: Path) -> Iterator[None]:
    """Turn errors of DuckDB about the store into a message for users."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError) as error:
        if isinstance(error, duckdb.OutOfMemoryException):
            hint = "ask for fewer rows or columns; what does not fit into memory goes to the store's folder"
        else:
            hint = "free some space, or name a folder that can be written with --store"
        raise UsageError.at(place, f"the store cannot be used: {one_line(error, 200)}", hint) from error


def _connect(place: Path, *, read_only: bool, **settings: str) -> "DuckDBPyConnection":
    import duckdb

    return duckdb.connect(
        str(place / DATABASE_FILE),
        read_only=read_only,
        config={
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": str(place / "tmp"),
            # Nothing is loaded from elsewhere, whatever a query names.
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # Texts stay texts, whatever the first rows look like.
            "pandas_analyze_sample": "0",
            **settings,
        },
    )


def _patient(
    place: Path, connect: Callable[[], "DuckDBPyConnection"], tell: Callable[[str], None]
) -> "DuckDBPyConnection":
    import duckdb

    until = time.monotonic() + _BUSY_S
    told = False
    while True:
        try:
            return connect()
        except duckdb.Error as error:
            text = str(error).lower()
            if not any(busy in text for busy in _BUSY):
                if isinstance(error, duckdb.OutOfMemoryException) or any(
                    word in text for word in _NOT_THE_FILE
                ):
                    raise
                raise Unreadable(one_line(error, 200)) from error
            if time.monotonic() > until:
                what = f"another process has used the store for {_BUSY_S:.0f} s"
                hint = "wait for it, or name another folder with --store"
                raise UsageError.at(place, what, hint) from error
        if not told:
            tell(f"{place}: waiting for another process that uses the store")
            told = True
        time.sleep(_RETRY_S)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
