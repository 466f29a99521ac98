"""The frames of a stopped thread, innermost first."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from harness.agent.native_stack.elf import ElfError, Image
from harness.agent.native_stack.machine import Machine
from harness.agent.native_stack.process_memory import Memory, Space
from harness.agent.native_stack.reader import UnwindError
from harness.agent.native_stack.unwind_table import Caller, UnwindRules, caller_by, rules_at

SCANNED_WORDS = 4096
"""Words of a stack that are searched for a return address, if nothing shows where it is."""


class FramePlace(NamedTuple):
    """The place of one frame.

    Attributes:
        address: Address of the instruction that failed; for a caller, of the instruction after the call.
        inside: An address inside that instruction or the call.
        is_guess: Whether the frame was found by searching the stack.
        is_handler: Whether the frames before it belong to a signal handler.
    """

    address: int
    inside: int
    is_guess: bool = False
    is_handler: bool = False


class Walker:
    """Walks up the stack of a stopped thread."""

    def __init__(self, memory: Memory, space: Space, machine: Machine) -> None:
        self.memory, self.space, self.machine = memory, space, machine
        self._images: dict[int, Image | None] = {}
        self._rules: dict[int, UnwindRules | None] = {}

    def image_at(self, address: int) -> Image | None:
        """Return the library that contains an address, if any."""
        mapping = self.space.find(address)
        if mapping is None or mapping.base is None:
            return None
        if mapping.base not in self._images:
            try:
                self._images[mapping.base] = Image(self.memory.read, mapping.base)
            except (ElfError, OSError, struct.error):
                self._images[mapping.base] = None
        return self._images[mapping.base]

    def walk(self, address: int, registers: dict[int, int]) -> Iterator[FramePlace]:
        """Yield the frames from a program counter on; the last one is the outermost, or the last found."""
        place = FramePlace(address, address)
        while True:
            yield place
            stack = registers.get(self.machine.stack, 0)
            caller, is_guess = self._caller(place, registers)
            if caller is None or not caller.address:
                return
            address = self.machine.code_address(caller.address)
            registers = caller.registers
            new_stack = registers.get(self.machine.stack, 0)
            # A signal's handler may have its own stack, at any address.
            if not caller.is_interrupted and (new_stack, address) <= (stack, place.address):
                return
            inside = address if caller.is_interrupted else address - 1
            place = FramePlace(address, inside, is_guess, caller.is_interrupted)

    def _caller(self, place: FramePlace, registers: dict[int, int]) -> tuple[Caller | None, bool]:
        """Return the caller, and whether it was guessed."""
        is_first = place.address == place.inside
        if not self.space.is_code(place.inside):
            # It was called through a wild pointer; nothing was pushed since.
            return (self._after_call(registers) if is_first else None), False
        try:
            rules = self._rules_at(place.inside)
            if rules is not None:
                return caller_by(rules, registers, self.memory.read, self.machine.stack), False
        except (OSError, UnwindError):
            pass
        # A function that calls no other one may leave the frame pointer to its caller.
        leaf = self._after_call(registers) if is_first else None
        return leaf or self._by_frame_pointer(registers) or self._by_search(registers), True

    def _rules_at(self, inside: int) -> UnwindRules | None:
        """Return the rules of unwind tables for a place; a recursion has the same place many times."""
        if inside not in self._rules:
            image = self.image_at(inside)
            table = image.unwind_table if image else None
            self._rules[inside] = None if table is None else rules_at(self.memory.read, table, inside)
        return self._rules[inside]

    def _after_call(self, registers: dict[int, int]) -> Caller | None:
        if self.machine.link is not None:
            return Caller(registers.get(self.machine.link), registers, is_interrupted=False)
        return self._popped(registers.get(self.machine.stack, 0), registers)

    def _popped(self, at: int, registers: dict[int, int]) -> Caller | None:
        """Return the caller whose address is on the stack at ``at``, if a call can have left it."""
        try:
            address = self.machine.code_address(self.memory.word(at))
            if self.space.is_code(address) and self.machine.follows_call(self.memory.read(address - 8, 8)):
                return Caller(address, {**registers, self.machine.stack: at + 8}, is_interrupted=False)
        except OSError:
            pass
        return None

    def _by_frame_pointer(self, registers: dict[int, int]) -> Caller | None:
        frame = registers.get(self.machine.frame, 0)
        if frame % 8 or frame < registers.get(self.machine.stack, 0):
            return None
        caller = self._popped(frame + 8, registers)
        if caller is not None:
            caller.registers[self.machine.frame] = self.memory.word(frame)
        return caller

    def _by_search(self, registers: dict[int, int]) -> Caller | None:
        start = registers.get(self.machine.stack, 0)
        mapping = self.space.find(start)
        if mapping is None or start % 8:
            return None
        for at in range(start, min(start + 8 * SCANNED_WORDS, mapping.end), 8):
            caller = self._popped(at, registers)
            if caller is not None:
                return caller
        return None
