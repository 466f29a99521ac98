"""One interpreter with the agent in it: start, talk, kill, and say how it ended.

execnet carries the agent and the messages. Its own process start leaves no room for an environment,
a working folder or a stderr file, all of which must be in place *before* the interpreter runs (a
loader path, a Vulkan driver), so the pipe is made here and handed to execnet's bootstrap.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import execnet
from execnet import gateway_bootstrap, gateway_io
from execnet.gateway_base import Popen2IO

from harness.agent import agent

ENDED = ("ended",)
"""The message that stands for the end of the process, delivered once, after everything it sent."""

_AGENT_SOURCE = Path(agent.__file__).read_text(encoding="utf-8")
_group = execnet.Group()
_group_lock = threading.Lock()


class AgentProcess:
    """A process that serves one configuration of one target.

    Args:
        command: The interpreter, such as ``("docker", "exec", "-i", "box", "python3")``.
        env: Environment variables on top of the harness's own, set before the interpreter starts.
        folder: An existing folder of its own: where it works and prints to ``output.txt``.

    Raises:
        OSError: The command cannot be started at all.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self._output = folder / "output.txt"
        self._gateway: Any = None
        self._channel: Any = None
        # Readable: the agent reads back what was printed. Appending: after truncation it starts at zero.
        with self._output.open("a+b") as stderr:
            self._popen = subprocess.Popen(  # noqa: S603 - an argument list, never a shell
                [*command, "-u", "-c", gateway_io.popen_bootstrapline],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **env},
                cwd=folder,
                # Ctrl-C belongs to the harness; a group of its own lets kill() reach the EP's helpers too.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, on this machine."""
        return self._popen.pid

    def open(self, config: dict[str, Any], deliver: Callable[[Any], None]) -> None:
        """Bring the agent to life. Blocks for as long as the interpreter needs to start.

        Args:
            config: What the agent calls its configuration.
            deliver: Called from another thread with each message, and at last with ``ENDED``.
        """
        try:
            spec = execnet.XSpec(f"popen//python={shlex.quote(sys.executable)}//execmodel=main_thread_only")
            io = _Pipe(self._popen)
            with _group_lock:
                _group.allocate_id(spec)
            self._gateway = gateway_bootstrap.bootstrap(io, spec)
            self._gateway.spec = spec
            with _group_lock:
                _group._register(self._gateway)  # noqa: SLF001 - what Group.makegateway does at its end
            self._channel = self._gateway.remote_exec(_AGENT_SOURCE)
            self._channel.send(config)
            self._channel.setcallback(deliver, endmarker=ENDED)
        except (OSError, EOFError, AssertionError, AttributeError):
            # A process that is gone, or that is no Python: its exit and its output tell more than the pipe.
            deliver(ENDED)

    def send(self, message: tuple[Any, ...]) -> None:
        """Hand over a message; one to a dead process is lost, and ``ENDED`` is on its way."""
        try:
            self._channel.send(message)
        except OSError:
            return

    def kill(self) -> None:
        """Kill the process and whatever it started, at once. Harmless on a dead one."""
        if self._popen.poll() is not None:
            return
        if os.name == "posix":
            try:
                os.killpg(self._popen.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
        else:
            self._popen.kill()

    def ended(self, grace_s: float = 5.0) -> str:
        """How it ended: ``SIGSEGV``, ``0xC0000005``, ``exit code 3``, or an empty string for a clean exit.

        A process whose agent has returned is told to exit, given ``grace_s`` seconds, then killed.
        """
        with contextlib.suppress(OSError, AttributeError):
            self._gateway.exit()
        try:
            code = self._popen.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._popen.wait()
        return exit_cause(code)

    def remote_error(self) -> str:
        """The last line of a Python error that ended the agent itself; empty where there was none."""
        try:
            self._channel.waitclose(0.1)
        except self._channel.RemoteError as error:
            return str(error).strip().rsplit("\n", 1)[-1]
        except (OSError, EOFError, AttributeError):
            return ""
        return ""

    def printed(self, limit: int = 16384) -> str:
        """The last ``limit`` bytes of what was printed since the agent last took it."""
        try:
            with self._output.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""


class _Pipe(gateway_io.Popen2IOMaster):
    """An execnet IO over a process that already runs."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self.popen = popen
        Popen2IO.__init__(self, popen.stdin, popen.stdout, execmodel=_group.execmodel)


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
