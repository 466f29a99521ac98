"""The row cache: the facts read from many small files, in one database. It may fail, which only costs time.

A row is found by its name. It counts only if its check is right: a digest of the name, of the state of its
source files, of the code that made it, and of its content. So damaged rows, rows of an earlier release and
rows whose files have changed all count as missing.

The database has a write-ahead log: readers and writers do not wait for each other, and killing a process
damages nothing. It is never synchronised with the disk: a power loss may damage it.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from harness.core.values import value

if TYPE_CHECKING:
    import sqlite3

FILE_NAME = "shelf-v1.sqlite"

LARGEST_CONTENT = 2 << 20
"""Bytes of the largest content that is kept. Reading a larger one takes so long that a cache saves little."""

MOST_DATABASE_BYTES = 1 << 30
"""Largest size of the database in bytes. Each process may restart a full one, once."""

BUSY_S = 0.05
"""Seconds to wait for another process; a write takes less than a thousandth of that."""

MOST_FAILURES = 3
"""Number of failures after which a process stops reading, or writing."""

_PAGE = 4096
_DIGEST = 16
_CREATE = "CREATE TABLE IF NOT EXISTS shelf (id INTEGER PRIMARY KEY, mark BLOB, content BLOB)"
_SELECT = "SELECT mark, content FROM shelf WHERE id = ?"
_REPLACE = "INSERT OR REPLACE INTO shelf VALUES (?, ?, ?)"


_MAKERS = ("operators", "corpus", "golden")
"""Folders of the code that makes rows."""


class RowCache:
    """One database of contents by name, for any thread and several processes. No method raises or blocks.

    It is made with its folder at the first use. Contents made by other code than ``makers`` do not count.
    """

    def __init__(self, path: Path, makers: str | None = None) -> None:
        self._path = path
        self._makers = makers or _own_sources()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._close: weakref.finalize[[], RowCache] | None = None
        self._reads = self._writes = MOST_FAILURES
        self._may_remove = True

    def get(self, name: str, state: str) -> bytes | None:
        """Return the content stored under a name and a state, or None."""
        number = _number(name)
        with self._lock:
            if self._reads <= 0:
                return None
            row, done = self._execute(_SELECT, number)
            if not done:
                self._reads -= 1
        if row is None:
            return None
        mark, content = row
        # A damaged row may hold anything, including a number instead of bytes.
        intact = isinstance(content, bytes) and mark == self._mark(name, state, content)
        return content if intact else None

    def put(self, name: str, state: str, content: bytes) -> None:
        """Keep a content in place of the one with the same name, unless it is too large."""
        if len(content) > LARGEST_CONTENT:
            return
        number, mark = _number(name), self._mark(name, state, content)
        with self._lock:
            if self._reads <= 0 or self._writes <= 0:
                return
            if not self._execute(_REPLACE, number, mark, content)[1]:
                self._writes -= 1

    def _execute(self, statement: str, *values: object) -> tuple[Any, bool]:
        """Return the first row, if any, and whether there was no error."""
        try:
            import sqlite3  # takes milliseconds, and most commands do not need it
        except ImportError:  # a Python that was built without it
            return None, False
        try:
            return self._open().execute(statement, values).fetchone(), True
        except sqlite3.Error as error:
            # A connection with an error is not used again.
            self._disconnect()
            damages = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in damages:
                self._remove()
        except UnicodeDecodeError:  # SQLite's own message names a part of a damaged schema
            self._disconnect()
            self._remove()
        except OSError:
            pass
        return None, False

    def _open(self) -> "sqlite3.Connection":
        if self._connection is not None:
            return self._connection
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = self._connect()
        if connection.execute("PRAGMA page_count").fetchone()[0] > 0.9 * MOST_DATABASE_BYTES / _PAGE:
            self._disconnect()
            self._remove()
            connection = self._connect()
        return connection

    def _connect(self) -> "sqlite3.Connection":
        import sqlite3

        # Every statement is its own transaction, and a lock separates threads.
        connection = sqlite3.connect(
            self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        self._connection, self._close = connection, weakref.finalize(self, connection.close)
        connection.text_factory = bytes  # there is no text, unless the database is damaged
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute(f"PRAGMA max_page_count = {MOST_DATABASE_BYTES // _PAGE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(_CREATE)
        return connection

    def _disconnect(self) -> None:
        if self._close is not None:
            self._close()
        self._connection = self._close = None

    def _remove(self) -> None:
        """Delete the database, only once: a second time would not help either."""
        if self._may_remove:
            self._may_remove = False
            for ending in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):  # Windows keeps what another process has open
                    os.remove(f"{self._path}{ending}")  # noqa: PTH107 - a path with more at its end

    def _mark(self, name: str, state: str, content: bytes) -> bytes:
        # repr() also keeps the parts apart.
        digest = hashlib.blake2b(repr((self._makers, name, state)).encode(), digest_size=_DIGEST)
        digest.update(content)
        return digest.digest()


@functools.lru_cache(maxsize=4)
def open_row_cache(folder: Path) -> RowCache:
    """Return the row cache in a folder of the cache; the same object each time."""
    return RowCache(folder / FILE_NAME)


def _number(name: str) -> int:
    # repr() can be encoded for any file name.
    return int.from_bytes(hashlib.blake2b(repr(name).encode(), digest_size=8).digest(), "big", signed=True)


@functools.cache
def _own_sources() -> str:
    """Return what decides how files are read: versions, and the harness's own sources."""
    package = Path(__file__).parents[2]
    sources = [Path(value.__file__)]
    sources += sorted(path for floor in _MAKERS for path in (package / floor).rglob("*.py"))
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for source in sources:
        with contextlib.suppress(OSError):
            digest.update(source.read_bytes())
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        digest.update(importlib.metadata.version("onnx").encode())
    return f"{digest.hexdigest()} {np.__version__} {ml_dtypes.__version__}"
