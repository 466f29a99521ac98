"""How an agent starts: command, environment variables, folder, pipes or socket, and the source that it runs.

Every agent starts here: on this machine, ahead of its use, behind ssh, or behind a command that ends in a
Python. Imports stay few, because the prestarted process waits for them.
"""

import functools
import secrets
import shlex
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness import agent
from harness.agent import launcher, orphans, posix, work
from harness.agent.frame import BINARY, LINE, MODES
from harness.agent.hello import PROBE, hello
from harness.agent.importer import packed_sources
from harness.agent.sources import sources_in
from harness.agent.system import PARENT
from harness.engine.processes.started import BEAT_S, SOCKET, Started, port_there, ssh_command, start_process

if TYPE_CHECKING:
    from harness.plan.target import Runtime

PYTHON = "python3"
"""Interpreter on another machine if the matrix names none."""

# Unbuffered: the rest of its input is for the agent.
_RUN_FIRST_LINE = 'exec(eval(open(0,"rb",0,closefd=False).readline()))'

_ARGUMENTS = ("-u", "-c", _RUN_FIRST_LINE)
"""Makes a Python run the source on its standard input."""

# Isolated from variables, packages and whatever lies in the folder where the other shell begins.
_LAUNCHER_ARGUMENTS = ("-I", "-S", "-c", _RUN_FIRST_LINE)

# The first line is read byte by byte, so it is short and fetches the rest.
_LOADER = """
import os
left, parts = {size}, []
while left:
    parts.append(os.read(0, min(left, 65536)))
    left -= len(parts[-1])
    if not parts[-1]:
        raise SystemExit("ep-harness: the agent's source ended early")
exec(compile(b"".join(parts), "harness/agent/importer.py", "exec"))
"""

_MODULES = """
import sys, types
for name, source in {sources!r}:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), vars(module))
"""


def launch(runtime: "Runtime", env: Mapping[str, str], folder: Path) -> Started:
    """Start a process of a runtime, on this or on another machine.

    Args:
        runtime: The runtime; an environment of packages has to be built before.
        env: Environment variables of the agent, set before its interpreter starts.
        folder: An existing empty folder on this machine: a thousand crashes can leave a thousand core dumps.

    Raises:
        InstallError: A wheel for the environment does not exist.
        OSError, ValueError: The command cannot be started.
    """
    if runtime.agent:
        from harness.engine.processes.program_agent import launch_program

        return launch_program(runtime, env, folder)
    if runtime.is_javascript:
        from harness.runtimes import environments, javascript

        environments.note_use(runtime)
        # A killed browser leaves files in temporary folders; below the process's folder they are deleted with
        # it.
        there = {"TMPDIR": str(folder), **env}
        program = javascript.agent_command(runtime, environments.modules(runtime))
        started = _started_here(program, there, folder, lambda opening: opening.encode() + b"\n")
        return started._replace(has_helpers=True)
    if is_local(runtime):
        return launch_here(interpreter(runtime), env, folder)
    # The launcher there sets the variables, and reports on stderr how the agent ended.
    marker = f"ep-harness-{secrets.token_hex(8)}"
    call = (marker, {**env, orphans.OWNER: secrets.token_hex(8)}, list(_ARGUMENTS), PARENT, BEAT_S)
    listener = socket.create_server(("127.0.0.1", 0)) if runtime.channel == SOCKET else None
    port = listener.getsockname()[1] if listener else 0
    # ssh hands its arguments to a shell; a command takes them as they are.
    arguments = map(shlex.quote, _LAUNCHER_ARGUMENTS) if runtime.ssh else _LAUNCHER_ARGUMENTS
    command = (*_remote_command(runtime, port), *arguments)
    # ssh passes all bytes. A command starts in lines, and switches to bytes if the probe shows that they
    # pass.
    unknown = _is_unknown(runtime)
    token, modes = secrets.token_hex(16), _modes(runtime)
    port = port_there(port) if runtime.ssh else port
    opening = hello(token, modes, f"tcp://127.0.0.1:{port}" if listener else "")
    return Started(
        popen=start_process(
            command, {launcher.FOLDER_VARIABLE: str(folder)}, folder, silent=listener is not None
        ),
        folder=folder,
        token=token,
        modes=modes,
        preamble=repr(f"{_launcher_source()}\nmodule.launch_and_report{call!r}\n").encode()
        + b"\n"
        + _python_agent(agent_source(), opening, PROBE + b"\n" if unknown else b""),
        listener=listener,
        marker=marker,
        by_ssh=bool(runtime.ssh),
    )


def launch_here(command: Sequence[str], env: Mapping[str, str], folder: Path) -> Started:
    """Start a process of an interpreter on this machine; arguments and errors as ``launch``."""
    agent_here = functools.partial(_python_agent, agent_source(here=True))
    return _started_here((*command, *_ARGUMENTS), env, folder, agent_here)


def _started_here(
    command: Sequence[str], env: Mapping[str, str], folder: Path, preamble: Callable[[str], bytes]
) -> Started:
    token, owner = secrets.token_hex(16), secrets.token_hex(8)
    return Started(
        popen=start_process(command, {**env, orphans.OWNER: owner}, folder),
        folder=folder,
        token=token,
        modes=MODES,
        preamble=preamble(hello(token)),
        owner=owner,
    )


def is_local(runtime: "Runtime") -> bool:
    """Return whether a runtime sees the harness's own files."""
    return not runtime.is_elsewhere


def interpreter(runtime: "Runtime") -> tuple[str, ...]:
    """Return the command of a local runtime's Python; an environment has to be built before.

    Raises:
        InstallError: A wheel for the environment does not exist.
    """
    if runtime.python:
        return (runtime.python,)
    if runtime.packages:
        from harness.runtimes.environments import built_python, note_use

        note_use(runtime)
        return (str(built_python(runtime)),)
    return (sys.executable,)


@functools.cache
def agent_source(*, here: bool = False) -> str:
    """Return the agent's modules as one source that starts the agent, on this machine or anywhere."""
    folder = str(Path(agent.__file__).parent)
    sources = sources_in(folder)
    arguments = f"{packed_sources(sources)!r}, {folder if here else ''!r}"
    return f"{sources['harness.agent.importer']}\n\narrive({arguments})\n"


def _launcher_source() -> str:
    """Return a source that defines ``module``, the launcher, after the modules that it imports."""
    files = {module.__name__: str(module.__file__) for module in (posix, work, orphans, launcher)}
    sources = [(name, Path(file).read_text(encoding="utf-8")) for name, file in files.items()]
    return _MODULES.format(sources=sources)


def _is_unknown(runtime: "Runtime") -> bool:
    """Return whether it is unknown which bytes the channel of a remote runtime passes on."""
    return runtime.command is not None and runtime.channel is None


def _modes(runtime: "Runtime") -> tuple[str, ...]:
    """Return how the agent of a remote runtime may send, preferred first."""
    if runtime.channel == LINE:
        return (LINE,)
    return (LINE, BINARY) if _is_unknown(runtime) else MODES


def _python_agent(source: str, opening: str, probe: bytes = b"") -> bytes:
    """Return the bytes that make a Python an agent: a loader, the source, perhaps a probe, and the hello."""
    sent = source.encode()
    loader = repr(_LOADER.format(size=len(sent))).encode()
    return b"".join((loader, b"\n", sent, probe, opening.encode(), b"\n"))


def _remote_command(runtime: "Runtime", port: int) -> tuple[str, ...]:
    """Return the command of a remote Python; the agent there connects to a port that is not 0."""
    if runtime.command:
        return tuple(shlex.split(runtime.command))
    python = runtime.python or PYTHON
    if python.startswith("~/"):  # a shell does not expand a quoted ~
        python = "." + python[1:]  # ssh starts in the home folder
    return (*ssh_command(str(runtime.ssh), port), shlex.quote(python))
