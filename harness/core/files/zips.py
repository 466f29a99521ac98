"""Opens zips of strangers: the list of entries is read only if it is short.

A zip of 60 MB may list 1.2 million entries. Python takes 15 seconds and 500 MB for them before any check is
possible.
"""

import zipfile
from typing import Any, BinaryIO

MOST_DIRECTORY = 4 << 20
"""Largest size of the list of a zip's entries in bytes: some 40,000 entries."""


class _Guarded:
    """A file with a limit on each read until the list is read, which ``zipfile`` does in one piece."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.is_open = False

    def read(self, size: int = -1, /) -> bytes:
        if self.is_open:
            return self._file.read(size)
        content = self._file.read(size if 0 <= size <= MOST_DIRECTORY else MOST_DIRECTORY + 1)
        if len(content) > MOST_DIRECTORY:
            raise zipfile.BadZipFile(f"its list of entries is larger than {MOST_DIRECTORY >> 20} MiB")
        return content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def open_zip(file: BinaryIO) -> zipfile.ZipFile:
    """Open a zip in a file; the file must stay open, and closing the zip does not close it.

    Raises:
        zipfile.BadZipFile: It is not a zip, or lists too many entries.
    """
    guarded = _Guarded(file)
    archive = zipfile.ZipFile(guarded)
    guarded.is_open = True
    return archive
