"""Prints the stack of one stopped thread: walks it, names each frame, writes line by line."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from itertools import islice

from harness.agent.native_stack import block, ptrace
from harness.agent.native_stack.elf import ElfError, Symbols
from harness.agent.native_stack.machine import this_machine
from harness.agent.native_stack.process_memory import DELETED, Memory, Space
from harness.agent.native_stack.stack import FramePlace, Walker

WALKED_FRAMES = 128
"""Largest number of frames that are examined; an overflown stack has many thousands."""


class CrashPrint:
    """The crash of one thread, which is stopped before its signal kills the process.

    ``handled`` is the last signal that a handler got in this thread. Symbols are left out after ``deadline``,
    on the monotonic clock.
    """

    def __init__(self, thread: int, handled: ptrace.SignalInfo | None, deadline: float) -> None:
        self._thread, self._handled, self._deadline = thread, handled, deadline
        with open("/proc/%d/maps" % thread, encoding="utf-8", errors="replace") as file:
            space = Space(file.read())
        self.memory = Memory(thread)
        self._walker = Walker(self.memory, space, this_machine())
        self._symbols: dict[str, Symbols | None] = {}

    def print(self, title: str, demangle: Callable[[str], str]) -> None:
        """Print the block."""
        info = ptrace.signal_info(self._thread)
        name = block.signal_name(info.signal)
        if info.code <= 0 and self._handled and self._handled.signal == info.signal:
            info = self._handled  # its handler has sent it again
        written = block.write_block(block.first_line(name, info.code, info.address, title))
        for index, place in enumerate(self._places()[: block.MOST_FRAMES]):
            frame = self._name(place, demangle)
            if written > block.MOST_BLOCK_BYTES:
                break
            written += block.write_block(block.frame_line(index, frame))
        block.write_block(block.END + "\n")

    def _places(self) -> list[FramePlace]:
        """Return the frames, without those of a handler that has passed the signal on."""
        address, registers = this_machine().read(ptrace.registers(self._thread))
        places: list[FramePlace] = []
        for place in islice(self._walker.walk(address, registers), WALKED_FRAMES):
            if place.is_handler and self._handled is not None:
                places = []
            places.append(place)
            if time.monotonic() > self._deadline:
                break
        return places

    def _name(self, place: FramePlace, demangle: Callable[[str], str]) -> block.FrameText:
        mapping = self._walker.space.find(place.inside)
        if mapping is None or not mapping.is_code:
            return block.FrameText(block.NOWHERE, place.address, "", place.is_guess)
        image = self._walker.image_at(place.inside)
        if image is None or mapping.base is None:
            library = os.path.basename(mapping.path) or block.JIT
            return block.FrameText(library, place.address - mapping.start, "", place.is_guess)
        path = mapping.path.removesuffix(DELETED)
        symbol = None
        if time.monotonic() < self._deadline:
            if path not in self._symbols:
                try:
                    self._symbols[path] = image.symbols(path)
                except (ElfError, OSError, ValueError, struct.error):
                    self._symbols[path] = None
            table = self._symbols[path]
            symbol = table.find(place.inside - image.bias) if table else None
        library = os.path.basename(path)
        if symbol is None:
            return block.FrameText(library, place.address - mapping.base, "", place.is_guess)
        function = demangle(symbol.name)
        return block.FrameText(library, place.address - image.bias - symbol.start, function, place.is_guess)
