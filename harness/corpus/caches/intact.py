"""Folders of the cache with a digest of each file: a damaged file is found before its use, and made again.

Disks and copies flip bits, and a cache may be cleaned while a run uses it.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

DIGESTS_FILE = "digests.json"
"""The file with the digests of a folder: first subfolder, or an empty text -> rest of a path -> digest."""

_Digests = dict[str, dict[str, str]]


def write_digests(folder: Path) -> None:
    """Write the digests of the files of a folder.

    A file that is a link to another place does not belong to the cache.
    """
    found: _Digests = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_nlink == 1:
            first, slash, rest = path.relative_to(folder).as_posix().partition("/")
            found.setdefault(first if slash else "", {})[rest if slash else first] = _digest(path)
    (folder / DIGESTS_FILE).write_bytes(msgspec.json.encode(found))


def find_damaged(folder: Path, below: str | None = None, only: str = "") -> Path | None:
    """Return a file that differs from what was written; None if there is none.

    Args:
        folder: A folder with digests.
        below: Which of its folders; an empty text for files outside of folders, None for all files.
        only: The only file that is checked there; empty for all.
    """
    digests = _read(folder)
    if digests is None or (below is not None and below not in digests):
        return folder / DIGESTS_FILE
    for first in digests if below is None else (below,):
        files = digests[first]
        for name in files if not only else (only,):
            # Texts in place of paths, here and below: this is done for every cell.
            path = f"{folder}/{first}/{name}"
            if files.get(name) != _digest(path):
                return Path(path)
    return None


def mend(folder: Path, build: Callable[[Path], None]) -> int:
    """Make a folder again, in place, and return how many files were damaged or missing.

    ``build`` fills an empty folder, with the same content each time. Files that are intact are not touched:
    other processes may have them open.

    Raises:
        OSError: The cache cannot be written.
    """
    import filelock

    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder.with_name(f"{folder.name}.lock")):
        if find_damaged(folder) is None:
            return 0  # another process has done it
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
            content = Path(scratch) / "content"
            content.mkdir()
            build(content)
            write_digests(content)
            replaced = 0
            for path in _files(content):
                place = folder / path.relative_to(content)
                if _digest(path) != _digest(place):
                    if place.is_dir() and not place.is_symlink():
                        shutil.rmtree(place)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(path, place)  # noqa: PTH105 - replaces on Windows too
                    replaced += path.name != DIGESTS_FILE
            return replaced


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, the one with the digests last."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    yield from (path for path in found if path.name != DIGESTS_FILE)
    yield folder / DIGESTS_FILE


def _read(folder: Path) -> Mapping[str, Mapping[str, str]] | None:
    try:
        status = os.stat(f"{folder}/{DIGESTS_FILE}")  # noqa: PTH116 - for every cell
    except OSError:
        return None
    return _digests(f"{folder}/{DIGESTS_FILE}", status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=64)
def _digests(path: str, *_state: int) -> _Digests | None:
    try:
        return _decoder.decode(Path(path).read_bytes())
    except (OSError, ValueError):
        return None


_decoder = msgspec.json.Decoder(_Digests)


def _digest(path: str | Path) -> str:
    """Return a digest of a file; empty if it cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            while content := file.read(_PIECE):
                digest.update(content)
    except OSError:
        return ""
    return digest.hexdigest()


_PIECE = 1 << 20
"""Bytes that are read at once: the whole file, nearly always."""
