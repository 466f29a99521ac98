"""The process of an agent: carry messages to and from it, end it, and report how it ended.

execnet carries the agent and the messages over the pipes that ``harness.engine.launch`` has made.
"""

import atexit
import contextlib
import os
import queue
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import execnet
from execnet import gateway_bootstrap, gateway_io
from execnet.gateway_base import Message, Popen2IO, get_execmodel

from harness.agent.launcher import exit_cause
from harness.agent.message import pack, pieces, unpack
from harness.core.errors import one_line
from harness.engine.launch import OUTPUT, Started, agent_source

ENDED: tuple[Any, ...] = ("ended", object())
"""The message that stands for the end of the process, delivered once, after everything that it sent.

The object in it makes it unlike anything that a process can send."""

UNREADABLE = "it sent what cannot be read"

CONNECTION_FAILED = 255
"""ssh's own exit code."""

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
    """A process that serves one configuration of one target."""

    def __init__(self, started: Started) -> None:
        self.lost = False
        """Whether the connection was lost, which is no evidence about the model. Set by ``wait``."""
        self.error = ""
        """The last line of a Python error that ended the agent; empty without one. Set by ``wait``."""
        self._started = started
        self._popen = started.popen
        self._last_printed = ""
        self._pipe: Pipe | None = None
        self._gateway: Any = None
        self._channel: Any = None
        self._outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._problem = ""
        _running.add(self)

    @property
    def pid(self) -> int:
        """The process id, on this machine."""
        return self._popen.pid

    def serve(self, deliver: Callable[[Any], None]) -> None:
        """Start the agent, then carry messages to it. Blocks until the process has ended.

        Args:
            deliver: Called with each message, from other threads, and at last with ``ENDED``.
        """
        try:
            self._open(lambda message: self._on_message(message, deliver))
        except AssertionError:
            # Whatever it is, it would go on writing or waiting for ever.
            self._refuse("it wrote on stdout before the agent was there")
            deliver(ENDED)
        except (OSError, EOFError, AttributeError):
            # The process has ended, or is no Python: exit code and output explain more than the pipe.
            deliver(ENDED)
        else:
            with contextlib.suppress(OSError):  # it has ended, and ENDED follows
                while (messages := self._outgoing.get()) is not ENDED:
                    for piece in pieces(map(pack, messages)):
                        self._channel.send(piece)
        if self._gateway is None:  # else execnet's receiver closes both at their end
            for pipe in (self._popen.stdin, self._popen.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]

    def _open(self, on_message: Callable[[Any], None]) -> None:
        if self._started.greeting:
            assert self._popen.stdin is not None  # noqa: S101 - a pipe was asked for
            self._popen.stdin.write(self._started.greeting)
            self._popen.stdin.flush()
        # No execnet.Group: it would keep every gateway until the harness exits, ended ones too.
        python = shlex.quote(sys.executable)
        spec = execnet.XSpec(f"popen//python={python}//execmodel=main_thread_only//id=agent")
        self._pipe = Pipe(self._popen, self._refuse)
        self._gateway = gateway_bootstrap.bootstrap(self._pipe, spec)
        self._channel = self._gateway.remote_exec(agent_source())
        self._channel.setcallback(on_message, endmarker=ENDED)

    def _on_message(self, message: Any, deliver: Callable[[Any], None]) -> None:
        if message is ENDED:
            self._outgoing.put(ENDED)
            # Where execnet cannot read a message it closes the channel, with a bare text as the error.
            if any(isinstance(error, str) for error in self._channel._remoteerrors):  # noqa: SLF001
                self._refuse(UNREADABLE)
            deliver(ENDED)
        elif not self._problem:  # nothing after an unreadable message can be trusted
            try:
                unpacked = unpack(message)
            except ValueError:
                self._refuse(UNREADABLE)
            else:
                for one in unpacked:
                    deliver(one)

    def send(self, *messages: Any) -> None:
        """Queue messages, the agent's configuration first.

        Never blocks, whatever the process is busy with; a message to an ended process is lost. Several at
        once cost less: each call wakes the thread that sends, which can take longer than sending.
        """
        self._outgoing.put(messages)

    def kill(self) -> None:
        """Kill the process and all that it started, at once. Harmless on an ended one."""
        # Not poll(), which would reap an ended process and free the number of its group: a child that it
        # left can hold its pipe open.
        if self._popen.returncode is None:
            self._kill_group()

    def abort(self, problem: str) -> None:
        """Kill it for a message that it sent; ``wait`` returns ``problem`` as the way in which it ended.

        ``problem`` replaces what was found on the pipe meanwhile, which came later.
        """
        self._problem = one_line(problem)
        self.kill()

    def _refuse(self, problem: str) -> None:
        self._problem = self._problem or one_line(problem)
        self.kill()

    def wait(self, grace_s: float = 5.0) -> str:
        """Return how it ended: ``SIGSEGV``, ``0xC0000005``, ``exit code 3``, or an empty string for 0.

        A process whose agent has returned is told to exit, given ``grace_s`` seconds, then killed. All that
        it started is killed too, and its folder deleted.
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
        shutil.rmtree(self._started.folder, ignore_errors=True)
        _running.discard(self)
        self.error = self.error or self._remote_error()
        cause = self._cause(code)
        if self._problem:  # it was killed for that, even if it had ended by itself meanwhile
            self.lost = False
        return self._problem or cause

    def _cause(self, code: int) -> str:
        """Return how it ended, from its exit code or from the report of the launcher elsewhere."""
        marker = self._started.marker
        if not marker:
            return exit_cause(code)
        printed, report, rest = self._last_printed.rpartition(f"\n{marker}")
        if report:
            self._last_printed = printed
            return one_line(rest)
        unreachable = self._started.by_ssh and code == CONNECTION_FAILED
        has_sent = self._pipe is not None and self._pipe.reads > 0
        self.lost = code >= 0 and (unreachable or has_sent)  # negative: it was killed here
        return "the connection was lost" if self.lost else exit_cause(code)

    def _kill_group(self) -> None:
        if os.name == "posix":
            # PermissionError: raised by macOS if only an ended process is left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        else:
            self._popen.kill()

    def _remote_error(self) -> str:
        if self._channel is None:
            return ""
        try:
            self._channel.waitclose(0.1)
        except execnet.RemoteError as error:
            return one_line(str(error).strip().rsplit("\n", 1)[-1])
        except (OSError, EOFError, TypeError):  # TypeError: execnet raises the bare text of ``_on_message``
            return ""
        finally:
            self._channel._remoteerrors.clear()  # noqa: SLF001 - else execnet prints them on our stderr
        return ""

    def printed(self, limit: int = 16384) -> str:
        """Return the last ``limit`` bytes of what was printed since the agent last took it."""
        try:
            with (self._started.folder / OUTPUT).open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return self._last_printed


class Pipe(gateway_io.Popen2IOMaster):
    """An execnet IO over a process that already runs, and into which an EP may write.

    execnet would take the first four bytes of an EP's text for a length and wait for gigabytes.
    """

    def __init__(self, popen: "subprocess.Popen[bytes]", refuse: Callable[[str], None]) -> None:
        self.popen = popen
        self.reads = 0
        self._refuse = refuse
        self._source = popen.stdout.fileno()  # type: ignore[union-attr]
        self._ahead = b""
        """Bytes read from the pipe; those from ``_at`` on are still to be returned."""
        self._at = 0
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
        parts = [self._ahead[self._at :]]
        missing = numbytes - len(parts[0])
        while missing > 0:
            parts.append(os.read(self._source, READ_BYTES))
            if not parts[-1]:
                raise EOFError(f"expected {missing} bytes more")
            missing -= len(parts[-1])
        self._ahead, self._at = b"".join(parts), 0

    def write(self, data: bytes) -> None:
        """Write the data, or do nothing if the process has ended: ``ENDED`` reports that.

        execnet answers a message that it cannot read, and would drop the error if the answer fails.
        """
        with contextlib.suppress(BrokenPipeError):
            super().write(data)


_running: set[AgentProcess] = set()
"""Processes whose end has not been waited for yet."""


@atexit.register
def _kill_running() -> None:
    for process in tuple(_running):
        process.kill()
