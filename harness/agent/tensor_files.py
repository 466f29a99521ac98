"""Large tensors as files, between two processes of one machine."""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import shutil
import stat
import weakref
from typing import Any

import numpy as np

from harness.agent.errors import NoRoomError, UnfeedableError
from harness.agent.text import clean

FILE_FROM = 256 << 10  # bytes from which on a tensor travels as a file: smaller ones a message takes sooner
MAP_FROM = 1 << 20  # bytes from which on a file is mapped, not read
MAP_LIMIT = 64  # mappings at a time: each holds a descriptor, of which macOS grants a process 256
MAP_ALWAYS_FROM = 64 << 20  # bytes from which on a file is mapped nevertheless; memory does not hold many
MAPPINGS: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
MOST_LEVELS = 16  # sequences within one another; ONNX's operators make sequences of tensors and of maps only
INLINE_LIMIT = 1 << 30  # bytes of tensors in one message; execnet's own end is at 2 GiB
WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
READ_FLAGS = os.O_RDONLY  # each of the others is there on some systems only
for flag in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK", "O_TEMPORARY"):
    READ_FLAGS |= getattr(os, flag, 0)


def contents(array: Any) -> Any:
    """The bytes of an array in C order; those of a large one stay where they are, as ``Bulk``."""
    if array.nbytes < FILE_FROM:
        return array.tobytes()
    return Bulk(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


class Bulk:
    """Bytes too many to be copied: a view of memory that ``owner`` keeps, for a moment, as it is."""

    BLOCK = 256 << 10  # bytes compared at once: what a processor's cache can hold

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

    __hash__ = None  # type: ignore[assignment]  # what it shows may change


class TensorFiles:
    """Large tensors on their way between a harness and an agent of one machine, as files.

    Either side has one of these, for the same folders. A large tensor's wire form has the name of a file in
    place of its data: ``{"dtype": "float32", "shape": [1000, 1000], "file": "out-1"}``. It is written
    once, straight from where it lies, then mapped by the other side, which deletes it at once: what is
    mapped stays readable until it is no longer used.

    Args:
        folders: Where files may lie, the first choice first; none where the two share no file system.
        prefix: What the names of files begin with that are written here.
        what: What is sent from here, for people.
    """

    NAME = re.compile(r"[a-z]{1,20}-[0-9]{1,20}")

    def __init__(self, folders: list[str], prefix: str, what: str) -> None:
        self.folders = folders
        self.prefix = prefix
        self.what = what
        self.number = 0
        self.begin()

    def begin(self) -> None:
        """Another message begins."""
        self.written: list[str] = []
        self.file_bytes = 0
        self.inline_bytes = 0

    def send(self, value: Any) -> Any:
        """A value in wire form, fit for the message: large tensors are written to files.

        Raises:
            NoRoomError: They fit nowhere.
        """
        if value is None:
            return None
        if "sequence" in value:
            return {"sequence": [self.send(item) for item in value["sequence"]]}
        if "keys" in value:
            return {"keys": self.send(value["keys"]), "values": self.send(value["values"])}
        data = value["data"]
        if isinstance(data, list) or len(data) < FILE_FROM:
            # A text's length is at most this, with what execnet adds.
            self.count(sum(4 * len(text) + 16 for text in data) if isinstance(data, list) else len(data))
            return value
        bulk = data if isinstance(data, Bulk) else Bulk(np.frombuffer(data, np.uint8))
        name = self.write(bulk)
        if name:
            return {"dtype": value["dtype"], "shape": value["shape"], "file": name}
        self.count(len(bulk))
        return {**value, "data": bulk.view.tobytes()}

    def count(self, nbytes: int) -> None:
        """So many bytes more go into the message itself."""
        self.inline_bytes += nbytes
        if self.inline_bytes > INLINE_LIMIT:
            elsewhere = " and find no room in %s" % " or ".join(self.folders) if self.folders else ""
            limit = "%s take more than the %d MiB that fit into one message"
            raise NoRoomError(limit % (self.what, INLINE_LIMIT >> 20) + elsewhere)

    def write(self, data: Bulk) -> str:
        """Write a file; its name, or an empty string where no folder has room for it."""
        for folder in self.folders:
            self.number += 1
            name = "%s-%d" % (self.prefix, self.number)
            path = os.path.join(folder, name)
            try:
                # Others write there, too, and memory that holds files is lost to everybody else.
                if len(data) > shutil.disk_usage(folder).free // 2:
                    continue
                handle = os.open(path, WRITE_FLAGS, 0o600)
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
        """The message at hand will not be sent: its files have no reader."""
        for path in self.written:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self.begin()

    def receive(self, value: Any, levels: int = 0) -> None:
        """Put the data of its files into a value in wire form, whoever has sent it.

        Args:
            value: The value.
            levels: How many values it lies in.

        Raises:
            UnfeedableError: A file is not to be had, or there are too many levels for a value.
        """
        if not isinstance(value, dict) or "data" in value:  # nearly all of them
            return
        if levels > MOST_LEVELS:
            raise UnfeedableError("a value of more than %d levels" % MOST_LEVELS)
        items = value.get("sequence")
        for part in [*(items if isinstance(items, list) else ()), value.get("keys"), value.get("values")]:
            self.receive(part, levels + 1)
        if "file" in value:
            try:
                value["data"] = self.read(value.pop("file"))
            except OSError as error:
                raise UnfeedableError("a tensor's file cannot be read: %s" % clean(error)) from error

    def read(self, name: object) -> Any:
        """The contents of a file, which is deleted.

        Raises:
            OSError: There is no such file, or it is none that ``write`` could have made.
        """
        if not isinstance(name, str) or not self.NAME.fullmatch(name):
            raise OSError("%s is no name of one" % clean(repr(name), 100))
        for folder in self.folders:
            path = os.path.join(folder, name)
            try:
                handle = os.open(path, READ_FLAGS)
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
                if os.name == "posix":  # elsewhere O_TEMPORARY deletes it after its last use
                    with contextlib.suppress(OSError):
                        os.unlink(path)
        raise FileNotFoundError("there is no %s" % name)
