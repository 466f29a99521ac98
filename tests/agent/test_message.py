"""Messages as bytes: what arrives, and what is none."""

import io
import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.message import BYTES, pack_message, unpack_message

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def sent(message: Any) -> Any:
    """What arrives of a message."""
    text, parts, nbytes = pack_message(message)
    content = b"".join((text, *parts))
    assert len(content) == len(text) + nbytes
    return unpacked(content, len(text))


def unpacked(content: bytes, behind: int) -> Any:
    """The message in a content whose binary values begin there."""
    text, binary = content[:behind], content[behind:]
    return unpack_message(text, len(binary), io.BytesIO(binary).read)


@given(VALUES)
def test_what_a_message_is_made_of_arrives(value: Any) -> None:
    assert sent({"value": value}) == {"value": value}


@given(VALUES, st.data())
def test_what_is_cut_off_is_none(value: Any, data: st.DataObject) -> None:
    text, parts, _ = pack_message({"value": value})
    content = b"".join((text, *parts))
    cut = content[: data.draw(st.integers(0, len(content) - 1))]
    with pytest.raises(ValueError):  # noqa: PT011 - whatever json says of it
        unpacked(cut, min(len(text), len(cut)))


def test_a_message_is_a_tuple_and_what_is_in_it_lists() -> None:
    mapping = mmap.mmap(-1, 4)
    mapping[:] = b"abcd"
    assert sent(("job", 1, (memoryview(b"xy"), mapping))) == ("job", 1, [b"xy", b"abcd"])


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_lacks_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        pack_message([number])


def test_a_negative_zero_stays_one() -> None:
    assert repr(sent([-0.0])) == "(-0.0,)"


@pytest.mark.parametrize("named", [{BYTES: 1}, {BYTES: [0, 0], "Relu": 1}])
def test_a_name_may_be_the_one_that_stands_for_bytes(named: dict[str, Any]) -> None:
    assert sent({"ep_ops": named, "data": b"1"}) == {"ep_ops": named, "data": b"1"}


@pytest.mark.parametrize("odd", [np.float32(1), object(), {1, 2}])
def test_what_no_message_is_made_of_is_refused(odd: Any) -> None:
    with pytest.raises(TypeError, match="a message cannot contain a"):
        pack_message(["result", odd])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"hello\n",
        b'["phase", 0',
        b'{"name": "\xff"}',
        b'["\\ud800"]',
        b'["\\uDfff", "\\\\ud800"]',
        b'{"\\u0000bytes": ["a", 1]}',
        b'{"\\u0000bytes": [1]}',
        b"[" * 200_000,
        b"9" * 10_000,
        b"[NaN]",
        b"[-Infinity]",
        b'[{"\\u0000bytes": [0, 0]}, NaN]',
    ],
)
def test_what_cannot_be_read_is_no_message(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever json says of it
        unpacked(text, len(text))


def test_two_halves_of_a_character_are_one() -> None:
    text = b'["\\ud83d\\ude00", "\\\\ud800"]'
    assert unpacked(text, len(text)) == ("\U0001f600", "\\ud800")


@given(st.binary(max_size=64), st.integers(0, 64))
def test_no_bytes_are_too_strange(content: bytes, behind: int) -> None:
    try:
        unpacked(content, behind)
    except ValueError:
        return
