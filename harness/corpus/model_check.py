"""What onnx's checker says of a model, in another process: it is native code, which some models crash.

It is asked only about models that the CPU provider refuses.
"""

import atexit
import contextlib
import functools
import json
import subprocess
import sys
import threading
from pathlib import Path

from harness.core.errors import one_line

_CHILD = Path(__file__).with_name("check_child.py")

LIMIT_S = 60.0
"""Seconds for one model, the start of the process included; those that are refused are mostly small."""


@functools.lru_cache(maxsize=1024)
def broken_rule(path: Path, digest: str) -> str:  # noqa: ARG001 - part of the key
    """Return what onnx's checker and its type inference find against a model; empty if they accept it.

    A model that crashes the checker, or takes it too long, counts as accepted: no broken rule is known.

    Args:
        path: The model's file.
        digest: Of its content, so that a file that changes is checked again.
    """
    return one_line(_checker.problem(path) or "")


def end_checker() -> None:
    """End the process; the next question starts another one."""
    _checker.end()


class _Checker:
    """A process that is started when it is first asked, and again after a model has crashed it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def problem(self, path: Path) -> str | None:
        """Return why the checker refuses a model; empty if it does not, None if it does not answer."""
        with self._lock:
            known, answer = self._process, None
            # A process that was there before may have been ended by something else.
            for process in (known, None) if known is not None else (None,):
                answer = self._exchange(process or self._start(), path)
                if answer is not None:
                    break
                self._end()
            return answer

    def end(self) -> None:
        with self._lock:
            self._end()

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", str(_CHILD)]
        self._process = subprocess.Popen(  # noqa: S603 - this very Python and a file of the package
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self._process

    @staticmethod
    def _exchange(process: "subprocess.Popen[bytes]", path: Path) -> str | None:
        timer = threading.Timer(LIMIT_S, process.kill)
        timer.daemon = True
        timer.start()
        try:
            if process.stdin is None or process.stdout is None:
                return None
            process.stdin.write(json.dumps(str(path.absolute())).encode() + b"\n")
            process.stdin.flush()
            return str(json.loads(process.stdout.readline()))
        except (OSError, ValueError):  # it has ended
            return None
        finally:
            timer.cancel()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            process.wait()


_checker = _Checker()

atexit.register(end_checker)
