"""Which run folders this user wrote here: a key in the cache signs each ``run.json``.

``run.json`` has commands, environment variables and libraries of targets. Starting them runs whatever the
file's author wants, so the file itself cannot prove who wrote it.
"""

import hmac
import os
import secrets
import stat
from pathlib import Path

import msgspec

from harness.agent.posix import user_id
from harness.core.files.reading import read_regular
from harness.core.files.writing import aside, write_aside
from harness.core.records.run_info import RunInfo
from harness.core.text.errors import UsageError
from harness.corpus.caches.cache import cache_root, fill_once

INFO = "run.json"
_CODES = "run.mac"
"""File in the run folder: HMAC-SHA256 (hexadecimal) of ``run.json``; during a change, also of the new one."""

KEY = "run-key"
"""Entry of the cache with the key."""

_MOST_BYTES = 64 << 20
"""Largest size of ``run.json``: one with 10,000 places has some megabytes."""


def write_info(folder: Path, content: bytes, *, is_own: bool = True) -> None:
    """Write ``run.json`` of a folder. It is signed if the run is this user's and the cache has a key.

    Raises:
        OSError: The folder cannot be written.
    """
    key = _key() if is_own else None
    with aside(folder / INFO) as fresh:
        fresh.write_bytes(content)
        if key is not None:  # one of the two exists, whenever the process ends
            before = _signed(folder, key)
            _sign(folder, key, *([] if before is None else [before]), content)
    if key is not None:
        _sign(folder, key, content)


def own_info(folder: Path) -> RunInfo | None:
    """Return ``run.json`` if this user wrote it with this cache, and it is unchanged; else None."""
    key = _key()
    content = None if key is None else _signed(folder, key)
    return None if content is None else msgspec.json.decode(content, type=RunInfo)


def _sign(folder: Path, key: bytes, *contents: bytes) -> None:
    write_aside(folder / _CODES, b"".join(_code(key, content) + b"\n" for content in contents))


def _signed(folder: Path, key: bytes) -> bytes | None:
    """Return the content of ``run.json``; None if it is not signed."""
    try:
        codes = read_regular(folder / _CODES, 1024).split()
        content = read_regular(folder / INFO, _MOST_BYTES)
    except OSError:
        return None
    code = _code(key, content)
    return content if any(hmac.compare_digest(code, each) for each in codes) else None


def _code(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, "sha256").hexdigest().encode()


def _key() -> bytes | None:
    """Return the key; None if there is no cache to keep it, or if others can read or write it."""
    try:
        path = fill_once(cache_root() / KEY, _write_key) / "key"
        state = path.lstat()
        if os.name == "posix" and (state.st_uid != user_id() or stat.S_IMODE(state.st_mode) & 0o077):
            return None
        return read_regular(path, 1024) or None
    except (OSError, UsageError):
        return None


def _write_key(entry: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(entry / "key", flags, 0o600), "wb") as file:
        file.write(secrets.token_bytes(32))
