"""The process in which onnx's checker and type inference run. Imports nothing of the package.

Reads requests from standard input until it ends: one letter, eight bytes of length, a serialized model.
Answers each with a letter, ``y`` or ``n``, a length, and the result or a message.
"""

import os
import sys
from typing import BinaryIO

import onnx
import onnx.checker
import onnx.shape_inference

LENGTH = 8
"""Bytes of a length, big-endian."""


def main() -> None:
    """Answer requests."""
    # Output of native code must not come between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while kind := sys.stdin.buffer.read(1):
        model = sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(LENGTH), "big"))
        try:
            result, mark = _answer(kind, model), b"y"
        except Exception as error:  # noqa: BLE001 - whatever onnx says about a model
            result, mark = (str(error) or type(error).__name__).encode(errors="replace"), b"n"
        _send(answers, mark, result)


def _answer(kind: bytes, model: bytes) -> bytes:
    if kind == b"c":
        onnx.checker.check_model(model)
        return b""
    proto = onnx.ModelProto.FromString(model)
    # Without check_type, onnx crashes over some valid models of ai.onnx.ml.
    typed = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    inferred: bytes = typed.SerializeToString()
    return inferred


def _send(answers: BinaryIO, mark: bytes, result: bytes) -> None:
    answers.write(mark + len(result).to_bytes(LENGTH, "big") + result)
    answers.flush()


if __name__ == "__main__":
    main()
