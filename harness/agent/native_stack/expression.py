"""DWARF expressions, by which unwind tables describe odd frames: signal handlers, lazy binding."""

from __future__ import annotations

import operator
from collections.abc import Callable

from harness.agent.native_stack.reader import WORD, Read, Reader, UnwindError

MOST_STEPS = 1000

_LITERAL, _REGISTER_PLUS = range(0x30, 0x50), range(0x70, 0x90)
_CONSTANTS = {0x03: (8, False), 0x0E: (8, False), 0x0F: (8, True)}
_CONSTANTS.update({0x08 + 2 * index: (1 << index, False) for index in range(3)})
_CONSTANTS.update({0x09 + 2 * index: (1 << index, True) for index in range(3)})
_UNARY: dict[int, Callable[[int], int]] = {0x19: abs, 0x1F: operator.neg, 0x20: operator.invert}
_BINARY: dict[int, Callable[[int, int], int]] = {
    0x1A: operator.and_,
    0x1C: operator.sub,
    0x1E: operator.mul,
    0x21: operator.or_,
    0x22: operator.add,
    0x24: lambda a, b: a << b % 64,
    0x25: lambda a, b: (a & WORD) >> b % 64,
    0x26: lambda a, b: a >> b % 64,
    0x27: operator.xor,
    0x29: operator.eq,
    0x2A: operator.ge,
    0x2B: operator.gt,
    0x2C: operator.le,
    0x2D: operator.lt,
    0x2E: operator.ne,
}
_DEREFERENCE, _DEREFERENCE_SIZE, _ADD_CONSTANT = 0x06, 0x94, 0x23
_UNSIGNED_CONSTANT, _SIGNED_CONSTANT, _REGISTER_PLUS_ANY = 0x10, 0x11, 0x92
_DUPLICATE, _DROP, _OVER, _PICK, _SWAP, _ROTATE = 0x12, 0x13, 0x14, 0x15, 0x16, 0x17
_BRANCH, _SKIP, _NOTHING = 0x28, 0x2F, 0x96


def evaluate(block: bytes, registers: dict[int, int], read: Read, *start: int) -> int:
    """Return the value of an expression; the stack of values begins with ``start``.

    Raises:
        UnwindError: It has an unknown operation, or is invalid.
    """
    try:
        return _run(block, registers, read, list(start)) & WORD
    except (IndexError, KeyError) as error:
        raise UnwindError("an expression lacks a value") from error


def _run(block: bytes, registers: dict[int, int], read: Read, stack: list[int]) -> int:
    reader = Reader(lambda at, size: _piece(block, at, size), 0)
    for _ in range(MOST_STEPS):
        if reader.at >= len(block):
            return stack[-1]
        code = reader.number(1)
        if code in _LITERAL:
            stack.append(code - _LITERAL.start)
        elif code in _REGISTER_PLUS:
            stack.append(registers[code - _REGISTER_PLUS.start] + reader.signed_leb())
        elif code in _CONSTANTS:
            size, signed = _CONSTANTS[code]
            stack.append(reader.number(size, signed=signed))
        elif code in (_BRANCH, _SKIP):
            distance = reader.number(2, signed=True)
            if code == _SKIP or stack.pop():
                reader.at += distance
        elif not _compute(code, stack) and not _push(code, reader, registers, read, stack):
            _rearrange(code, reader, stack)
    raise UnwindError("an expression without an end")


def _compute(code: int, stack: list[int]) -> bool:
    """Do an operation on one or two values; return whether ``code`` is one."""
    if code in _UNARY:
        stack.append(_signed(_UNARY[code](_signed(stack.pop()))))
    elif code in _BINARY:
        second, first = _signed(stack.pop()), _signed(stack.pop())
        stack.append(_signed(int(_BINARY[code](first, second))))
    else:
        return False
    return True


def _push(code: int, reader: Reader, registers: dict[int, int], read: Read, stack: list[int]) -> bool:
    """Do an operation that reads a constant, a register or the memory; return whether ``code`` is one."""
    if code == _DEREFERENCE:
        stack.append(int.from_bytes(read(stack.pop() & WORD, 8), "little"))
    elif code == _DEREFERENCE_SIZE:
        stack.append(int.from_bytes(read(stack.pop() & WORD, reader.number(1)), "little"))
    elif code == _ADD_CONSTANT:
        stack.append(stack.pop() + reader.leb())
    elif code == _UNSIGNED_CONSTANT:
        stack.append(reader.leb())
    elif code == _SIGNED_CONSTANT:
        stack.append(reader.signed_leb())
    elif code == _REGISTER_PLUS_ANY:
        stack.append(registers[reader.leb()] + reader.signed_leb())
    else:
        return False
    return True


def _rearrange(code: int, reader: Reader, stack: list[int]) -> None:
    """Do an operation on only the stack of values."""
    if code == _DUPLICATE:
        stack.append(stack[-1])
    elif code == _DROP:
        stack.pop()
    elif code == _OVER:
        stack.append(stack[-2])
    elif code == _PICK:
        stack.append(stack[-1 - reader.number(1)])
    elif code == _SWAP:
        stack[-1], stack[-2] = stack[-2], stack[-1]
    elif code == _ROTATE:
        stack[-3:] = [stack[-1], stack[-3], stack[-2]]
    elif code != _NOTHING:
        raise UnwindError("operation %#x" % code)


def _piece(block: bytes, at: int, size: int) -> bytes:
    if at < 0 or at + size > len(block):
        raise UnwindError("an expression without an end")
    return block[at : at + size]


def _signed(value: int) -> int:
    value &= WORD
    return value - (1 << 64) if value >> 63 else value
