"""What a user is told if the system refuses to write a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.core.errors import UsageError, one_line


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
