"""Models that came from elsewhere: on their way, and kept for later processes."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from typing import Any

STORE_LIMIT = 4 << 30  # bytes of models from elsewhere that are kept
STORE_IN_USE_S = 600  # seconds after its last use in which a model is not deleted: a session may be due
STORE_ABANDONED_S = 86400  # seconds after which an incomplete model has nobody who completes it
NEW = ".new-"  # what the name of a model's folder begins with as long as it is incomplete


class Delivery:
    """A model on its way: its files come one after the other into a folder of their own.

    Raises:
        OSError: There is no room for it.
    """

    def __init__(self, store: ModelStore, model: dict[str, Any]) -> None:
        self.model = model
        self.files = collections.deque(model["files"])
        self.nbytes = sum(nbytes for _, nbytes, _ in model["files"])
        self.folder = store.make_room(self.nbytes)
        self.file: Any = None
        self.name = ""
        self.offset = 0

    def lacks_something(self) -> bool:
        """Whether a piece is to be asked for: that of ``name`` from ``offset`` on."""
        while self.files:
            self.name, nbytes, expected = self.files[0]
            if self.file is None:
                path = os.path.join(self.folder, *self.name.split("/"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self.file = open(path, "wb")  # noqa: SIM115 - until its last piece is there
                self.hash, self.offset = hashlib.sha256(), 0
            if self.offset < nbytes:
                return True
            self.file.close()
            self.file = None
            if self.offset > nbytes or self.hash.hexdigest() != expected:
                raise OSError("%s has changed on its way" % self.name)
            self.files.popleft()
        return False

    def take(self, content: bytes | None) -> None:
        """Add the piece that was asked for."""
        if not content:
            raise OSError("%s can no longer be read" % self.name)
        self.file.write(content)
        self.hash.update(content)
        self.offset += len(content)

    def discard(self) -> None:
        """Forget it."""
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class ModelStore:
    """Models that came from elsewhere, kept for later processes: a folder for each, named by its digest."""

    def __init__(self) -> None:
        self.folder = ""
        self.seen: set[str] = set()
        self.nbytes: int | None = None

    def find(self, model: dict[str, Any]) -> str:
        """Path of a model, or an empty string. What an earlier process has left is read through once."""
        entry = os.path.join(self.home(), model["digest"])
        if not os.path.isdir(entry):
            return ""
        paths = [os.path.join(entry, *name.split("/")) for name, _, _ in model["files"]]
        with contextlib.suppress(OSError):
            os.utime(entry)
            if model["digest"] in self.seen or all(
                os.path.getsize(path) == nbytes and digest_of(path) == expected
                for path, (_, nbytes, expected) in zip(paths, model["files"])
            ):
                self.seen.add(model["digest"])
                return paths[0]
        shutil.rmtree(entry, ignore_errors=True)  # it was damaged, such as by a loss of power
        return ""

    def home(self) -> str:
        """The store's folder. Where there is no cache, it is this process's own, and ends with it."""
        if not self.folder:
            caches = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
            cache = os.environ.get("EP_HARNESS_CACHE") or os.path.join(caches, "ort-ep-harness")
            folder = os.path.join(os.path.expanduser(cache), "models")
            try:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                os.rmdir(tempfile.mkdtemp(dir=folder))
            except OSError:
                folder = tempfile.mkdtemp(prefix="models-", dir=os.getcwd())
            self.folder = folder
        return self.folder

    def expect(self, model: dict[str, Any]) -> Delivery:
        """Begin to take a model in.

        Raises:
            OSError: There is no room for it.
        """
        return Delivery(self, model)

    def make_room(self, nbytes: int) -> str:
        """A new folder for so many bytes; others may have to go for it.

        Raises:
            OSError: There is no room for it.
        """
        if self.nbytes is None or self.nbytes + nbytes > STORE_LIMIT:
            self.nbytes = self.clean_up(STORE_LIMIT - nbytes)
        free = shutil.disk_usage(self.home()).free
        if nbytes > free // 2:
            reason = "it takes %d MiB, which are more than half of what is free in %s"
            raise OSError(reason % (nbytes >> 20, self.home()))
        self.nbytes += nbytes
        return tempfile.mkdtemp(prefix=NEW, dir=self.home())

    def keep(self, delivery: Delivery) -> None:
        """Give a complete model its name."""
        entry = os.path.join(self.home(), delivery.model["digest"])
        try:
            os.rename(delivery.folder, entry)
        except OSError:
            delivery.discard()
            if not self.find(delivery.model):  # else another process was quicker
                raise
        else:
            self.seen.add(delivery.model["digest"])

    def clean_up(self, limit: int) -> int:
        """Delete the models used longest ago until the others take no more than ``limit`` bytes.

        Returns:
            The bytes that are left. Models that were used a moment ago stay whatever they take.
        """
        entries = []
        for entry in os.scandir(self.home()):
            with contextlib.suppress(OSError):  # another process cleans up, too
                age_s = time.time() - entry.stat().st_mtime
                if entry.name.startswith(NEW):  # of a process that was killed, if it is old
                    if age_s > STORE_ABANDONED_S:
                        shutil.rmtree(entry.path, ignore_errors=True)
                    continue
                entries.append((age_s, size_of(entry.path), entry.path))
        total = sum(nbytes for _, nbytes, _ in entries)
        for age_s, nbytes, path in sorted(entries, reverse=True):
            if total <= limit or age_s < STORE_IN_USE_S:
                break
            shutil.rmtree(path, ignore_errors=True)
            total -= nbytes
        return total


def size_of(folder: str) -> int:
    """Bytes of all files below a folder."""
    files = (os.path.join(home, name) for home, _, names in os.walk(folder) for name in names)
    return sum(map(os.path.getsize, files))


def digest_of(path: str) -> str:
    """SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
