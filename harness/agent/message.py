"""Messages between a harness and its agents as bytes: JSON, and behind it the bytes that JSON lacks.

A channel of execnet carries values by itself, but it is Python code that writes and reads them, item by item,
on both sides: with small models that was a fifth of an agent's time. JSON is written and read by C code.

A message is the length of its JSON, that of all that is bytes in it (8 bytes each, little-endian), the JSON
in UTF-8, and those bytes, one after the other; the JSON says where. A tuple arrives as a list, but for the
message itself. Several messages can travel as one piece, one behind the other, for each piece has its price.
"""

from __future__ import annotations

import collections
import json
import mmap
from collections.abc import Iterable, Iterator
from typing import Any

LENGTH_BYTES = 8
HEAD_BYTES = 2 * LENGTH_BYTES
# What several messages in one piece may come to: the first must not wait long for the last.
PIECE_BYTES = 1 << 16
BYTES = "\0bytes"  # the key that stands for bytes: where they begin behind the JSON, and how many they are
BYTES_IN_JSON = json.dumps(BYTES)


def pack(message: Any) -> bytes:
    """A message out of None, bool, int, float, str, bytes, lists, tuples and dicts with keys of str.

    Raises:
        TypeError: Something else is in it.
        ValueError: A text cannot be encoded.
    """
    parts: list[Any] = []
    end = 0

    def refer(value: Any) -> dict[str, list[int]]:
        nonlocal end
        if not isinstance(value, (bytes, memoryview, mmap.mmap)):
            raise TypeError("a %s is nothing that a message is made of" % type(value).__name__)
        start, nbytes = end, memoryview(value).nbytes
        end += nbytes
        parts.append(value)
        return {BYTES: [start, nbytes]}

    text = json.dumps(message, default=refer, ensure_ascii=False, separators=(",", ":")).encode()
    head = len(text).to_bytes(LENGTH_BYTES, "little") + end.to_bytes(LENGTH_BYTES, "little")
    return b"".join((head, text, *parts))


def pieces(packed: Iterable[bytes]) -> Iterator[bytes]:
    """Packed messages as they are sent: several together, where they are small."""
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
    """The messages in a piece, which ``pack`` has made. Whoever has sent it, and whatever.

    Raises:
        ValueError: There is none in it, or something else, or a text that cannot be encoded.
    """
    if not isinstance(content, bytes) or not content:
        raise ValueError("no message: %s" % type(content).__name__)
    messages = []
    end = 0
    while end < len(content):
        start = end + HEAD_BYTES
        behind = start + int.from_bytes(content[end : end + LENGTH_BYTES], "little")
        end = behind + int.from_bytes(content[end + LENGTH_BYTES : start], "little")
        if end > len(content):
            raise ValueError("no message: it is cut off")
        messages.append(_read(content, start, behind, end))
    return messages


def _read(content: bytes, start: int, behind: int, end: int) -> Any:
    """The message whose JSON lies from ``start`` to ``behind``, and its bytes from there to ``end``."""
    unread = behind

    def resolve(found: dict[str, Any]) -> Any:
        nonlocal unread
        # Names in a model are anything: this key then stands before something else, or beside others.
        if len(found) != 1 or type(found.get(BYTES)) is not list:
            return found
        at, nbytes = found[BYTES]
        first, unread = unread, unread + nbytes
        # In their order and each once: else a short message could ask for any amount of memory.
        if behind + at != first or not first <= unread <= end:
            raise ValueError("no message: it has not the bytes that it tells of")
        return content[first:unread]

    try:
        text = content[start:behind].decode()
        # Most messages have no bytes in them, and without the hook no Python code runs for each dict.
        message = json.loads(text, object_hook=resolve) if BYTES_IN_JSON in text else json.loads(text)
        if "\\ud" in text.lower():
            # Half a character, perhaps, at which whoever writes it down would stumble.
            json.dumps(message, default=repr, ensure_ascii=False).encode()
    except (TypeError, RecursionError) as error:
        raise ValueError("no message: %s" % type(error).__name__) from error
    return tuple(message) if isinstance(message, list) else message


class Line:
    """Messages over a channel of execnet.

    Args:
        channel: It carries bytes.
    """

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.TimeoutError = channel.TimeoutError
        self.ahead: collections.deque[Any] = collections.deque()  # arrived, and not received yet

    def send(self, message: Any) -> None:
        """Send a message."""
        self.channel.send(pack(message))

    def receive(self, timeout: float | None = None) -> Any:
        """The next message.

        Args:
            timeout: Seconds to wait for it; None for ever.

        Raises:
            EOFError: There is none any more.
            TimeoutError: None has come; the class is the channel's.
            ValueError: It cannot be read.
        """
        if not self.ahead:
            self.ahead.extend(unpack(self.channel.receive(timeout)))
        return self.ahead.popleft()
