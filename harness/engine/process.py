"""One interpreter with the agent in it: start, talk, kill, and say how it ended.

execnet carries the agent and the messages. Its own process start leaves no room for an environment,
a working folder or a stderr file, all of which must be in place *before* the interpreter runs (a
loader path, a Vulkan driver), so the pipe is made here and handed to execnet's bootstrap.
"""

import atexit
import contextlib
import functools
import os
import queue
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import execnet
from execnet import gateway_bootstrap, gateway_io
from execnet.gateway_base import Message, Popen2IO, get_execmodel

from harness.agent.launcher import exit_cause
from harness.agent.message import pack, pieces, unpack
from harness.agent.system import PARENT
from harness.core.errors import one_line
from harness.engine.agent_source import agent_source

ENDED: tuple[Any, ...] = ("ended", object())
"""The message that stands for the end of the process, delivered once, after everything it sent.

The object in it makes it unlike anything that a process can send."""

UNREADABLE = "it sent what cannot be read"

AGENT_ARGUMENTS = ("-u", "-c", gateway_io.popen_bootstrapline)
"""What makes a Python wait for execnet's first words."""

_QUIET = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy's threads spin when it is imported, some 0.1 s of a processor in all, and nothing here needs them."""

READ_BYTES = 1 << 16
"""Bytes read from a pipe at once: as many as most pipes hold."""

_CHANNEL = 1  # the number that execnet gives to a gateway's first channel; there is no second one
_CODES = {
    Message.CHANNEL_DATA,
    Message.CHANNEL_CLOSE,
    Message.CHANNEL_CLOSE_ERROR,
    Message.CHANNEL_LAST_MESSAGE,
}


class AgentProcess:
    """A process that serves one configuration of one target.

    Args:
        command: The interpreter, such as ``("docker", "exec", "-i", "box", "python3")``.
        env: Environment variables on top of the harness's own, set before the interpreter starts.
        folder: An existing folder of its own: where it works and prints to ``output.txt``. It goes with the
            process, for a thousand crashes can leave a thousand core dumps.

    Raises:
        OSError: The command cannot be started at all.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self.lost = False
        """Whether it was out of reach at its end, which says nothing about what it was at. See ``ended``."""
        self._folder = folder
        self._output = folder / "output.txt"
        self._last_printed = ""
        self._pipe: _Pipe | None = None
        self._gateway: Any = None
        self._channel: Any = None
        self._outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._problem = ""
        self._error = ""
        # Readable: the agent reads back what was printed. Appending: after truncation it starts at zero.
        with self._output.open("a+b") as stderr:
            self._popen = _in_lasting_thread(
                lambda: subprocess.Popen(  # noqa: S603 - an argument list, never a shell
                    [*command, *self._arguments()],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env={**_QUIET, **os.environ, **env, PARENT: str(os.getpid())},
                    cwd=folder,
                    # Ctrl-C belongs to the harness; and so kill() reaches what the EP starts.
                    start_new_session=True,
                )
            )
        _running.add(self)

    @property
    def pid(self) -> int:
        """The process id, on this machine."""
        return self._popen.pid

    def serve(self, deliver: Callable[[Any], None]) -> None:
        """Bring the agent to life, then carry messages to it. Blocks until the process has ended.

        Args:
            deliver: Called with each message, from other threads, and at last with ``ENDED``.
        """
        try:
            self._greet()
            self._open(lambda message: self._hear(message, deliver))
        except AssertionError:
            # Whatever it is, it would go on talking or waiting for ever.
            self._refuse("it wrote on stdout before the agent was there")
            deliver(ENDED)
        except (OSError, EOFError, AttributeError):
            # A process that is gone, or that is no Python: its exit and its output tell more than the pipe.
            deliver(ENDED)
        else:
            with contextlib.suppress(OSError):  # it is gone, and ENDED is on its way
                while (messages := self._outgoing.get()) is not ENDED:
                    for piece in pieces(map(pack, messages)):
                        self._channel.send(piece)
        if self._gateway is None:  # else execnet's receiver closes both at their end
            for pipe in (self._popen.stdin, self._popen.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]

    def _hear(self, message: Any, deliver: Callable[[Any], None]) -> None:
        if message is ENDED:
            self._outgoing.put(ENDED)
            # Where execnet cannot read a message it closes the channel, with a bare text as the error.
            if any(isinstance(error, str) for error in self._channel._remoteerrors):  # noqa: SLF001
                self._refuse(UNREADABLE)
            deliver(ENDED)
        elif not self._problem:  # what comes after something that cannot be read is worth nothing
            try:
                said = unpack(message)
            except ValueError:
                self._refuse(UNREADABLE)
            else:
                for one in said:
                    deliver(one)

    def _arguments(self) -> Sequence[str]:
        """What follows the command."""
        return AGENT_ARGUMENTS

    def _greet(self) -> None:
        """What is to be said before execnet speaks."""

    def _open(self, hear: Callable[[Any], None]) -> None:
        # No execnet.Group: it would keep every gateway until the harness exits, the dead ones too.
        python = shlex.quote(sys.executable)
        spec = execnet.XSpec(f"popen//python={python}//execmodel=main_thread_only//id=agent")
        self._pipe = _Pipe(self._popen, self._refuse)
        self._gateway = gateway_bootstrap.bootstrap(self._pipe, spec)
        self._channel = self._gateway.remote_exec(agent_source())
        self._channel.setcallback(hear, endmarker=ENDED)

    def send(self, *messages: Any) -> None:
        """Queue messages, the agent's configuration first.

        Never blocks, whatever the process is busy with; a message to a dead process is lost. Several at once
        cost less: each call wakes the thread that carries them, which can take longer than to carry them.
        """
        self._outgoing.put(messages)

    def kill(self) -> None:
        """Kill the process and whatever it started, at once. Harmless on a dead one."""
        # Not poll(), which would reap a dead process and so give its group's number away: what it left
        # behind can hold its pipe open.
        if self._popen.returncode is None:
            self._kill_group()

    def break_off(self, problem: str) -> None:
        """Kill it for what it said; ``problem`` will stand as the way in which it ended.

        What the pipe itself was found to carry meanwhile came after that.
        """
        self._problem = one_line(problem)
        self.kill()

    def _refuse(self, problem: str) -> None:
        self._problem = self._problem or one_line(problem)
        self.kill()

    def ended(self, grace_s: float = 5.0) -> str:
        """How it ended: ``SIGSEGV``, ``0xC0000005``, ``exit code 3``, or an empty string for a clean exit.

        A process whose agent has returned is told to exit, given ``grace_s`` seconds, then killed. What it
        started and left behind is killed too, and its folder deleted.
        """
        if self._gateway is not None:
            with contextlib.suppress(OSError, ValueError):  # the pipe is closed
                self._gateway._send(Message.GATEWAY_TERMINATE)  # noqa: SLF001 - as Gateway.exit does
                self._popen.stdin.close()  # type: ignore[union-attr]
        try:
            code = self._popen.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._kill_group()
            code = self._popen.wait()
        else:
            self._kill_group()
        self._last_printed = self.printed()
        shutil.rmtree(self._folder, ignore_errors=True)
        _running.discard(self)
        self._error = self._error or self._remote_error()
        cause = self._cause(code)
        if self._problem:  # it is broken off for that, whether or not it had ended by itself meanwhile
            self.lost = False
        return self._problem or cause

    def _cause(self, code: int) -> str:
        """How it ended, from its exit code and from what it printed at last."""
        return exit_cause(code)

    @property
    def _was_alive(self) -> bool:
        """Whether it has ever said something."""
        return self._pipe is not None and self._pipe.reads > 0

    def _kill_group(self) -> None:
        if os.name == "posix":
            # PermissionError: macOS says so where only a dead process is left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        else:
            self._popen.kill()

    def remote_error(self) -> str:
        """The last line of a Python error that ended the agent itself; empty where there was none.

        Known once ``ended`` has returned.
        """
        return self._error

    def _remote_error(self) -> str:
        if self._channel is None:
            return ""
        try:
            self._channel.waitclose(0.1)
        except execnet.RemoteError as error:
            return one_line(str(error).strip().rsplit("\n", 1)[-1])
        except (OSError, EOFError, TypeError):  # TypeError: execnet raises the bare text of ``hear``
            return ""
        finally:
            self._channel._remoteerrors.clear()  # noqa: SLF001 - else execnet prints them on our stderr
        return ""

    def printed(self, limit: int = 16384) -> str:
        """The last ``limit`` bytes of what was printed since the agent last took it."""
        try:
            with self._output.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return self._last_printed


class _Pipe(gateway_io.Popen2IOMaster):
    """An execnet IO over a process that already runs, and that may write rubbish into it.

    execnet would take the first four bytes of a provider's words for a length and wait for gigabytes.
    """

    def __init__(
        self,
        popen: "subprocess.Popen[bytes]",
        refuse: Callable[[str], None],
    ) -> None:
        self.popen = popen
        self._refuse = refuse
        self._source = popen.stdout.fileno()  # type: ignore[union-attr]
        self._ahead = b""
        """What has been read and not handed out yet; up to ``_at`` it has."""
        self._at = 0
        self.reads = 0
        Popen2IO.__init__(self, popen.stdin, popen.stdout, execmodel=get_execmodel("thread"))

    def read(self, numbytes: int) -> bytes:
        """Read exactly so many bytes: after the one of the bootstrap by turns a header and its payload."""
        if len(self._ahead) - self._at < numbytes:
            self._fetch(numbytes)
        data = self._ahead[self._at : self._at + numbytes]
        self._at += numbytes
        if self.reads % 2:
            code, channel, length = struct.unpack("!bii", data)
            if code not in _CODES or channel != _CHANNEL or length < 0:
                self._refuse("something wrote into the pipe of the agent's messages")
                raise EOFError("garbage")
        self.reads += 1
        return data

    def _fetch(self, numbytes: int) -> None:
        """Have so many bytes ahead."""
        parts = [self._ahead[self._at :]]
        missing = numbytes - len(parts[0])
        while missing > 0:
            parts.append(os.read(self._source, READ_BYTES))
            if not parts[-1]:
                raise EOFError(f"expected {missing} bytes more")
            missing -= len(parts[-1])
        self._ahead, self._at = b"".join(parts), 0

    def write(self, data: bytes) -> None:
        """Write it, or do nothing where nobody is left to read it: the end of what it sent tells so.

        execnet answers a message that it cannot read, and would forget about it where the answer fails.
        """
        with contextlib.suppress(BrokenPipeError):
            super().write(data)


_running: set[AgentProcess] = set()
"""Processes that nobody has seen to end yet."""


@atexit.register
def _kill_running() -> None:
    for process in tuple(_running):
        process.kill()


def _in_lasting_thread(start: "Callable[[], subprocess.Popen[bytes]]") -> "subprocess.Popen[bytes]":
    """Start a process in a thread that lives as long as the harness.

    On Linux an agent has itself killed when the *thread* that started it ends, for the system knows no
    other way to have it end with the harness.
    """
    future: Future[subprocess.Popen[bytes]] = Future()
    _lasting_thread(os.getpid()).put((start, future))
    return future.result()


@functools.cache
def _lasting_thread(pid: int) -> "queue.SimpleQueue[Any]":
    """Pairs of a call and its future go in here, for a thread of process ``pid``: a fork inherits none."""
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def work() -> None:
        while True:
            call, future = calls.get()
            try:
                future.set_result(call())
            except Exception as error:  # noqa: BLE001 - raised again where somebody waits
                future.set_exception(error)
            del call, future  # they hold on to a process

    threading.Thread(target=work, name=f"ep-harness-starter-{pid}", daemon=True).start()
    return calls
