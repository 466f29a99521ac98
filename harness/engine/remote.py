"""An agent elsewhere: behind ssh, in a container, behind any command that ends in a Python.

``harness.agent.launcher`` starts it there, sets its variables there, and reports on stderr how it ended. The
report's absence is a finding of its own: the connection was lost, which is nobody's fault.
"""

import secrets
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.agent import launcher
from harness.agent.system import PARENT
from harness.core.errors import one_line
from harness.engine.job import interpreter, is_local
from harness.engine.process import AGENT_ARGUMENTS, AgentProcess
from harness.plan.target import Runtime

PYTHON = "python3"
"""What is started on the other machine where the matrix names no interpreter."""

SSH = (
    "ssh",
    *("-o", "BatchMode=yes"),  # it never asks for a password, which nobody would see
    *("-o", "ConnectTimeout=30"),
    *("-o", "ServerAliveInterval=15"),  # a dead connection must not pass for a model that hangs
    *("-o", "ControlMaster=no"),  # the end of one process must not be that of others
    "-T",
    "--",
)
"""Everything else about the connection stands in ~/.ssh/config."""

CONNECTION_FAILED = 255
"""ssh's own exit code."""

_LAUNCHER = Path(launcher.__file__).read_text(encoding="utf-8")
# Isolated from variables, packages and whatever lies in the folder where the other shell begins. Unbuffered,
# for the rest of its input is the agent's.
_LAUNCHER_ARGUMENTS = ("-I", "-S", "-c", 'exec(eval(open(0,"rb",0,closefd=False).readline()))')


def start_process(runtime: Runtime, env: Mapping[str, str], folder: Path) -> AgentProcess:
    """Start a process of a runtime, wherever that is.

    Raises:
        InstallError: An environment is not there; see ``interpreter``.
        OSError, ValueError: It cannot be started.
    """
    if is_local(runtime):
        return AgentProcess(interpreter(runtime), env, folder)
    return RemoteProcess(runtime, env, folder)


class RemoteProcess(AgentProcess):
    """A process that serves one configuration on another machine.

    Args:
        runtime: One with ``ssh`` or ``command``.
        env: Environment variables of the agent, on its own machine.
        folder: As for ``AgentProcess``; it is this side's.
    """

    def __init__(self, runtime: Runtime, env: Mapping[str, str], folder: Path) -> None:
        self._is_ssh = bool(runtime.ssh)
        self._marker = f"ep-harness-{secrets.token_hex(8)}"
        call = (self._marker, dict(env), list(AGENT_ARGUMENTS), PARENT)
        self._greeting = repr(f"{_LAUNCHER}\nlaunch{call!r}\n").encode() + b"\n"
        super().__init__(_command(runtime), {launcher.FOLDER: str(folder)}, folder)

    def _arguments(self) -> Sequence[str]:
        # ssh hands its arguments to a shell; a command takes them as they are.
        return [shlex.quote(one) for one in _LAUNCHER_ARGUMENTS] if self._is_ssh else _LAUNCHER_ARGUMENTS

    def _greet(self) -> None:
        assert self._popen.stdin is not None  # noqa: S101 - a pipe was asked for
        self._popen.stdin.write(self._greeting)
        self._popen.stdin.flush()

    def _cause(self, code: int) -> str:
        printed, report, rest = self._last_printed.rpartition(f"\n{self._marker}")
        if report:
            self._last_printed = printed
            return one_line(rest)
        unreachable = self._is_ssh and code == CONNECTION_FAILED
        self.lost = code >= 0 and (unreachable or self._was_alive)  # a negative one: it was killed here
        return "the connection was lost" if self.lost else super()._cause(code)


def _command(runtime: Runtime) -> tuple[str, ...]:
    if runtime.command:
        return tuple(shlex.split(runtime.command))
    python = runtime.python or PYTHON
    if python.startswith("~/"):  # quoted as all of it, a shell would look for a folder of this name
        python = "." + python[1:]  # ssh begins in the home folder
    return (*SSH, str(runtime.ssh), shlex.quote(python))
