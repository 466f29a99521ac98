"""The instructions of unwind tables (DWARF 5, section 6.4.2): which rules apply at which address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harness.agent.native_stack.reader import Reader, UnwindError

# Instructions with an operand in their lower six bits.
_OPERAND, _ADVANCE, _OFFSET, _RESTORE = 0x3F, 0x40, 0x80, 0xC0
_SET_ADDRESS, _ADVANCE_BY_BYTES = 0x01, {0x02: 1, 0x03: 2, 0x04: 4}
_RESTORE_EXTENDED, _SAME_VALUE = 0x06, 0x08
_REMEMBER_STATE, _RESTORE_STATE = 0x0A, 0x0B
_FRAME, _FRAME_REGISTER, _FRAME_OFFSET, _FRAME_EXPRESSION = 0x0C, 0x0D, 0x0E, 0x0F
_FRAME_SIGNED, _FRAME_OFFSET_SIGNED = 0x12, 0x13
_NOTHING = (0x00, 0x2D)
"""No operation; also that a return address is signed, because signatures are cut off anyway."""
_ARGUMENTS_SIZE = 0x2E

_MOST_REGISTERS, _MOST_STATES, _MOST_BLOCK = 1 << 10, 64, 1 << 12


class Factors(NamedTuple):
    """The factors of the numbers in a function's instructions, and the encoding of addresses."""

    code: int
    data: int
    encoding: int


class UnwindRow:
    """The rules that apply at one address.

    Attributes:
        frame: Rule for the frame's address: register and offset, or only an expression.
        rules: Rule for each register that the function has saved: kind and operand.
    """

    def __init__(self, frame: tuple[Any, ...] = (), rules: dict[int, tuple[str, Any]] | None = None) -> None:
        self.frame = frame
        self.rules = dict(rules or {})

    def copy(self) -> UnwindRow:
        """Return a copy with the same rules."""
        return UnwindRow(self.frame, self.rules)


def _block(reader: Reader, _: int) -> bytes:
    size = reader.leb()
    if size > _MOST_BLOCK:
        raise UnwindError("an expression of %d bytes" % size)
    return bytes(reader.number(1) for _ in range(size))


_RULES: dict[int, tuple[str, Callable[[Reader, int], Any]]] = {
    0x05: ("at", lambda reader, factor: reader.leb() * factor),
    0x11: ("at", lambda reader, factor: reader.signed_leb() * factor),
    0x2F: ("at", lambda reader, factor: -reader.leb() * factor),
    0x14: ("value", lambda reader, factor: reader.leb() * factor),
    0x15: ("value", lambda reader, factor: reader.signed_leb() * factor),
    0x07: ("undefined", lambda *_: None),
    0x09: ("register", lambda reader, _: reader.leb()),
    0x10: ("at expression", _block),
    0x16: ("expression", _block),
}


class UnwindProgram:
    """The instructions of one function."""

    def __init__(self, factors: Factors, address: int) -> None:
        self._factors = factors
        self._address = address
        self._row = UnwindRow()
        self._initial = UnwindRow()
        self._states: list[UnwindRow] = []

    def begin(self, reader: Reader, end: int) -> None:
        """Run the instructions that functions have in common."""
        while reader.at < end:
            self._step(reader)
        self._initial = self._row.copy()

    def run(self, reader: Reader, end: int, until: int) -> UnwindRow:
        """Run the instructions of the function, and return the rules that apply at an address."""
        while reader.at < end:
            before = self._row.copy()
            self._step(reader)
            if self._address > until:
                return before
        return self._row

    def _step(self, reader: Reader) -> None:
        code = reader.number(1)
        high, low = code & ~_OPERAND, code & _OPERAND
        if high == _ADVANCE:
            self._address += low * self._factors.code
        elif high == _OFFSET:
            self._row.rules[low] = ("at", reader.leb() * self._factors.data)
        elif high == _RESTORE:
            self._restore(low)
        elif code in _ADVANCE_BY_BYTES:
            self._address += reader.number(_ADVANCE_BY_BYTES[code]) * self._factors.code
        elif code == _SET_ADDRESS:
            self._address = reader.pointer(self._factors.encoding)
        elif code == _ARGUMENTS_SIZE:
            reader.leb()
        elif code not in _NOTHING and not self._state(code) and not self._frame(code, reader):
            self._register(code, reader)

    def _state(self, code: int) -> bool:
        """Do an instruction about all rules; return whether ``code`` is one."""
        if code == _REMEMBER_STATE and len(self._states) < _MOST_STATES:
            self._states.append(self._row.copy())
        elif code == _RESTORE_STATE and self._states:
            self._row = self._states.pop()
        else:
            return False
        return True

    def _frame(self, code: int, reader: Reader) -> bool:
        """Do an instruction about the frame's address; return whether ``code`` is one."""
        row, factor = self._row, self._factors.data
        if code == _FRAME_EXPRESSION:
            row.frame = (_block(reader, factor),)
        elif code == _FRAME:
            row.frame = (reader.leb(), reader.leb())
        elif code == _FRAME_SIGNED:
            row.frame = (reader.leb(), reader.signed_leb() * factor)
        elif code == _FRAME_REGISTER:
            row.frame = (reader.leb(), row.frame[-1])
        elif code == _FRAME_OFFSET:
            row.frame = (row.frame[0], reader.leb())
        elif code == _FRAME_OFFSET_SIGNED:
            row.frame = (row.frame[0], reader.signed_leb() * factor)
        else:
            return False
        return True

    def _register(self, code: int, reader: Reader) -> None:
        """Do an instruction about one register."""
        register = reader.leb()
        if register > _MOST_REGISTERS:
            raise UnwindError("register %d" % register)
        if code == _RESTORE_EXTENDED:
            self._restore(register)
        elif code == _SAME_VALUE:
            self._row.rules.pop(register, None)
        elif code in _RULES:
            kind, operand = _RULES[code]
            self._row.rules[register] = (kind, operand(reader, self._factors.data))
        else:
            raise UnwindError("instruction %#x" % code)

    def _restore(self, register: int) -> None:
        if register in self._initial.rules:
            self._row.rules[register] = self._initial.rules[register]
        else:
            self._row.rules.pop(register, None)
