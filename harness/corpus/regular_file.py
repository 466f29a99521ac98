"""Reading files of strangers: a pipe or a device in place of a file would never end."""

import stat
from pathlib import Path


def read_regular(path: Path) -> bytes:
    """The content of a regular file, links followed.

    Raises:
        ValueError: It is a folder, a pipe, a device or the like.
        OSError: It is not there, or closed.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("not a file")
    return path.read_bytes()
