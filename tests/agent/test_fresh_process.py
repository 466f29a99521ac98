"""Messages between an agent and the fresh process that it starts."""

import io
import mmap
from typing import Any

import numpy as np
import pytest

from harness.agent.fresh_process import FreshProcessError, Pipe


def carried(message: Any) -> Any:
    """A message as it arrives."""
    stream = io.BytesIO()
    Pipe(None, stream).send(message)
    stream.seek(0)
    return Pipe(stream, None).receive()


@pytest.mark.parametrize(
    "message",
    [
        ["stop"],
        ["phase", 0, "run"],
        {"a": [1, 2.5, True, None, "ü\n\x00\u2028"], "b": {}},
        {"data": b"\x00\xff\n", "shape": [1]},
        {"base64": "no bytes", "other": b""},
    ],
)
def test_what_a_message_is_made_of_arrives(message: Any) -> None:
    assert carried(message) == message


def test_tuples_become_lists_and_views_bytes() -> None:
    mapping = mmap.mmap(-1, 4)
    mapping[:] = b"abcd"
    assert carried(("job", memoryview(b"xy"), mapping)) == ["job", b"xy", b"abcd"]


@pytest.mark.parametrize("odd", [np.float32(1), object(), {1, 2}])
def test_what_no_message_is_made_of_is_refused(odd: Any) -> None:
    with pytest.raises(TypeError, match="nothing that a message is made of"):
        carried(["result", odd])


@pytest.mark.parametrize("line", [b"hello\n", b"\xff\xfe\n", b'["phase", 0\n', b'{"\\u0000bytes": "%"}\n'])
def test_what_a_provider_writes_into_the_pipe_is_no_message(line: bytes) -> None:
    with pytest.raises(FreshProcessError, match="what cannot be read"):
        Pipe(io.BytesIO(line), None).receive()


def test_the_end_is_told() -> None:
    with pytest.raises(EOFError):
        Pipe(io.BytesIO(), None).receive()
