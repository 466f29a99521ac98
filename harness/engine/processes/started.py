"""A process that has been started and waits for the bytes that make it an agent, and how it starts.

Imports stay few, because the prestarted process waits for them.
"""

import functools
import os
import queue
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

from harness.agent.hello import HELLO_VARIABLE
from harness.agent.system import PARENT

OUTPUT = "output.txt"
"""File in the folder of a process that takes what it prints."""

SSH = (
    "ssh",
    *("-o", "BatchMode=yes"),  # never ask for a password: no terminal would show it
    *("-o", "ConnectTimeout=30"),
    *("-o", "ServerAliveInterval=15"),  # a dead connection must not look like a model that hangs
    *("-o", "ControlMaster=no"),  # the end of one process must not end the others
    "-T",
    "--",
)
"""Everything else about the connection is in ~/.ssh/config."""

SOCKET = "socket"
"""The channel of an agent that connects back."""

BEAT_S = 10.0
"""Seconds between two signs of life from another machine: without them, a silent machine would look like a
model that hangs."""

_QUIET = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy's threads spin after its import, some 0.1 s of a processor in all, and nothing here needs them."""


def port_there(port: int) -> int:
    """Return the port over there that ssh forwards to one here, so that an agent can connect back.

    It is another number, for over there may be this machine, and of the same range of ports.
    """
    return port ^ 0x2000


def ssh_command(host: str, port: int = 0) -> tuple[str, ...]:
    """Return the command that hands its last argument to a shell over there.

    Args:
        host: What ssh connects to.
        port: Port here to which ``port_there`` leads over there; 0 for none.
    """
    way = f"127.0.0.1:{port_there(port)}:127.0.0.1:{port}"
    back = ("-o", "ExitOnForwardFailure=yes", "-R", way) if port else ()
    return (*SSH[:-1], *back, SSH[-1], host)


class Started(NamedTuple):
    """A process that waits for the bytes that make it an agent.

    Attributes:
        popen: The process, with pipes for stdin and stdout.
        folder: Its folder on this machine, with ``OUTPUT`` in it. It is deleted with the process.
        token: The token of its hello, which its greeting must repeat.
        modes: How it may send.
        preamble: The first bytes that it reads: its source, if it is a Python, and the hello.
        listener: The listener that it connects to; None if it answers on stdout.
        marker: First word of the report of ``harness.agent.launcher``; empty on this machine.
        by_ssh: Whether it runs behind ssh.
        owner: Value of the variable ``harness.agent.orphans.OWNER`` of all processes that it starts; empty
            for one elsewhere, where the launcher takes care of them.
        has_helpers: Whether it starts processes of its own that end after it, as a browser does.
        asks_first: Whether it is asked to end before it is killed: a command that ends what it started
            elsewhere, though no launcher reports from there.
    """

    popen: "subprocess.Popen[bytes]"
    folder: Path
    token: str
    modes: tuple[str, ...]
    preamble: bytes
    listener: socket.socket | None = None
    marker: str = ""
    by_ssh: bool = False
    owner: str = ""
    has_helpers: bool = False
    asks_first: bool = False


def start_process(
    command: Sequence[str], env: Mapping[str, str], folder: Path, *, silent: bool = False
) -> "subprocess.Popen[bytes]":
    """Start a process with a pipe for stdin, and one for stdout unless it is silent there.

    Args:
        command: The program and its arguments.
        env: Environment variables, besides those of the harness.
        folder: Its folder; the file ``OUTPUT`` in it takes stderr, and stdout of a silent process.
        silent: Whether messages do not go through stdout.

    Raises:
        OSError, ValueError: It cannot be started.
    """
    # Readable: the agent reads back what was printed. Appending: after truncation it starts at zero.
    with (folder / OUTPUT).open("a+b") as stderr:
        return _in_lasting_thread(
            lambda: subprocess.Popen(  # noqa: S603 - an argument list, never a shell
                command,
                stdin=subprocess.PIPE,
                stdout=stderr if silent else subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                env=_environment(env),
                cwd=folder,
                # Ctrl-C is for the harness only, and a kill must reach what the EP starts.
                start_new_session=True,
            )
        )


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return all variables of an agent, without the hello of another process."""
    inherited = {name: value for name, value in os.environ.items() if name != HELLO_VARIABLE}
    return {**_QUIET, **inherited, **env, PARENT: str(os.getpid())}


def _in_lasting_thread(start: "Callable[[], subprocess.Popen[bytes]]") -> "subprocess.Popen[bytes]":
    """Start a process in a thread that lives as long as the harness.

    On Linux an agent is killed when the *thread* that started it ends: the system has no other way to end it
    with the harness.
    """
    future: Future[subprocess.Popen[bytes]] = Future()
    _lasting_thread(os.getpid()).put((start, future))
    return future.result()


@functools.cache
def _lasting_thread(pid: int) -> "queue.SimpleQueue[Any]":
    """Return the queue of process ``pid``'s thread, which takes calls and their futures.

    A fork inherits no thread, hence one for each process.
    """
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def work() -> None:
        while True:
            call, future = calls.get()
            try:
                future.set_result(call())
            except Exception as error:  # noqa: BLE001 - raised again by future.result()
                future.set_exception(error)
            del call, future  # they keep a process alive

    threading.Thread(target=work, name=f"ep-harness-starter-{pid}", daemon=True).start()
    return calls
