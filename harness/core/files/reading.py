"""Opens files of folders that may come from a stranger.

Reading a pipe never ends, nor does a link to a device such as ``/dev/zero``; a file may have any size.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

MOST_RECORDS = 8 << 30
"""Largest size in bytes of a file with one line for each result, which is read line by line: 100,000
results take some 0.5 GB."""

MOST_LINE = 16 << 20
"""Largest size in bytes of one line of such a file. A record takes some kilobytes."""

MOST_FILE = 256 << 20
"""Largest size in bytes of a file that is read as a whole: a run's description or plan, or faults."""

MOST_SETTINGS = 16 << 20
"""Largest size in bytes of a file that people write, such as a matrix."""


def open_regular(path: Path, most: int, *, follow: bool = True) -> BufferedReader:
    """Open a regular file of at most so many bytes for reading; nothing else is opened or waited for.

    ``follow`` is whether a link to such a file counts as such a file.

    Raises:
        FileNotFoundError: There is no such file, perhaps because no file may have a name of this length.
        OSError: It is not a regular file, is larger, or cannot be read; ``strerror`` gives the reason.
    """
    try:
        state = path.stat() if follow else path.lstat()
    except OSError as error:
        # a temporary name beside a file whose own name is nearly too long
        if error.errno == errno.ENAMETOOLONG:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
        raise
    _check(state, path, most)  # before: opening a device may have an effect
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    file = os.fdopen(descriptor, "rb")
    try:
        _check(os.fstat(descriptor), path, most)  # another file may have taken its place meanwhile
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: Path, most: int, *, follow: bool = True) -> bytes:
    """Return the content of a regular file of at most so many bytes; see ``open_regular``."""
    with open_regular(path, most, follow=follow) as file:
        content = file.read(most + 1)
    if len(content) > most:  # the file grows
        raise _too_large(path, most)
    return content


def _check(state: os.stat_result, path: Path, most: int) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.EINVAL, "not a file", str(path))
    if state.st_size > most:
        raise _too_large(path, most)


def _too_large(path: Path, most: int) -> OSError:
    return OSError(errno.EFBIG, f"larger than {size_text(most)}, the bound of the harness", str(path))


def size_text(nbytes: int) -> str:
    """Return a size for people: ``16 MiB``."""
    return f"{nbytes >> 30} GiB" if nbytes % (1 << 30) == 0 else f"{nbytes >> 20} MiB"
