"""A process for native code that some models crash; it is restarted after each crash."""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

Reply = TypeVar("Reply")
Exchange = Callable[["subprocess.Popen[bytes]", IO[bytes], IO[bytes]], Reply]
"""Writes a question to the second, reads the answer from the third; raises ``OSError``, ``EOFError`` or
``ValueError`` if the first, the process, has ended."""


class HelperProcess:
    """A process that is started with the first question.

    It answers one question at a time, from any thread.
    """

    def __init__(self, program: Path) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def ask(self, exchange: Exchange[Reply]) -> Reply | None:
        """Return the answer to a question; None if the process dies from it."""
        with self._lock:
            # An older process may have been ended by something else.
            for process in dict.fromkeys((self._process, None)):
                started = process or self._start()
                if started.stdin is not None and started.stdout is not None:
                    with contextlib.suppress(OSError, EOFError, ValueError):
                        return exchange(started, started.stdin, started.stdout)
                self._end()
            return None

    def close(self) -> None:
        """End the process; the next question starts another one."""
        with self._lock:
            self._end()

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", str(self._program)]
        self._process = subprocess.Popen(  # noqa: S603 - this very Python and a file of the package
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            process.wait()
