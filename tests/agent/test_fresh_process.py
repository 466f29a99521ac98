"""Messages between an agent and the fresh process that it starts."""

import io

import pytest

from harness.agent.fresh_process import FreshProcessError, Pipe


def test_messages_arrive_one_by_one() -> None:
    stream = io.BytesIO()
    for message in (("phase", 0, "run"), {"data": b"\x00\xff\n"}, ("stop",)):
        Pipe(io.BytesIO(), stream).send(message)
    stream.seek(0)
    pipe = Pipe(stream, None)
    assert [pipe.receive() for _ in range(3)] == [("phase", 0, "run"), {"data": b"\x00\xff\n"}, ("stop",)]


@pytest.mark.parametrize("line", [b"hello\n", b"\xff\xfe\n" * 9, b"\x02" + bytes(7) + b"[]\n"])
def test_what_a_provider_writes_into_the_pipe_is_no_message(line: bytes) -> None:
    with pytest.raises(FreshProcessError, match="unreadable message"):
        Pipe(io.BytesIO(line), None).receive()


def test_the_end_is_reported() -> None:
    with pytest.raises(EOFError):
        Pipe(io.BytesIO(), None).receive()
