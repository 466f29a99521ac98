"""onnx's checker and type inference in another process: they are native code, which some models crash."""

import atexit
import functools
from pathlib import Path
from subprocess import Popen
from typing import IO

from harness.corpus.suites.helper_process import HelperProcess

_CHILD = Path(__file__).with_name("onnx_child.py")
_LENGTH = 8


class OnnxProcess:
    """Questions to the process of ``onnx_child``."""

    def __init__(self) -> None:
        self._process = HelperProcess(_CHILD)

    def problem(self, model: bytes) -> str:
        """Return why onnx's checker refuses a serialized model; empty if it does not."""
        answer = self._ask(b"c", model)
        if answer is None:
            return "onnx's checker crashed"
        return answer[1].decode(errors="replace") if answer[0] == b"n" else ""

    def inferred(self, model: bytes) -> bytes | None:
        """Return a serialized model with inferred types; None if there is a contradiction or a crash."""
        answer = self._ask(b"i", model)
        return answer[1] if answer is not None and answer[0] == b"y" else None

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _ask(self, kind: bytes, model: bytes) -> tuple[bytes, bytes] | None:
        """Return mark and content of the answer; None if the process died from the model."""
        request = kind + len(model).to_bytes(_LENGTH, "big") + model
        return self._process.ask(functools.partial(_exchange, request))


def _exchange(
    request: bytes,
    process: "Popen[bytes]",  # noqa: ARG001 - no question is known to last
    questions: IO[bytes],
    answers: IO[bytes],
) -> tuple[bytes, bytes]:
    questions.write(request)
    questions.flush()
    head = answers.read(1 + _LENGTH)
    if len(head) <= _LENGTH:
        raise EOFError
    size = int.from_bytes(head[1:], "big")
    content = answers.read(size)
    if len(content) < size:
        raise EOFError
    return head[:1], content


ONNX = OnnxProcess()
"""The one process for all reductions of this process."""

atexit.register(ONNX.close)
