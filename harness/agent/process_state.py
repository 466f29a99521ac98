"""Process-wide state that a library can change but should not: read, described and restored.

Each watch has ``read``, whose results are equal while nothing has changed, ``told``, and ``restore``. They
are read several times for each model, so each takes a few microseconds. A watch raises ``NotWatchedError`` at
creation if the system does not report its state.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from typing import Any

from harness.agent.float_control import FloatControl
from harness.agent.posix import block_signals, blocked_signals, can_be_handled
from harness.agent.process_figures import STATUS
from harness.agent.process_limits import ProcessLimits
from harness.agent.safe_text import clean
from harness.agent.target_errors import NotWatchedError

_LAST_SIGNAL = 31
"""Higher signals are for real time; the C library uses some for its threads."""

_ALL_SIGNALS = (1 << _LAST_SIGNAL) - 1

_SIGACTION_BYTES = 256
"""More than ``struct sigaction`` has anywhere; it begins with the handler."""


class Signals:
    """Which signals are caught, ignored and blocked; on macOS also the handlers."""

    kind = "signals"

    def __init__(self) -> None:
        if os.name != "posix":
            raise NotWatchedError("signal handlers: the system has none")
        self.action = ctypes.CDLL(None).sigaction
        self.saved = self._actions()
        self.mask = blocked_signals()
        self.lines, self.sets = b"", (0, 0, 0)

    def _actions(self) -> list[Any]:
        found = []
        for number in range(1, _LAST_SIGNAL + 1):
            found.append(ctypes.create_string_buffer(_SIGACTION_BYTES))
            self.action(number, None, found[-1])
        return found

    def read(self) -> tuple[int, ...]:
        """Return the sets of signals as bits: blocked, ignored, caught; outside Linux the handlers."""
        status = STATUS.read()
        if status:
            start = status.find(b"SigBlk:")
            lines = status[start : status.find(b"CapInh:", start)]
            if lines != self.lines:  # hardly ever
                blocked, ignored, caught = (int(word, 16) & _ALL_SIGNALS for word in lines.split()[1::2])
                self.lines, self.sets = lines, (blocked, ignored, caught)
            return self.sets
        handlers = [int.from_bytes(one.raw[:8], "little") for one in self._actions()]
        blocked = sum(1 << number - 1 for number in blocked_signals())
        return (blocked, *handlers)

    def told(self, before: tuple[int, ...], now: tuple[int, ...]) -> str:
        """Return the difference in words."""
        words = []
        if len(now) == len(self.sets):
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
        """Restore handlers and mask."""
        for number, saved in enumerate(self.saved, start=1):
            if can_be_handled(number):
                self.action(number, saved, None)
        block_signals(self.mask)

    def rebase(self) -> None:
        """Accept the present state as the normal one."""
        self.saved = self._actions()
        self.mask = blocked_signals()


class Locale:
    """The locale of the C library, with which numbers are read and written."""

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
        """Return it; empty if it no longer exists."""
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
    """The environment variables, as the C library has them: Python's own view is a copy."""

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
        """Return name -> value. They are decoded again only if a pointer has changed."""
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
    """The files behind the descriptors 0 to 2."""

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


class LoweredLimits:
    """Limits of the process; lowered ones stay lowered."""

    kind = "limits"

    def __init__(self) -> None:
        self.limits = ProcessLimits()
        if not self.limits.soft:
            raise NotWatchedError("limits of the process")

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
        """Return it; only setting it shows the previous one."""
        mask = os.umask(0o077)
        os.umask(mask)
        return mask

    def told(self, before: int, now: int) -> str:
        """Return the difference in words."""
        return "it changed the mask of new files from %03o to %03o" % (before, now)

    def restore(self, before: int) -> None:
        """Put it back."""
        os.umask(before)


CHEAP = (FloatControl, Locale, Directory, Variables)
"""Watches that are read after each step of a cell."""

OTHERS = (StandardStreams, FileMask)
"""Those that are read after its runs."""

DEAR = (Signals, LoweredLimits)
"""Watches that take as long as all others together."""


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
