"""Messages as bytes: what arrives, and what is none."""

import itertools
import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.message import BYTES, PIECE_BYTES, MessageChannel, pack, pieces, unpack

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(VALUES)
def test_what_a_message_is_made_of_arrives(value: Any) -> None:
    assert unpack(pack({"value": value})) == [{"value": value}]


@given(st.lists(VALUES, min_size=1))
def test_several_messages_arrive_as_one_piece(values: list[Any]) -> None:
    assert unpack(b"".join(pack({"value": value}) for value in values)) == [{"value": one} for one in values]


@given(st.lists(VALUES, min_size=1), st.data())
def test_a_piece_that_is_cut_off_is_none(values: list[Any], data: st.DataObject) -> None:
    whole = [pack({"value": value}) for value in values]
    cut = data.draw(st.integers(1, len(whole[-1]) - 1))
    with pytest.raises(ValueError, match="no message"):
        unpack(b"".join(whole)[:-cut])


@given(st.lists(st.sampled_from([1, 100, PIECE_BYTES // 2, PIECE_BYTES, 2 * PIECE_BYTES])))
def test_small_messages_travel_together_and_in_their_order(sizes: list[int]) -> None:
    messages = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    sent = list(pieces(iter(messages)))
    assert b"".join(sent) == b"".join(messages)
    assert all(len(piece) <= PIECE_BYTES or piece in messages for piece in sent)
    assert all(len(one) + len(other) > PIECE_BYTES for one, other in itertools.pairwise(sent))


class Channel:
    """Pieces that have come."""

    TimeoutError = TimeoutError

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def receive(self, timeout: float | None) -> bytes:
        if not self.pieces:
            raise self.TimeoutError(timeout)
        return self.pieces.pop(0)


def test_messages_of_a_piece_are_received_one_by_one() -> None:
    line = MessageChannel(Channel(pack(["job", 1]) + pack(["job", 2]), pack(["stop"])))
    assert [line.receive(), line.receive(0), line.receive(0)] == [("job", 1), ("job", 2), ("stop",)]
    with pytest.raises(line.TimeoutError):
        line.receive(0)


def test_a_message_is_a_tuple_and_what_is_in_it_lists() -> None:
    mapping = mmap.mmap(-1, 4)
    mapping[:] = b"abcd"
    assert unpack(pack(("job", 1, (memoryview(b"xy"), mapping)))) == [("job", 1, [b"xy", b"abcd"])]


def test_numbers_that_json_lacks_arrive() -> None:
    assert repr(unpack(pack([float("nan"), float("inf"), -0.0]))) == "[(nan, inf, -0.0)]"


@pytest.mark.parametrize("named", [{BYTES: 1}, {BYTES: [0, 0], "Relu": 1}])
def test_a_name_may_be_the_one_that_stands_for_bytes(named: dict[str, Any]) -> None:
    assert unpack(pack({"ep_ops": named, "data": b"1"})) == [{"ep_ops": named, "data": b"1"}]


@pytest.mark.parametrize("odd", [np.float32(1), object(), {1, 2}])
def test_what_no_message_is_made_of_is_refused(odd: Any) -> None:
    with pytest.raises(TypeError, match="a message cannot contain a"):
        pack(["result", odd])


def framed(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + bytes(8) + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b"a library says hello\n" * 100,
        framed(b'["phase", 0'),
        framed(b'{"name": "\xff"}'),
        framed(b'["\\ud800"]'),
        framed(b'["\\uDfff", "\\\\ud800"]'),
        framed(b'{"\\u0000bytes": ["a", 1]}'),
        framed(b'{"\\u0000bytes": [1]}'),
        framed(b"[" * 200_000),
        framed(b"9" * 10_000),
        framed(b"[1]") + b"\0",
        framed(b"[1]") + framed(b"[1"),
        "a text",
        7,
        ["phase", 0, "run"],
        None,
    ],
)
def test_what_cannot_be_read_is_no_message(content: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever json says of it
        unpack(content)


def test_two_halves_of_a_character_are_one() -> None:
    content = framed(b'["\\ud83d\\ude00", "\\\\ud800"]')
    assert unpack(content) == [("\U0001f600", "\\ud800")]


@given(st.binary(max_size=64))
def test_no_bytes_are_too_strange(content: bytes) -> None:
    for one in (content, framed(content)):
        try:
            unpack(one)
        except ValueError:
            continue
