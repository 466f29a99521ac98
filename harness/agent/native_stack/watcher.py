"""The watcher: traces one process, and prints the native stack of the signal that kills it.

It runs in a small Python of its own. If anything goes wrong in it, the traced process gets its signal: the
system detaches a process whose tracer ends, and an alarm ends the watcher if a stack takes too long.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

from harness.agent.native_stack import block, ptrace
from harness.agent.native_stack.crash_print import CrashPrint
from harness.agent.native_stack.demangle import Demangler
from harness.agent.native_stack.start import ON

if sys.platform == "win32":
    raise ImportError("no other process can be traced here")

FATAL = frozenset(
    {
        signal.SIGSEGV,
        signal.SIGABRT,
        signal.SIGFPE,
        signal.SIGBUS,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGSYS,
    }
)
STOPS = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})

_BUDGET_S = 0.8
"""Seconds for a stack; after that, the known frames are printed without symbols."""

ALARM_S = 1.5
"""Seconds until the watcher is killed, even inside a system call."""

_YAMA = "/proc/sys/kernel/yama/ptrace_scope"


def watch(pid: int) -> None:
    """Trace a process until it ends; report on standard output that it is traced, or why not."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watcher = Watcher(pid)
    try:
        watcher.seize()
    except OSError as error:
        os.write(1, ("%s\n" % _refusal(error)).encode())
        return
    os.write(1, ("%s\n" % ON).encode())
    while True:
        try:
            thread, status = os.waitpid(-1, ptrace.ALL_CHILDREN)
        except ChildProcessError:
            return
        if os.WIFSTOPPED(status):
            with contextlib.suppress(ProcessLookupError):  # it was killed meanwhile
                watcher.answer(thread, os.WSTOPSIG(status), status >> 16)


class Watcher:
    """Answers the stops of the threads of one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._demangle = Demangler()
        self._handled: dict[int, ptrace.SignalInfo] = {}
        """Thread -> the last signal that a handler of the process got in it."""
        self._has_printed = False

    def seize(self) -> None:
        """Trace all threads; new ones are traced as they start."""
        seized: set[int] = set()
        while new := self._threads() - seized:
            for thread in new:
                try:
                    ptrace.request(ptrace.SEIZE, thread, 0, ptrace.TRACE_CLONE)
                except ProcessLookupError:
                    continue
                except PermissionError:
                    # A thread that a traced thread started meanwhile is already traced.
                    if _status(thread).get("TracerPid") != str(os.getpid()):
                        raise
            seized |= new

    def answer(self, thread: int, number: int, event: int) -> None:
        """Let a stopped thread continue; print its stack first if its signal kills the process.

        ``event`` is what happened to the thread, if it is not the signal.
        """
        if event == ptrace.EVENT_STOP and number in STOPS:
            ptrace.request(ptrace.LISTEN, thread)  # it stays stopped, as the signal requires
        elif event:
            is_thread = _status(thread).get("Tgid") == str(self._pid)
            ptrace.request(ptrace.CONTINUE if is_thread else ptrace.DETACH, thread)
        else:
            try:
                if number in FATAL:
                    self._note(thread, number)
            finally:
                ptrace.request(ptrace.CONTINUE, thread, 0, number)

    def _note(self, thread: int, number: int) -> None:
        """Remember a signal that the process handles; print the stack if one kills it."""
        status = _status(thread)
        bit = 1 << number - 1
        if int(status.get("SigCgt", "0"), 16) & bit:
            self._handled[thread] = ptrace.signal_info(thread)
        elif not int(status.get("SigIgn", "0"), 16) & bit and not self._has_printed:
            self._has_printed = True
            self._stop_others(thread)
            signal.setitimer(signal.ITIMER_REAL, ALARM_S)
            self._print(thread, "%d %r" % (thread, status.get("Name", "")))
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _print(self, thread: int, title: str) -> None:
        try:
            crash = CrashPrint(thread, self._handled.get(thread), time.monotonic() + _BUDGET_S)
            try:
                crash.print(title, self._demangle)
            finally:
                crash.memory.close()
        except Exception as error:  # noqa: BLE001 - whatever is in its memory, the process gets its signal
            block.write_block("ep-harness: no native stack: %s\n" % block.printable(str(error)))

    def _stop_others(self, thread: int) -> None:
        """Make the other threads wait: without a tracer, the signal would end them at once."""
        for other in self._threads() - {thread}:
            with contextlib.suppress(OSError):
                ptrace.request(ptrace.INTERRUPT, other)

    def _threads(self) -> set[int]:
        return {int(name) for name in os.listdir("/proc/%d/task" % self._pid)}


def _status(thread: int) -> dict[str, str]:
    """Return the table of a thread's state; empty if the thread is gone."""
    try:
        with open("/proc/%d/status" % thread, encoding="utf-8", errors="replace") as file:
            return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
    except OSError:
        return {}


def _refusal(error: OSError) -> str:
    try:
        with open(_YAMA, encoding="ascii") as file:
            scope = "; kernel.yama.ptrace_scope is %s" % file.read().strip()
    except OSError:
        scope = ""
    return "the system refuses ptrace: %s%s" % (error.strerror, scope)
