"""The agent's end of a stream: what it takes for a hello, and how it sends."""

import io
from collections.abc import Callable

import pytest

from harness.agent.frame import BINARY, LINE, FrameReader, framed
from harness.agent.hello import PROBE, hello
from harness.agent.stream import Stream, first_lines

HELLO = hello("0" * 32).encode()


def reader(data: bytes) -> FrameReader:
    return FrameReader(io.BytesIO(data).read)


@pytest.mark.parametrize(("mode", "then"), [(BINARY, b"#b"), (LINE, b"#l")])
def test_it_answers_a_binary_frame_in_binary(mode: str, then: bytes) -> None:
    sent: list[bytes] = []
    stream = Stream(reader(framed(["config", {}], mode)), sent.append, LINE)
    stream.finish()
    stream.receive(60.0)
    stream.send(("ready", {}))
    assert sent[0].startswith(then)


@pytest.mark.parametrize(
    ("change", "intact"),
    [
        (lambda data: data, True),
        (lambda data: data.replace(b"\n", b"\r\n"), False),
        (lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), False),
        (lambda data: data.replace(b"\r\n", b"\n"), False),
        (lambda data: data.replace(b"\r", b"\n"), False),
        (lambda data: bytes(byte & 0x7F for byte in data), False),
        (lambda data: data.replace(b"\0", b""), False),
        (lambda data: data.decode("latin-1").encode(), False),
        (lambda data: data[len(PROBE) + 1 :], False),
    ],
    ids=["as it is", "more CR", "all CRLF", "no CR", "CR ends", "7 bits", "no NUL", "as text", "none"],
)
def test_a_probe_shows_what_became_of_it(change: Callable[[bytes], bytes], intact: bool) -> None:  # noqa: FBT001
    line, found = first_lines(reader(change(PROBE + b"\n" + HELLO + b"\n")))
    assert line.rstrip(b"\r") == HELLO
    assert found is intact
