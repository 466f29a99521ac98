"""How files are written: under a temporary name, then renamed; and the message if the system refuses."""

import contextlib
import itertools
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.core.text.errors import UsageError, one_line


@contextmanager
def writing(out: Path, what: str = "", hint: str = "choose another --out") -> Iterator[None]:
    """Turn errors of the system into a message, such as ``out: the page cannot be written: disk full``.

    Raises:
        UsageError: ``out``, or something in it, cannot be written.
    """
    try:
        yield
    except OSError as error:
        told = f"{what} cannot be written: {one_line(error.strerror or error)}".lstrip()
        raise UsageError.at(out, told, hint) from error


_NUMBERS = itertools.count()


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path``, which replaces ``path`` when it is complete.

    Readers see the old file or the new one, even after a full disk: without a complete new file the old one
    stays. A link stays: the file that it points to is replaced. A pipe or a device, such as ``/dev/stdout``,
    has no content to lose, and is written directly.

    Raises:
        OSError: One of them cannot be written.
    """
    place = Path(os.path.realpath(path))
    mode = _mode(path)
    if mode is not None and (not stat.S_ISREG(mode) or str(path).startswith(_OPEN_FILES)):
        yield path
        return
    # Two processes or threads may write the same file. The name is short, however long the file's own name
    # is.
    fresh = place.with_name(f".{os.getpid()}-{next(_NUMBERS)}.new")
    try:
        yield fresh
        if mode is not None:
            # the file may belong to another user, and can be replaced all the same
            with contextlib.suppress(OSError):
                shutil.copymode(place, fresh)
        os.replace(fresh, place)  # noqa: PTH105 - replaces on Windows too
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def write_aside(path: Path, content: bytes | str) -> None:
    """Write a whole file with ``aside``; text in UTF-8, its line ends as they are.

    Raises:
        OSError: It cannot be written.
    """
    with aside(path) as fresh:
        fresh.write_bytes(content.encode() if isinstance(content, str) else content)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that does not exist yet; an incomplete file is removed.

    Raises:
        OSError: It exists, or cannot be written.
    """
    file = path.open("xb")
    try:
        with file:
            file.write(content)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


_OPEN_FILES = ("/dev/", "/proc/")
"""Names of files that a process has open: a new file would not be the open one."""
