"""The text of a native stack, one line for each frame; ``harness.engine.processes.native_crash`` reads it.

    ep-harness: native stack of SIGSEGV at 0x10, thread 4711 "worker"
    #0<tab>libqnn.so<tab>+0x1b<tab>convert(Node const&)
    #1<tab>libqnn.so<tab>+0x2f10
    #2?<tab>...
    ep-harness: end of the native stack

A frame has its library, an offset, and its function if a symbol names it. The offset is relative to the
function or, without one, to the library's beginning. A question mark marks a frame found by searching the
stack.
"""

from __future__ import annotations

import os
import re
import signal
from typing import NamedTuple

BEGIN = "ep-harness: native stack of "
END = "ep-harness: end of the native stack"

JIT = "[code without a file]"
NOWHERE = "[no code]"

MOST_FRAMES = 64
MOST_BLOCK_BYTES = 7 << 10
"""Largest size of a block, not counting one more frame.

The harness keeps the last 16 KiB of a process's output. When a scenario's second process dies, the first one
dies in the same way, and both print a block.
"""

_MOST_NAME = 240
"""Characters of a library's or function's name."""

_BLOCK = re.compile(
    r"\n?^%s[^\n]*\n(?:#[^\n]*(?:\n|\Z))*(?:%s\n?)?" % (re.escape(BEGIN), re.escape(END)), re.MULTILINE
)

WITH_ADDRESS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP")
"""Signals that report an address; for SIGFPE, SIGILL and SIGTRAP it is the instruction's own."""

SENT_BY_KERNEL = 0x80
"""Code of a signal without an address, such as for an address that no memory can have."""


class FrameText(NamedTuple):
    """The printed parts of a frame."""

    library: str
    offset: int
    function: str = ""
    is_guess: bool = False


def signal_name(number: int) -> str:
    """Return the name of a signal, in the form of verdicts."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def first_line(name: str, code: int, address: int, thread: str) -> str:
    """Return the line before the frames, from a signal with its code and address, and a thread."""
    at = " at %#x" % address if name in WITH_ADDRESS and 0 < code != SENT_BY_KERNEL else ""
    return "\n%s%s%s, thread %s\n" % (BEGIN, name, at, printable(thread))


def frame_line(index: int, frame: FrameText) -> str:
    """Return the line of a frame."""
    function = "\t" + printable(frame.function) if frame.function else ""
    mark = "?" if frame.is_guess else ""
    return "#%d%s\t%s\t+%#x%s\n" % (index, mark, printable(frame.library), frame.offset, function)


def printable(text: str) -> str:
    """Return a name of unknown origin in one line of bounded length, without tabs and control characters."""
    cut = text if len(text) <= _MOST_NAME else text[: _MOST_NAME - 3] + "..."
    return "".join(letter if letter.isprintable() else "?" for letter in cut)


def without_stacks(printed: str) -> str:
    """Return an output without its native stacks, for a search for messages.

    Names of functions are no messages: a stack with ``throw_bad_alloc`` does not say that memory ran out.
    """
    return _BLOCK.sub("", printed)


def write_block(text: str) -> int:
    """Write a text on standard error, and return how many bytes it has."""
    content = text.encode("utf-8", "replace")
    os.write(2, content)
    return len(content)
