"""What a library can change for its whole process, and should not: read, told in words and put back.

Each watch has ``read``, whose results are equal while nothing has changed, ``told``, and ``restore``. They
are read several times for each model, so each takes a few microseconds. A watch whose system cannot tell
raises ``NotWatchedError`` when it is made.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import signal
import sys
from typing import Any

from harness.agent.process_limits import ProcessLimits
from harness.agent.text import clean

_ROUNDING = ("to nearest", "down", "up", "to zero")
"""By the two bits of x86; those of Arm are in another order."""

_ARM_ROUNDING = ("to nearest", "up", "down", "to zero")

_TRAPS = ("invalid", "denormal", "division by zero", "overflow", "underflow", "inexact")
"""By the bits of x86's masks, from the lowest."""

_ARM_TRAPS = {
    8: "invalid",
    9: "division by zero",
    10: "overflow",
    11: "underflow",
    12: "inexact",
    15: "denormal",
}

_STATUS = re.compile(
    rb"VmHWM:\s*(\d+).*\nThreads:\s*(\d+).*\nSigBlk:\s*(\w+)\nSigIgn:\s*(\w+)\nSigCgt:\s*(\w+)", re.DOTALL
)
_ANONYMOUS = re.compile(rb"RssAnon:\s*(\d+)")

_SETS = (3, 4, 5)
"""Groups with the signals that are blocked, ignored and caught."""

_MASKED = 0x1F
"""Windows: all exceptions are masked, but for that of denormals, which C knows nothing of."""

_LAST_SIGNAL = 31
"""Those above are for real time; the C library uses some for its threads."""

_SIGACTION_BYTES = 256
"""More than ``struct sigaction`` has anywhere; it begins with the handler."""


class NotWatchedError(Exception):
    """This system does not tell; the text says what."""


class FloatControl:
    """Rounding, flushing of denormals to zero and traps of this thread."""

    kind = "fp_control"

    def __init__(self) -> None:
        machine = platform.machine().lower()
        self.is_arm = machine in ("aarch64", "arm64")
        self.flush_is_asked = False
        """Whether a session option asks for flushing, which is then nobody's fault."""
        self.control: Any = None
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
        """Return the control bits, without those that tell what has happened."""
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
        """Put the control bits back."""
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


class Signals:
    """Which signals are caught, ignored and blocked; on macOS also by what."""

    kind = "signals"

    def __init__(self) -> None:
        if os.name != "posix":
            raise NotWatchedError("signal handlers: the system has none")
        self.action = ctypes.CDLL(None).sigaction
        self.saved = self._actions()
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def _actions(self) -> list[Any]:
        found = []
        for number in range(1, _LAST_SIGNAL + 1):
            found.append(ctypes.create_string_buffer(_SIGACTION_BYTES))
            self.action(number, None, found[-1])
        return found

    def read(self) -> tuple[int, ...]:
        """Return the sets of signals as bits: blocked, ignored, caught; elsewhere than on Linux handlers."""
        found = _status()
        if found is not None:
            return tuple(int(found[group], 16) & (1 << _LAST_SIGNAL) - 1 for group in _SETS)
        handlers = [int.from_bytes(one.raw[:8], "little") for one in self._actions()]
        blocked = sum(1 << number - 1 for number in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        return (blocked, *handlers)

    def told(self, before: tuple[int, ...], now: tuple[int, ...]) -> str:
        """Return the difference in words."""
        words = []
        if len(now) == len(_SETS):
            for what, old, new in zip(("blocked", "ignored", "has a handler for"), before, now):
                words += ["%s %s" % (what, names) for names in [_signals(new & ~old)] if names]
            for what, old, new in zip(("unblocked", "no longer ignores", "has no handler for"), before, now):
                words += ["%s %s" % (what, names) for names in [_signals(old & ~new)] if names]
        else:
            other = sum(1 << at for at, (old, new) in enumerate(zip(before[1:], now[1:])) if old != new)
            words += ["changed the handler of %s" % _signals(other)] if other else []
            words += ["changed the mask"] if before[0] != now[0] else []
        return "the process %s" % ", ".join(words)

    def restore(self, before: tuple[int, ...]) -> None:  # noqa: ARG002 - all that was saved
        """Put handlers and mask back."""
        for number, saved in enumerate(self.saved, start=1):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                self.action(number, saved, None)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)

    def rebase(self) -> None:
        """Take what is now for what belongs here."""
        self.saved = self._actions()
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())


class Locale:
    """The locale of the C library, by which numbers are read and written."""

    kind = "locale"

    def __init__(self) -> None:
        from locale import LC_ALL

        self.all = LC_ALL
        self.ask = ctypes.CDLL("ucrtbase" if os.name == "nt" else None).setlocale
        self.ask.restype = ctypes.c_char_p
        self.ask.argtypes = (ctypes.c_int, ctypes.c_char_p)

    def read(self) -> bytes:
        """Return the locale of all categories."""
        return bytes(self.ask(self.all, None) or b"")

    def told(self, before: bytes, now: bytes) -> str:
        """Return the difference in words."""
        old, new = (set(one.decode("utf-8", "replace").split(";")) for one in (before, now))
        changed = ", ".join(sorted(new - old)[:3])
        return "it changed the locale of its process: %s" % clean(changed, limit=100)

    def restore(self, before: bytes) -> None:
        """Put it back."""
        self.ask(self.all, before)


class Directory:
    """The working directory."""

    kind = "directory"

    def read(self) -> str:
        """Return it; empty if it does not exist any more."""
        try:
            return os.getcwd()
        except OSError:
            return ""

    def told(self, before: str, now: str) -> str:  # noqa: ARG002 - as of the others
        """Return the difference in words."""
        return "it changed the working directory to %s" % (clean(now, limit=100) or "one that is deleted")

    def restore(self, before: str) -> None:
        """Put it back."""
        with contextlib.suppress(OSError):
            os.chdir(before)


class Variables:
    """The variables of the environment, as the C library has them: Python's own view is a copy."""

    kind = "environment"

    def __init__(self) -> None:
        if os.name != "posix":
            raise NotWatchedError("environment variables: the system has several views of them")
        try:
            if sys.platform == "darwin":
                ask = ctypes.CDLL(None)._NSGetEnviron  # noqa: SLF001 - its name
                ask.restype = ctypes.c_void_p
                self.environ = ctypes.c_void_p.from_address(ask())
            else:
                self.environ = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ")
        except (OSError, ValueError, AttributeError) as error:
            raise NotWatchedError("environment variables: %s" % clean(error)) from None
        self.at, self.pointers = 0, b""
        self.known: dict[bytes, bytes] = {}

    def read(self) -> dict[bytes, bytes]:
        """Return name -> value. They are decoded anew only if a pointer has changed."""
        at = self.environ.value or 0
        if not at:
            return {}
        if at == self.at:
            pointers = ctypes.string_at(at, len(self.pointers))
            if pointers == self.pointers:
                return self.known
        array = ctypes.cast(at, ctypes.POINTER(ctypes.c_char_p))
        found: list[bytes] = []
        while array[len(found)] is not None:
            found.append(array[len(found)])
        self.at = at
        self.pointers = ctypes.string_at(at, (len(found) + 1) * ctypes.sizeof(ctypes.c_void_p))
        self.known = {name: value for name, _, value in (one.partition(b"=") for one in found)}
        return self.known

    def told(self, before: dict[bytes, bytes], now: dict[bytes, bytes]) -> str:
        """Return the difference in words, without values, which may be secrets."""
        changed = [name for name, value in now.items() if before.get(name) != value]
        changed += [name for name in before if name not in now]
        names = ", ".join(sorted(clean(os.fsdecode(name), limit=60) for name in changed)[:5])
        return "it changed the environment: %s" % names

    def restore(self, before: dict[bytes, bytes]) -> None:
        """Put them back."""
        libc = ctypes.CDLL(None)
        now = self.read()
        for name in now.keys() - before.keys():
            libc.unsetenv(name)
        for name, value in before.items():
            if now.get(name) != value:
                libc.setenv(name, value, 1)


class StandardStreams:
    """What the descriptors 0 to 2 lead to."""

    kind = "descriptors"

    def __init__(self) -> None:
        self.copies = [_duplicate(number) for number in range(3)]

    def read(self) -> tuple[tuple[int, int] | None, ...]:
        """Return device and number of each file; None for a closed descriptor."""
        return tuple(map(_file, range(3)))

    def told(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> str:
        """Return the difference in words."""
        words = []
        for number, (old, new) in enumerate(zip(before, now)):
            if old != new:
                words.append("%s descriptor %d" % ("closed" if new is None else "redirected", number))
        return "it %s" % ", ".join(words)

    def restore(self, before: tuple[Any, ...]) -> None:
        """Put them back."""
        for number, copy in enumerate(self.copies):
            if copy is not None and _file(number) != before[number]:
                os.dup2(copy, number)


class Limits:
    """Limits of the process; what is lowered stays so."""

    kind = "limits"

    def __init__(self) -> None:
        self.limits = ProcessLimits()

    def read(self) -> str:
        """Return what is lower than at the start, in words."""
        return self.limits.lowered()

    def told(self, before: str, now: str) -> str:  # noqa: ARG002 - as of the others
        """Return the difference in words."""
        return now

    def restore(self, before: str) -> None:
        """Leave them: a process may not raise its limits again."""


class FileMask:
    """The mask of new files."""

    kind = "file_mask"

    def read(self) -> int:
        """Return it; nothing but setting it tells what it was."""
        mask = os.umask(0o077)
        os.umask(mask)
        return mask

    def told(self, before: int, now: int) -> str:
        """Return the difference in words."""
        return "it changed the mask of new files from %03o to %03o" % (before, now)

    def restore(self, before: int) -> None:
        """Put it back."""
        os.umask(before)


WATCHES = (FloatControl, Signals, Locale, Directory, Variables, StandardStreams, FileMask, Limits)
"""All watches of state."""


def peak_mib() -> float | None:
    """Return the most memory that the process ever held in MiB; None if the system does not tell."""
    found = _status()
    return None if found is None else int(found[1]) / 1024


def own_mib() -> float | None:
    """Return the memory that no file backs, in MiB, so without libraries; None if the system does not tell."""
    if STATUS is None:
        return None
    with contextlib.suppress(OSError):
        found = _ANONYMOUS.search(os.pread(STATUS, 8192, 0))
        return None if found is None else int(found[1]) / 1024
    return None


def threads() -> int | None:
    """Return how many threads the process has; None if the system does not tell."""
    found = _status()
    return None if found is None else int(found[2])


def descriptors() -> int | None:
    """Return how many descriptors are open, on Windows handles; None if the system does not tell."""
    try:
        if sys.platform == "win32":
            count = ctypes.c_uint32()
            ask = ctypes.WinDLL("kernel32").GetProcessHandleCount
            return count.value if ask(ctypes.c_void_p(-1), ctypes.byref(count)) else None
        return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")) - 1
    except OSError:
        return None


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:  # no Linux
        return None


STATUS = _open("/proc/self/status")
"""Kept open, as it is read for each model."""


def _status() -> re.Match[bytes] | None:
    if STATUS is None:
        return None
    with contextlib.suppress(OSError):
        return _STATUS.search(os.pread(STATUS, 8192, 0))
    return None


def _is_musl() -> bool:
    with contextlib.suppress(OSError, ValueError):
        return not os.confstr("CS_GNU_LIBC_VERSION")
    return True


def _signals(bits: int) -> str:
    names = []
    for number in range(1, _LAST_SIGNAL + 1):
        if bits >> number - 1 & 1:
            try:
                names.append(signal.Signals(number).name)
            except ValueError:
                names.append("signal %d" % number)
    return ", ".join(names)


def _file(number: int) -> tuple[int, int] | None:
    try:
        about = os.fstat(number)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _duplicate(number: int) -> int | None:
    try:
        return os.dup(number)
    except OSError:
        return None
