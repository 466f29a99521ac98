"""onnx's checker and type inference in another process: they are native code, which some models crash."""

import atexit
import contextlib
import subprocess
import sys
import threading
from pathlib import Path

_CHILD = Path(__file__).with_name("onnx_child.py")
_LENGTH = 8


class OnnxProcess:
    """A process that is started when it is first asked, and again after a model has crashed it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def problem(self, model: bytes) -> str:
        """Return why onnx's checker refuses a serialized model; empty if it does not."""
        answer = self._ask(b"c", model)
        if answer is None:
            return "onnx's checker crashed"
        return answer[1].decode(errors="replace") if answer[0] == b"n" else ""

    def inferred(self, model: bytes) -> bytes | None:
        """Return a serialized model with inferred types; None at a contradiction or a crash."""
        answer = self._ask(b"i", model)
        return answer[1] if answer is not None and answer[0] == b"y" else None

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _ask(self, kind: bytes, model: bytes) -> tuple[bytes, bytes] | None:
        """Mark and content of the answer; None if the process died of the model."""
        request = kind + len(model).to_bytes(_LENGTH, "big") + model
        with self._lock:
            # A process that was there before may have been ended by something else.
            for process in (self._process, None):
                started = process or self._start()
                try:
                    return self._exchange(started, request)
                except (OSError, EOFError):
                    self._end()
                if process is None:
                    break
            return None

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", str(_CHILD)]
        self._process = subprocess.Popen(  # noqa: S603 - this very Python and a file of the package
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self._process

    @staticmethod
    def _exchange(process: "subprocess.Popen[bytes]", request: bytes) -> tuple[bytes, bytes]:
        if process.stdin is None or process.stdout is None:
            raise EOFError
        process.stdin.write(request)
        process.stdin.flush()
        head = process.stdout.read(1 + _LENGTH)
        if len(head) <= _LENGTH:
            raise EOFError
        size = int.from_bytes(head[1:], "big")
        content = process.stdout.read(size)
        if len(content) < size:
            raise EOFError
        return head[:1], content

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            process.wait()


ONNX = OnnxProcess()
"""One for all reductions of this process."""

atexit.register(ONNX.close)
