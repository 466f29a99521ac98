"""One interpreter with the agent in it: start, talk, kill, and say how it ended.

execnet carries the agent and the messages. Its own process start leaves no room for an environment,
a working folder or a stderr file, all of which must be in place *before* the interpreter runs (a
loader path, a Vulkan driver), so the pipe is made here and handed to execnet's bootstrap.
"""

import contextlib
import os
import queue
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
        self._outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._problem = ""
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

    def serve(self, config: dict[str, Any], deliver: Callable[[Any], None]) -> None:
        """Bring the agent to life, then carry messages to it. Blocks until the process has ended.

        Args:
            config: What the agent calls its configuration.
            deliver: Called with each message, from other threads, and at last with ``ENDED``.
        """

        def hear(message: Any) -> None:
            if message == ENDED:
                self._outgoing.put(ENDED)
            deliver(message)

        try:
            self._open(config, hear)
        except AssertionError:
            # Whatever it is, it would go on talking or waiting for ever.
            self._problem = "it wrote on stdout before the agent was there"
            self.kill()
            deliver(ENDED)
        except (OSError, EOFError, AttributeError):
            # A process that is gone, or that is no Python: its exit and its output tell more than the pipe.
            deliver(ENDED)
        else:
            with contextlib.suppress(OSError):  # it is gone, and ENDED is on its way
                while (message := self._outgoing.get()) != ENDED:
                    self._channel.send(message)

    def _open(self, config: dict[str, Any], hear: Callable[[Any], None]) -> None:
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
        self._channel.setcallback(hear, endmarker=ENDED)

    def send(self, message: tuple[Any, ...]) -> None:
        """Queue a message. Never blocks, whatever the process is busy with; one to a dead process is lost."""
        self._outgoing.put(message)

    def kill(self) -> None:
        """Kill the process and whatever it started, at once. Harmless on a dead one."""
        # Not poll(), which would reap a dead process and so give its group's number away: what it left
        # behind can hold its pipe open.
        if self._popen.returncode is None:
            self._kill_group()

    def ended(self, grace_s: float = 5.0) -> str:
        """How it ended: ``SIGSEGV``, ``0xC0000005``, ``exit code 3``, or an empty string for a clean exit.

        A process whose agent has returned is told to exit, given ``grace_s`` seconds, then killed. What it
        started and left behind is killed too.
        """
        if self._gateway is not None:
            with contextlib.suppress(OSError, AttributeError):  # AttributeError: not in its group yet
                self._gateway.exit()
        try:
            code = self._popen.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._kill_group()
            code = self._popen.wait()
        else:
            self._kill_group()
        return self._problem or exit_cause(code)

    def _kill_group(self) -> None:
        if os.name == "posix":
            # PermissionError: macOS says so where only a dead process is left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        else:
            self._popen.kill()

    def remote_error(self) -> str:
        """The last line of a Python error that ended the agent itself; empty where there was none."""
        if self._channel is None:
            return ""
        try:
            self._channel.waitclose(0.1)
        except execnet.RemoteError as error:
            return str(error).strip().rsplit("\n", 1)[-1]
        except (OSError, EOFError):
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
