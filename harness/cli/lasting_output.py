"""Standard output that may be closed or full: a command's results and exit code stay the same."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

_DESCRIPTORS = 3
"""Standard input, output and error."""


@contextlib.contextmanager
def lasting_output() -> Iterator[None]:
    """Let a command write to standard output and error, whether or not their reader accepts it.

    If ``head`` has ended, a disk is full or a descriptor is closed, the rest of the output is dropped. One
    line on standard error says so.
    """
    closed = _fill_descriptors()
    output, error = sys.stdout, sys.stderr
    sys.stderr = _lasting(error, None)
    sys.stdout = _lasting(output, sys.stderr)
    if closed:
        _tell(sys.stderr, "is closed")
    try:
        yield
    finally:
        for stream, before in ((sys.stdout, output), (sys.stderr, error)):
            if stream is not before:
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
        sys.stdout, sys.stderr = output, error


def _fill_descriptors() -> bool:
    """Open closed standard descriptors, so that no other file gets their numbers.

    Return whether output was closed.

    Otherwise a library's output would go into that file.
    """
    closed = sys.stdout is None
    with contextlib.suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) < _DESCRIPTORS:
            pass
        os.close(descriptor)
    return closed


def _lasting(stream: TextIO | None, told: TextIO | None) -> TextIO:
    """Return a stream that survives its reader; a stream without a descriptor, as in a test, stays unchanged.

    ``told`` gets the line about an error.
    """
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open until the end
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(raw, io.RawIOBase):
        return stream
    with contextlib.suppress(OSError):
        stream.flush()
    lasting = _LastingFile(raw, told)
    unbuffered = raw is buffer
    # With -u, Python itself wraps the file without a buffer in between.
    below: Any = lasting if unbuffered else io.BufferedWriter(lasting)
    return io.TextIOWrapper(
        below,
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=unbuffered,
    )


class _LastingFile(io.RawIOBase):
    """A file for output; after the first error everything is dropped."""

    def __init__(self, raw: io.RawIOBase, told: TextIO | None) -> None:
        self._raw = raw
        self._told = told
        self._lost = False

    def write(self, data: Any, /) -> int | None:
        if not self._lost:
            try:
                return self._raw.write(data)
            except OSError as error:
                self._lost = True
                if self._told is not None:
                    _tell(self._told, f"cannot be written: {error.strerror or error}")
        return memoryview(data).nbytes

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._raw.isatty()

    def fileno(self) -> int:
        return self._raw.fileno()


def _tell(error: TextIO, what: str) -> None:
    error.write(f"ep-harness: standard output {what}; the rest of it is dropped, the exit code stays\n")
    error.flush()
