"""The launcher: starts an agent where the harness cannot watch it, and tells how it ended.

Behind ssh or in a container a process's signal does not come home, what it printed before a crash is lost,
and killing the near end of the connection leaves the far one running. So a second Python stands beside the
agent there: it takes the agent's last words and its end home, and ends it when the harness goes.

It comes as source through standard input, which the agent inherits, and needs Python >= 3.9 and nothing else.
Environment variables and the agent's command come with it: so they are those of the agent's machine, no shell
reads them, and no list of processes shows them.
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

GRACE_S = 5.0
"""Seconds that an agent gets to end by itself once nothing more can come from the harness."""

OUTPUT_LIMIT = 16384
"""Bytes of what it printed last that are taken home."""

FOLDER = "EP_HARNESS_FOLDER"
"""The variable that names a folder for its files, where the harness is on the same machine after all: it
deletes that when everything else has been killed."""

STDIN, STDOUT, STDERR = 0, 1, 2


def launch(marker: str, env: dict[str, str], arguments: list[str], parent: str) -> None:
    """Start this Python once more, wait for its end, and report it on stderr.

    Args:
        marker: What the report begins with, a line of its own: ``<marker> SIGSEGV``.
        env: Environment variables on top of ours.
        arguments: Of the Python.
        parent: The variable that tells an agent who started it.
    """
    given = os.environ.pop(FOLDER, "")
    folder = Path(tempfile.mkdtemp(prefix="ep-harness-", dir=given if os.access(given, os.W_OK) else None))
    try:
        # Appending: the agent empties it after each model.
        with (folder / "output.txt").open("a+b", buffering=0) as output:
            child = subprocess.Popen(  # noqa: S603 - an argument list, never a shell
                [sys.executable, *arguments],
                stderr=output,
                cwd=folder,  # what providers leave lying about, core dumps above all, goes with it
                env={**os.environ, **env, parent: str(os.getpid())},
                start_new_session=True,
            )
            # Its end is to be seen at the other end of its pipe, which therefore nobody else may hold open.
            os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
            code = watch(child)
            output.seek(max(0, output.seek(0, os.SEEK_END) - OUTPUT_LIMIT))
            printed = output.read(OUTPUT_LIMIT)
        report = f"\n{marker} {exit_cause(code)}\n"
        with contextlib.suppress(OSError):  # nobody listens any more
            os.write(STDERR, printed + report.encode())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def watch(child: subprocess.Popen[bytes]) -> int:
    """Wait for a process; end it once the harness is gone. What it has started ends with it.

    Returns:
        Its exit code as ``subprocess`` has it.
    """
    if not hasattr(select, "poll"):  # Windows
        return child.wait()
    # A signal handler writes into the pipe, so that one wait is for everything.
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    for pipe in (STDIN, STDERR):
        poll.register(pipe, 0)  # errors and hang-ups alone
    kill_at = None
    while child.poll() is None:
        left_s = None if kill_at is None else kill_at - time.monotonic()
        if left_s is not None and left_s <= 0:
            kill(child)
            break
        for pipe, _ in poll.poll(None if left_s is None else 1000 * left_s + 1):
            if pipe == wake:
                os.read(wake, 4096)
                continue
            poll.unregister(pipe)
            # Only stdin: it was told to end. Both: the connection is gone, and may be cut off from a hang.
            at = time.monotonic() + (GRACE_S if pipe == STDIN else 0.0)
            kill_at = at if kill_at is None else min(at, kill_at)
    code = child.wait()
    kill(child)
    return code


def kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a process, and whatever it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all gone; macOS says the second
        os.killpg(child.pid, signal.SIGKILL)


def exit_cause(code: int) -> str:
    """Name an exit code: negative is a POSIX signal, a large one a Windows status such as 0xC0000005."""
    if code == 0:
        return ""
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    if code > 0xFF:  # noqa: PLR2004 - beyond what a POSIX exit status can hold
        return f"0x{code & 0xFFFFFFFF:08X}"
    return f"exit code {code}"
