"""Differences between processors: registers, their numbers in unwind tables, and calls."""

from __future__ import annotations

import platform
import struct
from typing import NamedTuple

# x86-64 psABI, figure 3.36: the register of each number; and the order in Linux's user_regs_struct.
_X86_NUMBERS = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()  # noqa: SIM905
_X86_ORDER = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp".split()  # noqa: SIM905
)
_X86_CALL = (0xE8, 5)
"""First byte and length of a ``call`` to an address."""
_X86_INDIRECT, _X86_INDIRECT_SIZES = (0xFF, 2), (2, 3, 4, 6, 7)
"""First byte and operation of ``call`` through a register or memory, and its lengths without a prefix."""
_ARM_CALLS = ((0xFC000000, 0x94000000), (0xFFFFFC1F, 0xD63F0000), (0xFEFFF800, 0xD63F0800))
"""Masks and values of BL; BLR; BLRAA and similar ones, which check a signature."""


class Machine(NamedTuple):
    """One kind of processor.

    Attributes:
        stack: Number of the stack pointer in unwind tables.
        frame: Number of the frame pointer.
        link: Number of the register with the return address of a leaf; None if a call pushes it.
    """

    stack: int
    frame: int
    link: int | None

    def read(self, content: bytes) -> tuple[int, dict[int, int]]:
        """Return the program counter and the registers by their numbers, from the system's layout."""
        if self.link is None:
            named = dict(zip(_X86_ORDER, struct.unpack_from("<20Q", content)))
            return named["rip"], {number: named[name] for number, name in enumerate(_X86_NUMBERS)}
        # AArch64: x0 to x30, sp, pc; the same numbers in unwind tables.
        values = struct.unpack_from("<33Q", content)
        return values[32], dict(enumerate(values[:32]))

    def code_address(self, address: int) -> int:
        """Return a return address without its signature, which AArch64 may have put into the upper bits."""
        return address if self.link is None else address & ((1 << 48) - 1)

    def follows_call(self, before: bytes) -> bool:
        """Return whether the 8 bytes before an address can end in a call."""
        if self.link is None:
            return before[-_X86_CALL[1]] == _X86_CALL[0] or any(
                before[-size] == _X86_INDIRECT[0] and before[1 - size] >> 3 & 7 == _X86_INDIRECT[1]
                for size in _X86_INDIRECT_SIZES
            )
        word = int.from_bytes(before[-4:], "little")
        return any(word & mask == value for mask, value in _ARM_CALLS)


X86_64 = Machine(stack=7, frame=6, link=None)
AARCH64 = Machine(stack=31, frame=29, link=30)


def this_machine() -> Machine:
    """Return the kind of this machine's processor; ``start`` has checked that it is one of the two."""
    return AARCH64 if platform.machine() == "aarch64" else X86_64
