"""Rounding, flushing of denormals and traps of floating-point arithmetic, which a library can change."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import sys
from typing import Any

from harness.agent.safe_text import clean
from harness.agent.target_errors import NotWatchedError

_ROUNDING = ("to nearest", "down", "up", "to zero")
"""Rounding by the two bits of x86; Arm has another order."""

_ARM_ROUNDING = ("to nearest", "up", "down", "to zero")

_TRAPS = ("invalid", "denormal", "division by zero", "overflow", "underflow", "inexact")
"""Traps by the bits of x86's masks, from the lowest."""

_ARM_TRAPS = {
    8: "invalid",
    9: "division by zero",
    10: "overflow",
    11: "underflow",
    12: "inexact",
    15: "denormal",
}

_MASKED = 0x1F
"""Windows: all exceptions are masked, except that for denormals, which C does not know."""


class FloatControl:
    """Rounding, flushing of denormals to zero and traps of this thread."""

    kind = "fp_control"

    def __init__(self) -> None:
        machine = platform.machine().lower()
        self.is_arm = machine in ("aarch64", "arm64")
        self.flush_is_asked = False
        """Whether a session option requests flushing; then no library is to blame."""
        self.control: Any = None
        self.get: Any = None
        self.set: Any = None
        self.state = ctypes.create_string_buffer(64)
        try:
            if sys.platform == "win32":
                self.control = ctypes.CDLL("ucrtbase")._controlfp  # noqa: SLF001 - its name
                return
            libm = ctypes.CDLL("libm.so.6" if sys.platform == "linux" and not _is_musl() else None)
            self.get, self.set = libm.fegetenv, libm.fesetenv
        except (OSError, AttributeError) as error:
            raise NotWatchedError("floating-point control: %s" % clean(error)) from None
        if not self.is_arm and machine not in ("x86_64", "amd64"):
            raise NotWatchedError("floating-point control of %s" % clean(platform.machine()))

    def read(self) -> tuple[int, ...]:
        """Return the control bits, without status bits."""
        if self.control is not None:
            return (self.control(0, 0) & 0x0308031F,)  # _MCW_DN, _MCW_EM and _MCW_RC
        self.get(self.state)
        raw = self.state.raw
        if self.is_arm:
            # macOS: fpsr, fpcr of 8 bytes each; Linux: fpcr, fpsr of 4.
            at = 8 if sys.platform == "darwin" else 0
            bits: tuple[int, ...] = (int.from_bytes(raw[at : at + 4], "little") & 0x07C89F07,)
            return (bits[0] & ~0x01000003,) if self.flush_is_asked else bits
        at = 4 if sys.platform == "darwin" else 28
        sse = int.from_bytes(raw[at : at + 2], "little") & 0xFFC0
        return (sse & ~0x8040 if self.flush_is_asked else sse, int.from_bytes(raw[:2], "little") & 0x0F3F)

    def told(self, before: tuple[int, ...], now: tuple[int, ...]) -> str:
        """Return the difference in words."""
        old, new = self._words(before), self._words(now)
        changed = ["%s from %s to %s" % (key, old[key], new[key]) for key in old if old[key] != new[key]]
        return "it changed %s" % ", ".join(changed or ["the control word of the x87 unit"])

    def _words(self, bits: tuple[int, ...]) -> dict[str, str]:
        word = bits[0]
        if self.control is not None:  # Windows has one form for all processors
            rounding, flush = _ROUNDING[word >> 8 & 3], word & 0x03000000
            traps = [] if not ~word & _MASKED else ["some"]
        elif self.is_arm:
            rounding, flush = _ARM_ROUNDING[word >> 22 & 3], word & 0x01000003
            traps = [name for bit, name in _ARM_TRAPS.items() if word >> bit & 1]
        else:
            rounding, flush = _ROUNDING[word >> 13 & 3], word & 0x8040
            traps = [name for bit, name in enumerate(_TRAPS) if not word >> 7 + bit & 1]
        return {
            "rounding": rounding,
            "flushing of denormals": "on" if flush else "off",
            "traps": ", ".join(traps) or "none",
        }

    def restore(self, before: tuple[int, ...]) -> None:
        """Restore the control bits."""
        if self.control is not None:
            self.control(before[0], 0x0308031F)
            return
        self.get(self.state)
        raw = bytearray(self.state.raw)
        if self.is_arm:
            at = 8 if sys.platform == "darwin" else 0
            raw[at : at + 4] = before[0].to_bytes(4, "little")
        else:
            at = 4 if sys.platform == "darwin" else 28
            raw[at : at + 2] = before[0].to_bytes(2, "little")
            raw[:2] = (before[1] | 0x40).to_bytes(2, "little")
        self.set(bytes(raw))


def _is_musl() -> bool:
    with contextlib.suppress(OSError, ValueError):
        if sys.platform == "win32":
            return False
        return not os.confstr("CS_GNU_LIBC_VERSION")
    return True
