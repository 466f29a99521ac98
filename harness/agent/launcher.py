"""The launcher: starts an agent where the harness cannot monitor it, and reports how it ended.

Behind ssh or in a container, the harness does not see a process's signal, loses what it printed before a
crash, and cannot end it by closing the connection. So a second Python runs beside the agent. It reports the
agent's last output and its end, and ends the agent when the harness is gone.

It comes as source through standard input, which the agent inherits, with ``work.py`` and ``orphans.py``. It
needs only Python >= 3.9. It brings the environment variables and the agent's command, so that no shell reads
them and no process list shows them.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.agent.orphans import OWNER, end_orphans, orphans_text
from harness.agent.posix import KILLED, signal_group
from harness.agent.work import process_work

_GRACE_S = 5.0
"""Seconds in which an agent may end by itself once the harness can send nothing more."""

_OUTPUT_LIMIT = 16384
"""Bytes of its last output that are reported."""

FOLDER_VARIABLE = "EP_HARNESS_FOLDER"
"""The variable with a folder for its files, if the harness is on the same machine and deletes the folder."""

LINGER_S = 0.2
"""Seconds between the report and the end of this process.

Slurm 22.05 does not always pass on what a task writes in its last moment: of some 60 agents that died behind
``srun``, 6 reports were lost without a pause, and none of 27 with one.
"""

STDIN, STDOUT, STDERR = 0, 1, 2

WINDOWS_ENDS = {
    0xC0000005: "access violation",
    0xC0000017: "no memory",
    0xC000001D: "illegal instruction",
    0xC0000094: "integer division by zero",
    0xC00000FD: "stack overflow",
    0xC0000135: "a library is missing",
    0xC000013A: "Ctrl-C",
    0xC0000374: "heap corruption",
    0xC0000409: "fail-fast, as by abort",
    0xE06D7363: "C++ exception",
}
"""Exit code of a process of Windows -> what it means."""


def launch_and_report(
    marker: str, env: dict[str, str], arguments: list[str], parent: str, beat_s: float = 0.0
) -> None:
    """Start this Python again, wait for its end, and report it on stderr.

    Args:
        marker: First word of the report, which is one line: ``<marker> SIGSEGV``.
        env: Environment variables besides the launcher's own.
        arguments: Arguments of the Python.
        parent: The variable that holds the process id of the agent's parent.
        beat_s: Seconds between two signs of life on stderr; 0 for none.
    """
    given = os.environ.pop(FOLDER_VARIABLE, "")
    folder = Path(tempfile.mkdtemp(prefix="ep-harness-", dir=given if os.access(given, os.W_OK) else None))
    try:
        # Appending: the agent empties it after each model.
        with (folder / "output.txt").open("a+b", buffering=0) as output:
            child = subprocess.Popen(  # noqa: S603 - an argument list, never a shell
                [sys.executable, *arguments],
                stderr=output,
                cwd=folder,  # files that providers leave, such as core dumps, are deleted with it
                env={**os.environ, **env, parent: str(os.getpid())},
                start_new_session=True,
            )
            # The other end must see the agent's pipe close, so no other process may hold it open.
            os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
            code = watch_process(child, sign_of_life(marker).encode(), beat_s)
            left = orphans_text(end_orphans(env[OWNER])) if env.get(OWNER) else ""
            if left:
                output.write(b"\nep-harness: %s\n" % left.encode())
            output.seek(max(0, output.seek(0, os.SEEK_END) - _OUTPUT_LIMIT))
            printed = output.read(_OUTPUT_LIMIT)
        report = f"\n{marker} {exit_cause(code)}\n"
        with contextlib.suppress(OSError):  # the harness is gone
            os.write(STDERR, printed + report.encode())
            time.sleep(LINGER_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sign_of_life(marker: str) -> str:
    """Return the beginning of the line on stderr that shows that this process still runs.

    The agent's work follows it: the fields of ``Work``, if the system shows them.
    """
    return "alive: %s" % marker


def watch_process(child: subprocess.Popen[bytes], beat: bytes = b"", beat_s: float = 0.0) -> int:
    """Wait for a process, end it once the harness is gone, and return its exit code like ``subprocess``.

    Processes that it has started end with it. It writes ``beat`` and their work to stderr every ``beat_s``
    seconds.
    """
    if sys.platform == "win32":  # it has no poll
        return child.wait()
    # The end of the child writes into this pipe, so that one poll waits for everything.
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    for pipe in (STDIN, STDERR):
        poll.register(pipe, 0)  # errors and hang-ups only
    kill_at = None
    beat_at = time.monotonic()
    while child.poll() is None:
        if beat_s and time.monotonic() >= beat_at:
            beat_at = time.monotonic() + beat_s
            with contextlib.suppress(OSError):
                os.write(STDERR, beat + told_work(child.pid) + b"\n")
        left_s = None if kill_at is None else kill_at - time.monotonic()
        if left_s is not None and left_s <= 0:
            kill(child)
            break
        until_beat_s = max(0.0, beat_at - time.monotonic()) if beat_s else None
        waits = [each for each in (left_s, until_beat_s) if each is not None]
        for pipe, _ in poll.poll(1000 * min(waits) + 1 if waits else None):
            if pipe == wake:
                os.read(wake, 4096)
                continue
            poll.unregister(pipe)
            # Only stdin: the agent was asked to end. Both: the connection is gone, and the agent may hang.
            at = time.monotonic() + (_GRACE_S if pipe == STDIN else 0.0)
            kill_at = at if kill_at is None else min(at, kill_at)
    code = child.wait()
    kill(child)
    return code


def told_work(pid: int) -> bytes:
    """Return the work of a process as text, with a blank before each figure; empty if unknown."""
    work = process_work(pid)
    return b"" if work is None else "".join(" %s" % figure for figure in work).encode()


def kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all gone; macOS raises the second
        signal_group(child.pid, KILLED)


def exit_cause(code: int) -> str:
    """Return the name of an exit code: a POSIX signal if negative, a Windows status if large."""
    if code == 0:
        return ""
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    if code > 0xFF:  # noqa: PLR2004 - beyond what a POSIX exit status can hold
        status = code & 0xFFFFFFFF
        return ": ".join(filter(None, (f"0x{status:08X}", WINDOWS_ENDS.get(status, ""))))
    return f"exit code {code}"
