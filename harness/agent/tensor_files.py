"""Large tensors as files between two processes of one machine."""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import stat
import weakref
from typing import Any

import numpy as np

from harness.agent.safe_text import clean
from harness.agent.target_errors import NoRoomError, UnfeedableError

FILE_FROM = 256 << 10  # bytes of the smallest tensor in a file: a message is faster for smaller ones
MAP_FROM = 1 << 20  # bytes of the smallest file that is mapped, not read
MAP_LIMIT = 64  # mappings at a time: each holds a descriptor, and macOS allows a process 256
MAP_ALWAYS_FROM = 64 << 20  # bytes of the smallest file that is mapped beyond this limit
MAPPINGS: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_MOST_LEVELS = 16  # levels of nested sequences; ONNX's operators make only sequences of tensors and of maps
INLINE_LIMIT = 1 << 30  # bytes of tensors in one message, which is in memory several times
TEXT_LIMIT = 24 << 20  # bytes of texts among them: they are in the JSON, of which a frame takes 32 MiB
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_READ_FLAGS = os.O_RDONLY  # only some systems have the others
for flag in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK", "O_TEMPORARY"):
    _READ_FLAGS |= getattr(os, flag, 0)


def array_bytes(array: Any) -> Any:
    """Return the bytes of an array in C order; for a large one without a copy, as ``Bulk``."""
    if array.nbytes < FILE_FROM:
        return array.tobytes()
    return Bulk(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


class Bulk:
    """Bytes that are too many to copy: a view of memory that ``owner`` keeps alive."""

    BLOCK = 256 << 10  # bytes compared at once: they fit into a processor's cache

    def __init__(self, view: Any, owner: Any = None) -> None:
        self.view = view
        self.owner = owner

    def __len__(self) -> int:
        return len(self.view)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bulk) or len(self) != len(other):
            return False
        for start in range(0, len(self), self.BLOCK):
            mine, others = self.view[start : start + self.BLOCK], other.view[start : start + self.BLOCK]
            words = np.uint64 if len(mine) % 8 == 0 else np.uint8
            if not np.array_equal(mine.view(words), others.view(words)):
                return False
        return True

    __hash__ = None  # type: ignore[assignment]  # the memory may change


class TensorFiles:
    """Sends and receives large tensors as files, between a harness and an agent of one machine.

    Each side has one, for the same folders. In a large tensor's wire form, a file name replaces its data:
    ``{"dtype": "float32", "shape": [1000, 1000], "file": "out-1"}``. One side writes the file straight from
    memory; the other side maps it and deletes it at once. The mapping stays readable while it is in use.

    The folders are tried in their order; there are none if the two share no file system. Names of files that
    this side writes begin with ``prefix``; ``what`` names its tensors in error messages.
    """

    NAME = re.compile(r"[a-z]{1,20}-[0-9]{1,20}")

    def __init__(self, folders: list[str], prefix: str, what: str) -> None:
        self.folders = folders
        self.prefix = prefix
        self.what = what
        self.number = 0
        self.begin()

    def begin(self) -> None:
        """Start a new message."""
        self.written: list[str] = []
        self.file_bytes = 0
        self.inline_bytes = 0
        self.text_bytes = 0

    def send(self, value: Any) -> Any:
        """Return a value in wire form, ready for the message: large tensors are written to files.

        Raises:
            NoRoomError: They fit neither into a folder nor into the message.
        """
        if value is None:
            return None
        if "sequence" in value:
            return {"sequence": [self.send(item) for item in value["sequence"]]}
        if "keys" in value:
            return {"keys": self.send(value["keys"]), "values": self.send(value["values"])}
        data = value["data"]
        if isinstance(data, list) or len(data) < FILE_FROM:
            if isinstance(data, list):
                self._count_texts(data)
            else:
                self._count(len(data))
            return value
        bulk = data if isinstance(data, Bulk) else Bulk(np.frombuffer(data, np.uint8))
        name = self._write(bulk)
        if name:
            return {"dtype": value["dtype"], "shape": value["shape"], "file": name}
        self._count(len(bulk))
        return {**value, "data": bulk.view.tobytes()}

    def _count_texts(self, texts: list[str]) -> None:
        # Their largest possible size: an escape of six bytes for each character, quotes and a comma.
        nbytes = sum(6 * len(text) + 3 for text in texts)
        self.text_bytes += nbytes
        if self.text_bytes > TEXT_LIMIT:
            limit = "the texts of %s take more than the %d MiB that fit into one message"
            raise NoRoomError(limit % (self.what, TEXT_LIMIT >> 20))
        self._count(nbytes)

    def _count(self, nbytes: int) -> None:
        self.inline_bytes += nbytes
        if self.inline_bytes > INLINE_LIMIT:
            elsewhere = " and find no room in %s" % " or ".join(self.folders) if self.folders else ""
            limit = "%s take more than the %d MiB that fit into one message"
            raise NoRoomError(limit % (self.what, INLINE_LIMIT >> 20) + elsewhere)

    def _write(self, data: Bulk) -> str:
        """Write a file and return its name; an empty string if no folder has room for it."""
        import shutil  # takes milliseconds, and most processes send no large tensor

        for folder in self.folders:
            self.number += 1
            name = "%s-%d" % (self.prefix, self.number)
            path = os.path.join(folder, name)
            try:
                # Other processes need room there, too, and the folder may occupy memory.
                if len(data) > shutil.disk_usage(folder).free // 2:
                    continue
                handle = os.open(path, _WRITE_FLAGS, 0o600)
                self.written.append(path)
                try:
                    rest = memoryview(data.view)
                    while rest:
                        rest = rest[os.write(handle, rest) :]
                finally:
                    os.close(handle)
            except OSError:  # full after all, or gone
                with contextlib.suppress(OSError):
                    os.unlink(path)
                continue
            self.file_bytes += len(data)
            return name
        return ""

    def discard(self) -> None:
        """Delete the files of the current message, which will not be sent."""
        for path in self.written:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self.begin()

    def receive(self, value: Any, levels: int = 0) -> None:
        """Add the data of its files to a value in wire form, which may come from an untrusted process.

        Raises:
            UnfeedableError: A file cannot be read, or the value has too many levels.
        """
        if not isinstance(value, dict) or "data" in value:  # nearly all of them
            return
        if levels > _MOST_LEVELS:
            raise UnfeedableError("a value of more than %d levels" % _MOST_LEVELS)
        items = value.get("sequence")
        for part in [*(items if isinstance(items, list) else ()), value.get("keys"), value.get("values")]:
            self.receive(part, levels + 1)
        if "file" in value:
            try:
                value["data"] = self._read(value.pop("file"))
            except OSError as error:
                raise UnfeedableError("a tensor's file cannot be read: %s" % clean(error)) from error

    def _read(self, name: object) -> Any:
        """Return the contents of a file, and delete it; OSError if ``send`` cannot have written it."""
        if not isinstance(name, str) or not self.NAME.fullmatch(name):
            raise OSError("%s is not the name of a tensor's file" % clean(repr(name), 100))
        for folder in self.folders:
            path = os.path.join(folder, name)
            try:
                handle = os.open(path, _READ_FLAGS)
            except FileNotFoundError:
                continue
            try:
                about = os.fstat(handle)
                if not stat.S_ISREG(about.st_mode) or not about.st_size:
                    raise OSError("%s holds no tensor" % name)
                if about.st_size < (MAP_FROM if len(MAPPINGS) < MAP_LIMIT else MAP_ALWAYS_FROM):
                    return os.read(handle, about.st_size)
                mapping = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
                MAPPINGS.add(mapping)
                return mapping
            finally:
                os.close(handle)
                if os.name == "posix":  # elsewhere O_TEMPORARY deletes it after use
                    with contextlib.suppress(OSError):
                        os.unlink(path)
        raise FileNotFoundError("there is no %s" % name)
