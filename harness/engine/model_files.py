"""A model on its way to another machine: what it is made of, and its files piece by piece.

The agent there keeps models by what is in them, and asks for what it lacks; see ``harness.agent.agent``.
"""

import functools
import hashlib
from pathlib import Path
from typing import Any

from harness.corpus.case import Case

CHUNK_BYTES = 8 << 20
"""Bytes of a file in one message: the connection never waits for long, nor does memory hold much of them."""


def parcel(case: Case) -> dict[str, Any]:
    """What a model is made of, as the agent takes it: the model's own file, then its external data.

    Returns:
        ``digest`` in hex over all, and ``files``: ``[name, bytes, SHA-256 in hex]`` of each. A name is
        relative to the model's folder, with forward slashes.

    Raises:
        OSError: A file cannot be read any more.
    """
    files = [[name, *_content(path, *_state(path))] for name, path in _files(case).items()]
    return {"digest": hashlib.sha256(repr(files).encode()).hexdigest(), "files": files}


def piece(case: Case, name: str, offset: int) -> bytes | None:
    """The bytes of one of a model's files from ``offset`` on, at most so many as fit into a message.

    Returns:
        None where the file cannot be read any more, or is none of the model's.
    """
    path = _files(case).get(name)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK_BYTES)
    except OSError:
        return None


def _files(case: Case) -> dict[str, Path]:
    home = case.model_path.parent
    return {path.relative_to(home).as_posix(): path for path in (case.model_path, *case.external)}


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


@functools.lru_cache(maxsize=4096)
def _content(path: Path, nbytes: int, _mtime_ns: int) -> tuple[int, str]:
    """Size and digest of a file; in memory, for one model goes to the same machine many times."""
    with path.open("rb") as file:
        return nbytes, hashlib.file_digest(file, "sha256").hexdigest()
