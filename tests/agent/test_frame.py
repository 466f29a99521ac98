"""Frames: messages arrive over any channel that keeps bytes, or only lines."""

import itertools
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.frame import (
    BINARY,
    LINE,
    LINE_CHARACTERS,
    MODES,
    PIECE_BYTES,
    FrameReader,
    NoFrameError,
    framed,
    pieces,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
MESSAGES = st.lists(VALUES, min_size=1).map(tuple)


def in_parts(data: bytes, sizes: Iterator[int]) -> Callable[[int], bytes]:
    """A stream that returns so many bytes at a time."""
    at = 0

    def read(size: int) -> bytes:
        nonlocal at
        part = data[at : at + min(size, next(sizes))]
        at += len(part)
        return part

    return read


def received(data: bytes, sizes: Iterator[int] | None = None) -> list[Any]:
    reader = FrameReader(in_parts(data, sizes or itertools.repeat(1 << 20)))
    messages = []
    while True:
        try:
            messages.append(reader.message())
        except EOFError:
            return messages


@given(st.lists(MESSAGES), st.sampled_from(MODES), st.lists(st.integers(1, 70), min_size=1))
def test_messages_arrive_however_the_stream_is_cut(messages: list[Any], mode: str, sizes: list[int]) -> None:
    data = b"".join(framed(message, mode) for message in messages)
    assert received(data, itertools.cycle(sizes)) == messages


def test_both_modes_may_come_in_turns() -> None:
    large = ("b", bytes(range(256)) * 1000)
    data = framed(("a",), LINE) + framed(large, BINARY) + framed(large, LINE) + framed(("c",), BINARY)
    assert received(data) == [("a",), large, large, ("c",)]


@given(MESSAGES)
def test_every_frame_ends_with_a_line(message: Any) -> None:
    assert all(framed(message, mode).endswith(b"\n") for mode in MODES)


def test_line_mode_has_short_lines_of_printable_characters() -> None:
    data = framed(("x", bytes(range(256)) * 100), LINE)
    lines = data.split(b"\n")
    assert lines.pop() == b""
    assert max(map(len, lines)) == LINE_CHARACTERS
    assert all(32 < byte < 127 or byte == 32 for line in lines for byte in line)


def test_a_channel_may_end_lines_in_its_own_way() -> None:
    data = framed(("x", bytes(range(256)) * 100), LINE)
    assert received(data.replace(b"\n", b"\r\n")) == received(data)


def test_a_header_is_as_specified() -> None:
    content = b'["phase",7,"run"]'
    assert framed(("phase", 7, "run")) == b"#b 17 0 %08x\n%s\n" % (zlib.crc32(content), content)


@pytest.mark.parametrize(
    "data",
    [
        b"a library says hello\n",
        b"\n",
        b"#b 2 0 00000000",
        b"#x 2 0 00000000\n[]\n",
        b"#b 0 0 00000000\n\n",
        b"#b 02 0 00000000\n[]\n",
        b"#b 2 -1 00000000\n[]\n",
        b"#b 2 0 0000000A\n[]\n",
        b"#b 4000000000 0 00000000\n",
        b"x" * 1000,
    ],
)
def test_anything_else_is_no_frame(data: bytes) -> None:
    if data.endswith(b"\n") or len(data) > 100:
        with pytest.raises(NoFrameError):
            received(data)
    else:
        assert received(data) == []  # the rest may still come


@given(MESSAGES, st.sampled_from(MODES), st.data())
def test_a_changed_byte_is_noticed(message: Any, mode: str, data: st.DataObject) -> None:
    frame = bytearray(framed(message, mode))
    body = frame.index(b"\n") + 1
    at = data.draw(st.integers(body, len(frame) - 1))
    frame[at] ^= data.draw(st.integers(1, 255))
    try:
        assert message not in received(bytes(frame))
    except ValueError:
        return  # that is the rule; but a line may now go on, and be incomplete


@given(st.lists(st.sampled_from([1, 100, PIECE_BYTES // 2, PIECE_BYTES, 2 * PIECE_BYTES])))
def test_small_messages_travel_together_and_in_their_order(sizes: list[int]) -> None:
    messages = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    sent = list(pieces(iter(messages)))
    assert b"".join(sent) == b"".join(messages)
    assert all(len(piece) <= PIECE_BYTES or piece in messages for piece in sent)
    assert all(len(one) + len(other) > PIECE_BYTES for one, other in itertools.pairwise(sent))


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    try:
        received(data)
    except ValueError:
        return
