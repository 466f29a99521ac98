"""Models that came from another machine: during arrival, and stored for later processes.

All functions raise OSError if there is no room, a model cannot be read or written, or a name leads out of its
folder.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from typing import Any

from harness.agent.system import is_closed_to_others, sha256_of

STORE_LIMIT = 4 << 30  # bytes of stored models
_STORE_IN_USE_S = 600  # seconds after its last use in which a model is kept: a session may need it
_STORE_ABANDONED_S = 86400  # seconds after which an incomplete model is deleted
NEW = ".new-"  # prefix of the folder of an incomplete model


class Delivery:
    """A model that is arriving: its files are written one after another into a new folder."""

    def __init__(self, store: ModelStore, model: dict[str, Any]) -> None:
        for name in (model["digest"], *(name for name, _, _ in model["files"])):
            parts_of(name)  # refuse it before anything is written
        self.model = model
        self.files = collections.deque(model["files"])
        self.folder = store.make_room(sum(nbytes for _, nbytes, _ in model["files"]))
        self.file: Any = None
        self.name = ""
        self.offset = 0

    def lacks_something(self) -> bool:
        """Return whether a piece is missing: that of the file ``name`` from ``offset`` on."""
        while self.files:
            self.name, nbytes, expected = self.files[0]
            if self.file is None:
                path = os.path.join(self.folder, *parts_of(self.name))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self.file = open(path, "wb")  # noqa: SIM115 - closed after its last piece
                self.hash, self.offset = hashlib.sha256(), 0
            if self.offset < nbytes:
                return True
            self.file.close()
            self.file = None
            if self.offset > nbytes or self.hash.hexdigest() != expected:
                raise OSError("%s changed during the transfer" % self.name)
            self.files.popleft()
        return False

    def take(self, content: bytes | None) -> None:
        """Add the requested piece."""
        if not content:
            raise OSError("%s can no longer be read" % self.name)
        self.file.write(content)
        self.hash.update(content)
        self.offset += len(content)

    def discard(self) -> None:
        """Delete the received parts."""
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class ModelStore:
    """Complete models, kept for later processes: a folder for each, named by its digest."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.nbytes: int | None = None
        self.folder = ""

    def find(self, model: dict[str, Any]) -> str:
        """Return the path of a model, or an empty string; check the files of earlier processes once."""
        try:
            entry = os.path.join(self.home(), *parts_of(model["digest"]))
        except OSError:
            return ""
        if not os.path.isdir(entry):
            return ""
        paths = [os.path.join(entry, *name.split("/")) for name, _, _ in model["files"]]
        with contextlib.suppress(OSError):
            os.utime(entry)
            if model["digest"] in self.seen or all(
                os.path.getsize(path) == nbytes and sha256_of(path) == expected
                for path, (_, nbytes, expected) in zip(paths, model["files"])
            ):
                self.seen.add(model["digest"])
                return paths[0]
        shutil.rmtree(entry, ignore_errors=True)  # it is damaged, such as by a loss of power
        return ""

    def home(self) -> str:
        """Return the store's folder: in the cache, or else in this process's own folder.

        In any other folder, another user could replace a checked model.
        """
        if not self.folder:
            caches = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
            cache = os.environ.get("EP_HARNESS_CACHE") or os.path.join(caches, "ort-ep-harness")
            self.folder = os.path.join(os.path.expanduser(cache), "models")
            try:
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                os.rmdir(tempfile.mkdtemp(dir=self.folder))
                is_safe = is_closed_to_others(self.folder)
            except OSError:
                is_safe = False
            if not is_safe:
                self.folder = tempfile.mkdtemp(prefix="models-", dir=os.getcwd())
        return self.folder

    def make_room(self, nbytes: int) -> str:
        """Return a new folder for so many bytes; delete old models if they need the room."""
        if self.nbytes is None or self.nbytes + nbytes > STORE_LIMIT:
            self.nbytes = self._clean_up(STORE_LIMIT - nbytes)
        if nbytes > shutil.disk_usage(self.home()).free // 2:
            reason = "it takes %d MiB, more than half of the free space in %s"
            raise OSError(reason % (nbytes >> 20, self.home()))
        self.nbytes += nbytes
        return tempfile.mkdtemp(prefix=NEW, dir=self.home())

    def keep(self, delivery: Delivery) -> None:
        """Store a complete model under its digest."""
        try:
            os.rename(delivery.folder, os.path.join(self.home(), delivery.model["digest"]))
        except OSError:
            delivery.discard()
            if not self.find(delivery.model):  # otherwise another process was first
                raise
        else:
            self.seen.add(delivery.model["digest"])

    def _clean_up(self, limit: int) -> int:
        """Delete the least recently used models down to a limit, except recently used ones.

        Return the bytes left.
        """
        entries = []
        for entry in os.scandir(self.home()):
            with contextlib.suppress(OSError):  # another process may delete it now
                age_s = time.time() - entry.stat().st_mtime
                if entry.name.startswith(NEW):  # of a killed process, if it is old
                    if age_s > _STORE_ABANDONED_S:
                        shutil.rmtree(entry.path, ignore_errors=True)
                    continue
                entries.append((age_s, _size_of(entry.path), entry.path))
        total = sum(nbytes for _, nbytes, _ in entries)
        for age_s, nbytes, path in sorted(entries, reverse=True):
            if total <= limit or age_s < _STORE_IN_USE_S:
                break
            shutil.rmtree(path, ignore_errors=True)
            total -= nbytes
        return total


def parts_of(name: str) -> list[str]:
    """Return the parts of a file's relative name."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or set(part) & {"\\", ":", "\0"} for part in parts):
        raise OSError("%r is no name of a file in the model's folder" % name[:200])
    return parts


def _size_of(folder: str) -> int:
    files = (os.path.join(home, name) for home, _, names in os.walk(folder) for name in names)
    return sum(map(os.path.getsize, files))
