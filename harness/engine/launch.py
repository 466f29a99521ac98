"""How an agent starts: command, environment variables, folder, pipes, and the source that it runs.

Every agent starts here: on this machine, ahead of its use, behind ssh, or behind a command that ends in a
Python. Imports stay few, because the prestarted process waits for them.
"""

import binascii
import functools
import json
import os
import queue
import secrets
import shlex
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from execnet.gateway_io import popen_bootstrapline

from harness import agent
from harness.agent import launcher
from harness.agent.system import PARENT

if TYPE_CHECKING:
    from harness.plan.target import Runtime

OUTPUT = "output.txt"
"""File in the folder of a process that takes what it prints."""

PYTHON = "python3"
"""Interpreter on another machine where the matrix names none."""

SSH = (
    "ssh",
    *("-o", "BatchMode=yes"),  # never ask for a password: no terminal would show it
    *("-o", "ConnectTimeout=30"),
    *("-o", "ServerAliveInterval=15"),  # a dead connection must not pass for a model that hangs
    *("-o", "ControlMaster=no"),  # the end of one process must not be that of others
    "-T",
    "--",
)
"""Everything else about the connection is in ~/.ssh/config."""

_ARGUMENTS = ("-u", "-c", popen_bootstrapline)
"""Makes a Python wait for execnet's bootstrap."""

# Isolated from variables, packages and whatever lies in the folder where the other shell begins. Unbuffered,
# because the rest of its input is the agent's.
_LAUNCHER_ARGUMENTS = ("-I", "-S", "-c", 'exec(eval(open(0,"rb",0,closefd=False).readline()))')

_QUIET = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy's threads spin when it is imported, some 0.1 s of a processor in all, and nothing here needs them."""

_NOT_SENT = {"launcher"}
"""Modules of the folder that are no part of an agent."""


class Started(NamedTuple):
    """A process that waits for execnet's bootstrap.

    Attributes:
        popen: The process, with pipes for stdin and stdout.
        folder: Its folder on this machine, with ``OUTPUT`` in it. It is deleted with the process.
        greeting: What it reads before execnet's bootstrap; empty on this machine.
        marker: First word of the report of ``harness.agent.launcher``; empty on this machine.
        by_ssh: Whether ssh reaches it.
    """

    popen: "subprocess.Popen[bytes]"
    folder: Path
    greeting: bytes = b""
    marker: str = ""
    by_ssh: bool = False


def launch(runtime: "Runtime", env: Mapping[str, str], folder: Path) -> Started:
    """Start a process of a runtime, on this or on another machine.

    Args:
        runtime: The runtime; an environment of packages has to be built before.
        env: Environment variables of the agent, set before its interpreter starts.
        folder: An existing empty folder on this machine: a thousand crashes can leave a thousand core dumps.

    Raises:
        InstallError: A wheel that the environment is built from does not exist.
        OSError, ValueError: The command cannot be started.
    """
    if is_local(runtime):
        return launch_here(interpreter(runtime), env, folder)
    # The launcher there sets the variables, and reports on stderr how the agent ended.
    marker = f"ep-harness-{secrets.token_hex(8)}"
    call = (marker, dict(env), list(_ARGUMENTS), PARENT)
    source = Path(launcher.__file__).read_text(encoding="utf-8")
    by_ssh = bool(runtime.ssh)
    # ssh hands its arguments to a shell; a command takes them as they are.
    arguments = map(shlex.quote, _LAUNCHER_ARGUMENTS) if by_ssh else _LAUNCHER_ARGUMENTS
    return Started(
        popen=_start((*_remote_command(runtime), *arguments), {launcher.FOLDER: str(folder)}, folder),
        folder=folder,
        greeting=repr(f"{source}\nlaunch{call!r}\n").encode() + b"\n",
        marker=marker,
        by_ssh=by_ssh,
    )


def launch_here(command: Sequence[str], env: Mapping[str, str], folder: Path) -> Started:
    """Start a process of an interpreter on this machine; arguments and errors as ``launch``."""
    return Started(popen=_start((*command, *_ARGUMENTS), env, folder), folder=folder)


def is_local(runtime: "Runtime") -> bool:
    """Return whether a runtime sees the harness's own files."""
    return not (runtime.command or runtime.ssh)


def interpreter(runtime: "Runtime") -> tuple[str, ...]:
    """Return the command of a local runtime's Python; an environment has to be built before.

    Raises:
        InstallError: A wheel that it is built from does not exist.
    """
    if runtime.python:
        return (runtime.python,)
    if runtime.packages:
        from harness.engine.environments import built_python, note_use

        note_use(runtime)
        return (str(built_python(runtime)),)
    return (sys.executable,)


@functools.cache
def agent_source() -> str:
    """Return the agent's modules as one source, for execnet's ``remote_exec``.

    Packed they are a third of their size, which counts on a slow line: each process receives them.
    """
    folder = Path(agent.__file__).parent
    sources = {"harness": ""}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[-1] not in _NOT_SENT:
            name = ".".join(("harness", "agent", *parts)).removesuffix(".__init__")
            sources[name] = path.read_text(encoding="utf-8")
    packed = binascii.b2a_base64(zlib.compress(json.dumps(sources).encode()), newline=False).decode()
    return f"{sources['harness.agent.importer']}\n\narrive(channel, {packed!r})\n"


def _remote_command(runtime: "Runtime") -> tuple[str, ...]:
    if runtime.command:
        return tuple(shlex.split(runtime.command))
    python = runtime.python or PYTHON
    if python.startswith("~/"):  # a shell does not expand a quoted ~
        python = "." + python[1:]  # ssh begins in the home folder
    return (*SSH, str(runtime.ssh), shlex.quote(python))


def _start(command: Sequence[str], env: Mapping[str, str], folder: Path) -> "subprocess.Popen[bytes]":
    # Readable: the agent reads back what was printed. Appending: after truncation it starts at zero.
    with (folder / OUTPUT).open("a+b") as stderr:
        return _in_lasting_thread(
            lambda: subprocess.Popen(  # noqa: S603 - an argument list, never a shell
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**_QUIET, **os.environ, **env, PARENT: str(os.getpid())},
                cwd=folder,
                # Ctrl-C is for the harness only, and a kill must reach what the EP starts.
                start_new_session=True,
            )
        )


def _in_lasting_thread(start: "Callable[[], subprocess.Popen[bytes]]") -> "subprocess.Popen[bytes]":
    """Start a process in a thread that lives as long as the harness.

    On Linux an agent asks to be killed when the *thread* that started it ends: the system has no other way
    to end it with the harness.
    """
    future: Future[subprocess.Popen[bytes]] = Future()
    _lasting_thread(os.getpid()).put((start, future))
    return future.result()


@functools.cache
def _lasting_thread(pid: int) -> "queue.SimpleQueue[Any]":
    """Return the queue of a thread of process ``pid`` that takes calls and their futures.

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
            del call, future  # they hold on to a process

    threading.Thread(target=work, name=f"ep-harness-starter-{pid}", daemon=True).start()
    return calls
