"""Unwind tables (``.eh_frame``): from the registers in a function to those in its caller.

Format: "Linux Standard Base Core", chapters on ``.eh_frame`` and ``.eh_frame_hdr``, and DWARF 5, section 6.4.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.agent.native_stack.expression import evaluate
from harness.agent.native_stack.reader import OMITTED, WORD, Read, Reader, UnwindError
from harness.agent.native_stack.unwind_row import Factors, UnwindProgram, UnwindRow

_SORTED_TABLE = 0x3B
"""The encoding of the search table that every linker writes: pairs of 4 bytes, relative to the table."""

_EXTENDED_LENGTH = 0xFFFFFFFF
_MOST_BYTES = 1 << 20


class Caller(NamedTuple):
    """The facts of a table about the caller of a function.

    Attributes:
        address: Address at which it continues; None if there is none.
        registers: Its registers.
        is_interrupted: Whether a signal interrupted it there, so that no call precedes the address.
    """

    address: int | None
    registers: dict[int, int]
    is_interrupted: bool


class Common(NamedTuple):
    """A CIE: the common part of the entries of many functions."""

    factors: Factors
    return_column: int
    has_size: bool
    is_signal: bool
    start: int
    end: int


class UnwindRules(NamedTuple):
    """The rules to get from one place in a function to its caller."""

    row: UnwindRow
    common: Common


def rules_at(read: Read, header: int, at: int) -> UnwindRules | None:
    """Return the rules at an address in a function, by the ``.eh_frame_hdr`` of its library, if it has any.

    Raises:
        UnwindError: A table contains something unknown.
    """
    entry = _find(read, header, at)
    if entry is None:
        return None
    reader, end = _begin(read, entry)
    place = reader.at
    common = _common(read, place - reader.number(4))
    first = reader.pointer(common.factors.encoding)
    size = reader.pointer(common.factors.encoding & 0xF)
    if not first <= at < first + size:
        return None
    if common.has_size:
        skipped = reader.leb()
        reader.at += skipped
    program = UnwindProgram(common.factors, first)
    try:
        program.begin(Reader(read, common.start), common.end)
        row = program.run(reader, end, at)
    except IndexError as error:
        raise UnwindError("a frame without a register") from error
    return UnwindRules(row, common)


def caller_by(rules: UnwindRules, registers: dict[int, int], read: Read, stack: int) -> Caller:
    """Return the caller of a function; ``stack`` is the number of the stack pointer.

    Raises:
        UnwindError: A rule lacks a register or is unknown.
    """
    row, common = rules
    if len(row.frame) == 1:
        frame = evaluate(row.frame[0], registers, read)
    elif row.frame and row.frame[0] in registers:
        frame = (registers[row.frame[0]] + row.frame[1]) & WORD
    else:
        raise UnwindError("no frame")
    found = dict(registers)
    found[stack] = frame
    for register, (kind, value) in row.rules.items():
        if kind == "at":
            found[register] = Reader(read, (frame + value) & WORD).number(8)
        elif kind == "at expression":
            found[register] = Reader(read, evaluate(value, registers, read, frame)).number(8)
        elif kind == "expression":
            found[register] = evaluate(value, registers, read, frame)
        elif kind == "value":
            found[register] = (frame + value) & WORD
        elif kind == "register" and value in registers:
            found[register] = registers[value]
        else:
            found.pop(register, None)
    return Caller(found.get(common.return_column), found, common.is_signal)


def _find(read: Read, header: int, at: int) -> int | None:
    """Return the address of the last entry that begins at or before an address."""
    reader = Reader(read, header)
    version, frame, count, table = (reader.number(1) for _ in range(4))
    if version != 1 or OMITTED in (frame, count) or table != _SORTED_TABLE:
        raise UnwindError("no search table")
    reader.pointer(frame, header)
    low, high = 0, reader.pointer(count, header)
    start = reader.at
    while low < high:
        middle = (low + high) // 2
        if header + Reader(read, start + 8 * middle).number(4, signed=True) <= at:
            low = middle + 1
        else:
            high = middle
    return header + Reader(read, start + 8 * low - 4).number(4, signed=True) if low else None


def _begin(read: Read, at: int) -> tuple[Reader, int]:
    """Return a reader after the length of an entry, and the entry's end."""
    reader = Reader(read, at)
    size = reader.number(4)
    if size == _EXTENDED_LENGTH:
        size = reader.number(8)
    if not 0 < size < _MOST_BYTES:
        raise UnwindError("an entry of %d bytes" % size)
    return reader, reader.at + size


def _common(read: Read, at: int) -> Common:
    reader, end = _begin(read, at)
    reader.number(4)
    version = reader.number(1)
    augmentation = reader.text()
    if version not in (1, 3) or (augmentation and augmentation[:1] != b"z"):
        raise UnwindError("version %d, augmentation %r" % (version, augmentation))
    code, data = reader.leb(), reader.signed_leb()
    return_column = reader.number(1) if version == 1 else reader.leb()
    encoding, start = 0, reader.at
    if augmentation:
        size = reader.leb()
        start = reader.at + size
        encoding = _encoding(reader, augmentation)
    factors = Factors(code, data, encoding)
    return Common(factors, return_column, bool(augmentation), b"S" in augmentation, start, end)


def _encoding(reader: Reader, augmentation: bytes) -> int:
    """Return the encoding of addresses, from the data for the letters of an augmentation."""
    encoding = 0
    for letter in augmentation[1:].decode("latin-1"):
        if letter == "R":
            encoding = reader.number(1)
        elif letter == "P":  # the exception handler
            reader.pointer(reader.number(1) & 0x7F)
        elif letter == "L":  # the encoding of its tables
            reader.number(1)
        elif letter not in "SB":  # a signal's frame; on AArch64, which key signs return addresses
            raise UnwindError("augmentation %r" % augmentation)
    return encoding
