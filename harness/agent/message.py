"""Messages between a harness and its agents as bytes: JSON, followed by binary values.

An execnet channel can carry values itself, but its Python code handles them item by item, on both sides: with
small models that took a fifth of an agent's time. JSON is handled by C code.

A message is the length of its JSON, the length of its binary values (8 bytes each, little-endian), the JSON
in UTF-8, and the binary values one after the other; the JSON has their positions. A tuple arrives as a list,
except for the message itself. Several messages can travel as one piece, because each piece costs time.
"""

from __future__ import annotations

import collections
import json
import mmap
from collections.abc import Iterable, Iterator
from typing import Any

LENGTH_BYTES = 8
_HEAD_BYTES = 2 * LENGTH_BYTES
PIECE_BYTES = 1 << 16  # of several messages in one piece: the first must not wait long for the last
BYTES = "\0bytes"  # key of a binary value: its offset behind the JSON, and its length
_BYTES_IN_JSON = json.dumps(BYTES)


def pack(message: Any) -> bytes:
    """Return a message of None, bool, int, float, str, bytes, lists, tuples and dicts with str keys as bytes.

    Raises:
        TypeError: It contains a value of another type.
        ValueError: A text cannot be encoded.
    """
    parts: list[Any] = []
    end = 0

    def refer(value: Any) -> dict[str, list[int]]:
        nonlocal end
        if not isinstance(value, (bytes, memoryview, mmap.mmap)):
            raise TypeError("a message cannot contain a %s" % type(value).__name__)
        start, nbytes = end, memoryview(value).nbytes
        end += nbytes
        parts.append(value)
        return {BYTES: [start, nbytes]}

    text = json.dumps(message, default=refer, ensure_ascii=False, separators=(",", ":")).encode()
    head = len(text).to_bytes(LENGTH_BYTES, "little") + end.to_bytes(LENGTH_BYTES, "little")
    return b"".join((head, text, *parts))


def pieces(packed: Iterable[bytes]) -> Iterator[bytes]:
    """Yield packed messages as they are sent: small ones several at a time."""
    waiting: list[bytes] = []
    size = 0
    for message in packed:
        if waiting and size + len(message) > PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
        waiting.append(message)
        size += len(message)
    if waiting:
        yield b"".join(waiting)


def unpack(content: Any) -> list[Any]:
    """Return the messages in a piece that ``pack`` has made; any other content is safe, too.

    Raises:
        ValueError: The piece has no message, or other content, or a text that cannot be encoded.
    """
    if not isinstance(content, bytes) or not content:
        raise ValueError("no message: %s" % type(content).__name__)
    messages = []
    end = 0
    while end < len(content):
        start = end + _HEAD_BYTES
        behind = start + int.from_bytes(content[end : end + LENGTH_BYTES], "little")
        end = behind + int.from_bytes(content[end + LENGTH_BYTES : start], "little")
        if end > len(content):
            raise ValueError("no message: it is cut off")
        messages.append(_read(content, start, behind, end))
    return messages


def _read(content: bytes, start: int, behind: int, end: int) -> Any:
    """Return the message with its JSON from ``start`` to ``behind``, and its binary values up to ``end``."""
    unread = behind

    def resolve(found: dict[str, Any]) -> Any:
        nonlocal unread
        # A model may use any name: this key may have another value, or others beside it.
        if len(found) != 1 or type(found.get(BYTES)) is not list:
            return found
        at, nbytes = found[BYTES]
        first, unread = unread, unread + nbytes
        # In order and each once: otherwise a short message could take any amount of memory.
        if behind + at != first or not first <= unread <= end:
            raise ValueError("no message: it lacks binary values that its JSON lists")
        return content[first:unread]

    try:
        text = content[start:behind].decode()
        # Most messages have no binary values; without the hook no Python code runs for each dict.
        message = json.loads(text, object_hook=resolve) if _BYTES_IN_JSON in text else json.loads(text)
        if "\\ud" in text.lower():
            # Perhaps half a surrogate pair, which cannot be encoded later.
            json.dumps(message, default=repr, ensure_ascii=False).encode()
    except (TypeError, RecursionError) as error:
        raise ValueError("no message: %s" % type(error).__name__) from error
    return tuple(message) if isinstance(message, list) else message


class MessageChannel:
    """Messages over an execnet channel, which carries bytes."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.TimeoutError = channel.TimeoutError
        self.ahead: collections.deque[Any] = collections.deque()  # arrived, not yet received

    def send(self, message: Any) -> None:
        """Send a message."""
        self.channel.send(pack(message))

    def receive(self, timeout: float | None = None) -> Any:
        """Return the next message.

        Args:
            timeout: Seconds to wait for it; None for ever.

        Raises:
            EOFError: The channel is closed.
            TimeoutError: No message has come; the class is the channel's.
            ValueError: The message cannot be read.
        """
        if not self.ahead:
            self.ahead.extend(unpack(self.channel.receive(timeout)))
        return self.ahead.popleft()
