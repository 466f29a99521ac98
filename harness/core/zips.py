"""Opens zips of strangers: the list of their entries is read only if it is short.

A zip of 60 MB may list 1.2 million entries, for which Python takes 15 seconds and 500 MB before anybody can
look at them.
"""

import zipfile
from typing import Any, BinaryIO

MOST_DIRECTORY = 4 << 20
"""Bytes of the list of a zip's entries: some 40,000 of them."""


class _Guarded:
    """A file of which little is read at once until the list is read, which ``zipfile`` does in one piece."""

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
    """Open a zip in a file, which has to stay open, and which the zip does not close.

    Raises:
        zipfile.BadZipFile: It is none, or lists too many entries.
    """
    guarded = _Guarded(file)
    archive = zipfile.ZipFile(guarded)
    guarded.is_open = True
    return archive
