"""Frames: messages on a stream of bytes, as ``docs/reference/agent-protocol.md`` specifies them.

A frame is a header line, a message and a line feed. So a channel that passes on only whole lines delivers
each frame at once. Both sides of the protocol use this module.
"""

from __future__ import annotations

import binascii
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.agent.message import pack_message, unpack_message

BINARY, LINE = "binary", "line"
MODES = (BINARY, LINE)
READ_BYTES = 1 << 16  # read at once: as many as most pipes hold
PIECE_BYTES = 1 << 16  # of several frames in one write: the first must not wait long for the last
LONGEST_LINE = 1 << 16  # bytes of a hello or a greeting
LINE_CHARACTERS = 4000  # of base64 in line mode: a terminal passes 4095 on
_LINE_BYTES = LINE_CHARACTERS // 4 * 3
LARGEST_JSON = 32 << 20  # bytes; Python takes up to 25 times as much for what they say
LARGEST_BINARY = 5 << 28  # bytes of binary values: the tensors of a message, and a graph without its weights
_HEADER_BYTES = 64
_HEADER = re.compile(rb"#([bl]) ([1-9][0-9]{0,9}) (0|[1-9][0-9]{0,9}) ([0-9a-f]{8})\r?")


class NoFrameError(ValueError):
    """Something other than a frame was received."""


class ChangedFrameError(ValueError):
    """A frame was received with a content other than the sent one."""


def framed(message: Any, mode: str = BINARY) -> bytes:
    """Return the frame of a message; values and errors as ``pack_message`` of ``harness.agent.message``."""
    text, parts, nbytes = pack_message(message)
    check = zlib.crc32(text)
    for part in parts:
        check = zlib.crc32(part, check)
    header = b"#%c %d %d %08x\n" % (mode[0].encode(), len(text), nbytes, check)
    if mode == BINARY:
        return b"".join((header, text, *parts, b"\n"))
    content = b"".join((text, *parts))
    starts = range(0, len(content), _LINE_BYTES)
    return b"".join((header, *(binascii.b2a_base64(content[at : at + _LINE_BYTES]) for at in starts)))


def write_all(write: Callable[[memoryview], int], data: Any) -> None:
    """Write all of some bytes, in as many calls as needed; ``write`` returns how many it has accepted."""
    rest = memoryview(data)
    while rest:
        rest = rest[write(rest) :]


def pieces(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Yield frames in the pieces in which they are written: several small ones at a time."""
    waiting: list[bytes] = []
    size = 0
    for frame in frames:
        if waiting and size + len(frame) > PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
        waiting.append(frame)
        size += len(frame)
    if waiting:
        yield b"".join(waiting)


class FrameReader:
    """Reads lines and messages; ``read`` returns up to so many bytes, at least one, and none at the end.

    ``ahead`` was read before.
    """

    def __init__(self, read: Callable[[int], bytes], ahead: bytes = b"") -> None:
        self.mode = ""
        """The mode of the last message; empty before the first one."""
        self.message_bytes = 0
        """Bytes of the last message's JSON and binary values."""
        self._read = read
        self._ahead = ahead
        """Bytes that have been read; those from ``_at`` on have not been returned yet."""
        self._at = 0

    def line(self, limit: int = LONGEST_LINE) -> bytes:
        """Return the next line without its line feed.

        Raises:
            EOFError: The stream ends before.
            NoFrameError: It has more bytes than the limit.
        """
        while True:
            end = self._ahead.find(b"\n", self._at, self._at + limit + 1)
            if end >= 0:
                line = self._ahead[self._at : end]
                self._at = end + 1
                return line
            if len(self._ahead) - self._at > limit:
                raise NoFrameError("a line of more than %d bytes" % limit)
            self._fetch()

    def message(self) -> Any:
        """Return the next message.

        Raises:
            EOFError: The stream has ended.
            NoFrameError: Something other than a frame comes.
            ChangedFrameError: It arrived with other content than was sent.
            ValueError: It is not a message.
        """
        header = self.line(_HEADER_BYTES)
        match = _HEADER.fullmatch(header)
        if match is None:
            raise NoFrameError("no frame: %r" % header)
        mode, *numbers, check = match.groups()
        text, binary = map(int, numbers)
        if text > LARGEST_JSON or binary > LARGEST_BINARY:
            raise NoFrameError("a frame of %d and %d bytes, which are too many" % (text, binary))
        self.message_bytes = text + binary
        self.mode = BINARY if mode == b"b" else LINE
        take = self._take if self.mode == BINARY else io.BytesIO(self._lines(text + binary)).read
        found, left = 0, text + binary

        def read(size: int) -> bytes:
            nonlocal found, left
            part = take(size)
            found, left = zlib.crc32(part, found), left - size
            return part

        def finish() -> None:
            while left:  # what its JSON does not list
                read(min(left, READ_BYTES))
            if self.mode == BINARY and self._take(1) != b"\n":
                raise ChangedFrameError("a message does not end where it should")
            if found != int(check, 16):
                raise ChangedFrameError("a message arrived with other content than was sent")

        try:
            message = unpack_message(read(text), binary, read)
        except ValueError:
            finish()  # changed bytes are told as such, whatever they made of the message
            raise
        finish()
        return message

    def _lines(self, size: int) -> bytes:
        left = -(-size // 3) * 4
        encoded = bytearray()  # lines may have a single character, and each object takes much more
        while left:
            line = self.line(LINE_CHARACTERS + 1).rstrip(b"\r")
            left -= len(line)
            if not line or left < 0:
                raise ChangedFrameError("a message does not end where it should")
            encoded += line
        try:
            content = binascii.a2b_base64(encoded)
        except binascii.Error as error:
            raise ChangedFrameError("a message is no base64") from error
        # The last characters hold more bits than the content has; the decoder drops the rest.
        if binascii.b2a_base64(content[size - (size % 3 or 3) :], newline=False) != encoded[-4:]:
            raise ChangedFrameError("a message is no base64 as it was sent")
        if len(content) != size:
            raise ChangedFrameError("a message has %d bytes, not %d" % (len(content), size))
        return content

    def _take(self, size: int) -> bytes:
        """Return so many bytes; a channel may pass on a few at a time."""
        data = self._ahead[self._at : self._at + size]
        self._at += len(data)
        if len(data) == size:
            return data
        whole = io.BytesIO()  # gives its bytes away without a copy
        whole.write(data)
        while left := size - whole.tell():
            self._ahead = self._more()
            self._at = whole.write(self._ahead[:left])
        return whole.getvalue()

    def _fetch(self) -> None:
        """Read at least one further byte."""
        self._ahead, self._at = self._ahead[self._at :] + self._more(), 0

    def _more(self) -> bytes:
        part = self._read(READ_BYTES)
        if not part:
            raise EOFError("the stream has ended")
        return part
