"""The process of an agent: carries messages to and from it, ends it, and reports how it ended."""

import atexit
import contextlib
import os
import queue
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from harness.agent.frame import ChangedFrameError, NoFrameError, framed, pieces
from harness.agent.launcher import exit_cause, sign_of_life
from harness.agent.orphans import end_orphans
from harness.agent.posix import KILLED
from harness.agent.work import ProcessWork, process_work
from harness.core.text.errors import one_line
from harness.engine.processes.connection import Connection, Greeting, GreetingError
from harness.engine.processes.started import OUTPUT, Started
from harness.runtimes.process_group import has_group, kill_group, terminate_group

ENDED: tuple[Any, ...] = ("ended", object())
"""The message that stands for the end of the process, delivered once, after all its messages.

The object in it makes it different from anything that a process can send."""

UNREADABLE = "it sent what cannot be read"
GARBAGE = "something wrote into the stream of the agent's messages"
CHANGED = "a message did not arrive as the agent sent it; channel 'line' is for what changes bytes"
FAILED_TWICE = "it sent `failed`, and went on"
WENT_ON = "it closed the stream of its messages, and did not end"

CONNECTION_FAILED = 255
"""ssh's own exit code."""

TERMINATE_S = 5.0
"""Seconds in which a command on another machine may end what it started there.

``srun`` takes 0.5 s for its job. If it is killed at once, with its helper process, it leaves a job that keeps
the device.
"""

MOST_SIGNS = 1 << 21
"""Bytes of a launcher's output that are read for its last words: signs of life of some eighty hours."""

LONGEST_SIGN = 4096
"""Bytes of output that are searched for the latest sign of life, if nothing else is printed."""

_LOOK_S = 0.02
"""Seconds between two checks whether all processes of a command have ended."""

MOST_MESSAGES_WAITING = 512
"""Number of an agent's messages that may wait for the engine before the next one is read.

An agent that ends all jobs that it holds sends three for each.
"""

MOST_MESSAGE_BYTES_WAITING = 64 << 20
"""The same in bytes, not counting the message that exceeds it."""

_TOLD_STATUS = re.compile(r"^ep-harness agent: ended by 0x([0-9A-F]{8})\s*\Z", re.MULTILINE)
"""The last line of an agent for Windows: wine, and ssh, pass on eight bits of a status."""

_NEGATIVE_CODE = re.compile(r"exit code (-\d{1,10})")
"""A status of Windows as cmd.exe writes it."""

FROM_OUTSIDE = "SIGTERM"
"""How an agent ends that a person or a scheduler stops: no program sends this signal to itself."""

FAILED = "failed"
"""Name of the message of an agent that is broken itself."""

LEAVING = "leaving"
"""Name of the message in which an agent that was asked to end names the next phase of its end."""


class AgentProcess:
    """A process that serves one configuration of one target."""

    def __init__(self, started: Started) -> None:
        self.lost = False
        """Whether the connection was lost, which is no evidence about the model. Set by ``wait``."""
        self.error = ""
        """The error that ended the agent, in its own words; empty if it sent none."""
        self.leaving = ""
        """The last phase of its end that it named; empty if it named none."""
        self.killed = False
        """Whether the harness killed it, for whatever reason."""
        self.went_on = False
        """Whether it did not end in time. Set by ``wait``."""
        self.left: list[str] = []
        """Names of the processes that it left behind, and that were then ended. Set by ``wait``."""
        self._started = started
        self._popen = started.popen
        self._last_printed = ""
        self._connection = Connection(started)
        self._opened = threading.Event()
        """Set once the agent has greeted, or the stream has ended."""
        self._outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.taken = 0
        """Messages that the engine has taken; written by the engine's thread alone."""
        self._delivered = self._delivered_bytes = 0
        self._is_over = False
        self._problem = ""
        self._tells_life = False
        """Whether its launcher has sent a sign of life, where it can."""
        self.silence = ""
        """Why a place without signs of life is considered silent; empty if none is."""
        self._has_ended = threading.Event()
        self._stays_s: float | None = None
        """Seconds for which its stream stays open after it was asked to end."""
        self._terminated = False
        """Whether a command on another machine was asked to end."""
        self._sign = re.compile(rf"{re.escape(sign_of_life(started.marker))}([ .\d]*)\r?\n")
        """A sign of life, with the agent's work."""
        _running.add(self)

    @property
    def pid(self) -> int:
        """The process id, on this machine."""
        return self._popen.pid

    @property
    def greeting(self) -> Greeting | None:
        """The agent's greeting; None until it comes."""
        return self._connection.greeting

    @property
    def mode(self) -> str:
        """The encoding of messages to the agent; empty until it has greeted."""
        return self._connection.mode

    def serve(self, deliver: Callable[[Any], None]) -> None:
        """Start the agent, then carry messages to it. Blocks until the stream has ended.

        ``deliver`` is called with each message, from another thread, and finally with ``ENDED``.
        """
        receiver = threading.Thread(target=self._receive, args=(deliver,), daemon=True)
        receiver.start()
        with contextlib.suppress(OSError):  # it has ended, and ENDED follows
            self._connection.begin()
            self._opened.wait()
            if self.greeting is not None:
                self._send_all(self.mode)
        if self._stays_s is not None and self._started.marker:
            # The launcher treats a closed stream as the end of the harness, and gives the agent less time.
            self._has_ended.wait(self._stays_s)
        # Only this thread writes, so only it may close: otherwise another pipe could get the same number
        # meanwhile.
        self._connection.hang_up()
        receiver.join()
        self._connection.close()

    def _send_all(self, mode: str) -> None:
        while (messages := self._outgoing.get()) is not ENDED:
            made = (message() if callable(message) else message for message in messages)
            for piece in pieces(framed(message, mode) for message in made):
                self._connection.write(piece)

    def _receive(self, deliver: Callable[[Any], None]) -> None:
        """Deliver the agent's messages."""
        try:
            self._connection.open()
            self._opened.set()
            for message in self._connection.messages():
                if isinstance(message, tuple) and message[:1] == (FAILED,):
                    if self.error:
                        self._refuse(FAILED_TWICE)
                        break
                    self.error = one_line(" ".join(map(str, message[1:]))) or FAILED
                    continue
                if isinstance(message, tuple) and message[:1] == (LEAVING,):
                    self.leaving = one_line(message[-1], 20)
                    continue
                self._wait_for_room(self._connection.message_bytes)
                deliver(message)
        except (OSError, EOFError):
            pass  # the process has ended: exit code and output explain more than the stream
        except GreetingError as error:
            self._refuse(str(error))
        except NoFrameError:
            self._refuse(GARBAGE)
        except ChangedFrameError:
            self._refuse(CHANGED)
        except ValueError:
            self._refuse(UNREADABLE)
        self._opened.set()
        self._outgoing.put(ENDED)
        deliver(ENDED)

    def _wait_for_room(self, nbytes: int) -> None:
        """Wait until the engine has taken enough messages for one more to wait.

        So a flood fills the agent's pipe, not the harness's memory.
        """
        while not self._is_over:
            waiting = self._delivered - self.taken
            if waiting <= 0:
                self._delivered_bytes = 0
            if waiting < MOST_MESSAGES_WAITING and self._delivered_bytes < MOST_MESSAGE_BYTES_WAITING:
                break
            time.sleep(_LOOK_S)
        self._delivered += 1
        self._delivered_bytes += nbytes

    def send(self, *messages: Any) -> None:
        """Queue messages, the agent's configuration first.

        Never blocks, whatever the process does; a message to an ended process is lost. Several messages at
        once cost less: each call wakes the sending thread, which can take longer than sending. A function
        makes its message when its turn comes, so that a large message takes no memory while others wait.
        """
        self._outgoing.put(messages)

    def stop(self, limit_s: float) -> None:
        """Ask it to end; it has so many seconds after its stream has ended."""
        self._stays_s = limit_s
        self.send(("stop",))

    def kill(self) -> None:
        """Kill the process and everything that it started, at once. Harmless on an ended one.

        A command on another machine is asked first, and has ``TERMINATE_S`` for that.
        """
        self._is_over = True
        # Not poll(), which would reap an ended process and free its group's number: a child that it left can
        # hold its pipe open.
        if self._popen.returncode is not None:
            return
        self.killed = True
        if not (self._started.marker or self._started.asks_first):
            kill_group(self._popen)
        elif not self._terminated:
            self._terminated = True
            terminate_group(self._popen)
            timer = threading.Timer(TERMINATE_S, self._kill_now)
            timer.daemon = True
            timer.start()

    def _kill_now(self) -> None:
        if self._popen.returncode is None:
            kill_group(self._popen)

    def abort(self, problem: str) -> None:
        """Kill it because of a message that it sent; ``wait`` then returns ``problem`` as its end.

        ``problem`` replaces errors of the pipe, which came later.
        """
        self._problem = one_line(problem)
        self.kill()

    def lose(self, silence: str) -> None:
        """Kill it because its machine has fallen silent: the connection counts as lost."""
        self.silence = silence
        self.kill()

    def signs_of_life(self) -> int:
        """Return how many bytes came from the agent's machine; 0 before its launcher sends signs of life."""
        path = self._started.folder / OUTPUT
        with contextlib.suppress(OSError):
            if not self._tells_life and self._started.marker:
                with path.open("rb") as file:
                    self._tells_life = sign_of_life(self._started.marker).encode() in file.read(MOST_SIGNS)
            if self._tells_life:
                return path.stat().st_size
        return 0

    def work(self) -> ProcessWork | None:
        """Return its work so far, or up to the last sign of life from elsewhere; None if unknown."""
        if not self._started.marker:
            return process_work(self.pid)
        with contextlib.suppress(OSError), (self._started.folder / OUTPUT).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LONGEST_SIGN))
            signs = self._sign.findall(file.read().decode("utf-8", "replace"))
            figures = signs[-1].split() if signs else []
            with contextlib.suppress(ValueError):
                if len(figures) == len(ProcessWork._fields):
                    at_s, processor_s, waited_s, device_s = map(float, figures[:-1])
                    return ProcessWork(at_s, processor_s, waited_s, device_s, int(figures[-1]))
        return None

    def _refuse(self, problem: str) -> None:
        self._problem = self._problem or one_line(problem)
        self.kill()

    def wait(self, grace_s: float = 5.0) -> str:
        """Return how it ended: ``SIGSEGV``, ``0xC0000005``, ``exit code 3``, or an empty string for 0.

        A process whose agent has returned is told to exit, gets ``grace_s`` seconds, then is killed.
        Everything that it started is killed too, and its folder is deleted.
        """
        self._outgoing.put(ENDED)
        try:
            code = self._popen.wait(TERMINATE_S if self._terminated else grace_s)
        except subprocess.TimeoutExpired:
            if not self._terminated:
                self._problem = self._problem or WENT_ON
                self.went_on = not self.killed
            self.kill()
            code = self._popen.wait()
        self._has_ended.set()
        self._end_group()
        self._end_orphans()
        self._is_over = True
        self._last_printed = self.printed()
        shutil.rmtree(self._started.folder, ignore_errors=True)
        _running.discard(self)
        cause = self._cause(code)
        if self.silence:
            self.lost = True
            return "the connection was lost"
        if self._problem:  # it was killed for that, even if it had already ended by itself
            self.lost = False
        return self._problem or cause

    def _end_group(self) -> None:
        """End what a process that has ended left behind, such as the ``srun`` of a script."""
        if self._started.marker or self._started.asks_first:
            terminate_group(self._popen)
            deadline = time.monotonic() + TERMINATE_S
            while has_group(self._popen) and time.monotonic() < deadline:
                time.sleep(_LOOK_S)
        kill_group(self._popen)

    def _end_orphans(self) -> None:
        """End what it left behind in other sessions, such as a daemon of the provider."""
        if self._started.owner:
            left = end_orphans(self._started.owner)
            self.left = [] if self._started.has_helpers else left

    def _cause(self, code: int) -> str:
        """Return how it ended; a status of Windows that no exit code of this system holds is printed."""
        cause = self._reported_cause(code)
        if negative := _NEGATIVE_CODE.fullmatch(cause):
            return exit_cause(int(negative[1]) & 0xFFFFFFFF)
        told = _TOLD_STATUS.search(self._last_printed) if cause.startswith("exit code") else None
        return exit_cause(int(told[1], 16)) if told else cause

    def _reported_cause(self, code: int) -> str:
        """Return how it ended, from its exit code or from the launcher's report elsewhere."""
        marker = self._started.marker
        if not marker:
            killed = self._terminated and os.name == "posix"
            return exit_cause(-KILLED if killed else code)
        printed, report, rest = self._last_printed.rpartition(f"\n{marker}")
        how = one_line(rest.partition("\n")[0])
        if report:
            self._last_printed = printed
        if self._terminated and (not report or how == FROM_OUTSIDE):
            return exit_cause(-KILLED) if os.name == "posix" else exit_cause(code)
        if report and how != FROM_OUTSIDE:
            return how
        unreachable = self._started.by_ssh and code == CONNECTION_FAILED
        self.lost = unreachable or self.greeting is not None
        return "the connection was lost" if self.lost else exit_cause(code)

    def printed(self, limit: int = 16384) -> str:
        """Return the last ``limit`` bytes printed since the agent last took the output.

        Until the agent has greeted, the bytes of stdout precede it.
        """
        try:
            with (self._started.folder / OUTPUT).open("rb") as file:
                # Signs of life may stand between the words.
                size = limit if not self._started.marker else max(limit, MOST_SIGNS)
                file.seek(max(0, os.fstat(file.fileno()).st_size - size))
                text = file.read().decode("utf-8", "replace")
                if self._started.marker:
                    text = self._sign.sub("", text)[-limit:]
                return self._connection.noise + text
        except OSError:
            return self._last_printed


_running: set[AgentProcess] = set()
"""Processes whose end has not been waited for yet."""


@atexit.register
def _kill_running() -> None:
    for process in tuple(_running):
        process.kill()
