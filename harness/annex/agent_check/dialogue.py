"""One conversation with an agent, from its hello to its end, with control over every byte."""

import contextlib
import json
import os
import queue
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.agent.frame import MODES, ChangedFrameError, FrameReader, NoFrameError, framed, write_all
from harness.agent.hello import HELLO, HELLO_VARIABLE, PROTOCOL
from harness.agent.launcher import exit_cause
from harness.annex.agent_check.early_ends import FaultError, Word
from harness.core.text.errors import one_line
from harness.engine.processes.connection import Greeting, GreetingError, find_greeting
from harness.engine.processes.messages import Envelope, JobMessage, StartMessage
from harness.engine.processes.started import OUTPUT, start_process
from harness.runtimes.process_group import kill_group

END_S = 10.0
"""Seconds in which an agent must end: twice the protocol's limit for a busy agent."""

_END = object()


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a conversation: the content of the hello, and how it is sent.

    ``extra`` are further keys of it; ``raw`` replaces it.
    """

    protocols: tuple[int, ...] = (PROTOCOL,)
    modes: tuple[str, ...] = MODES
    extra: dict[str, Any] = {}
    by_variable: bool = False
    by_socket: bool = False
    raw: bytes | None = None


PLAIN_OPENING = Opening()


class Dialogue:
    """A process of an agent in an empty folder, and the messages to and from it.

    A message that is missing, late or invalid is a FaultError.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        limit_s: float,
        opening: Opening = PLAIN_OPENING,
    ) -> None:
        self.limit_s = limit_s
        self.opening = opening
        self.token = secrets.token_hex(16)
        self.first = b""
        """The line that contains the greeting."""
        self._folder = folder
        self.mode = opening.modes[0]
        """How messages are sent."""
        self._arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._listener = socket.create_server(("127.0.0.1", 0)) if opening.by_socket else None
        self._socket: socket.socket | None = None
        self._receiver: threading.Thread | None = None
        line = self._hello()
        variables = {**env, HELLO_VARIABLE: line} if opening.by_variable else env
        self._popen = start_process(command, variables, folder)
        if opening.raw is not None:
            self.send_bytes(opening.raw)
        elif not opening.by_variable:
            self.send_bytes(line.encode() + b"\n")

    def _hello(self) -> str:
        port = self._listener.getsockname()[1] if self._listener else 0
        values = {
            "protocols": list(self.opening.protocols),
            "token": self.token,
            "modes": list(self.opening.modes),
            "connect": f"tcp://127.0.0.1:{port}" if port else "",
            **self.opening.extra,
        }
        return f"{HELLO} {json.dumps(values)}"

    # --- opening ---

    def greet(self) -> Greeting:
        """Return the agent's greeting; from then on messages are received."""
        reader = FrameReader(self._accepted() if self._listener else self._read)
        self._receiver = threading.Thread(target=self._receive, args=(reader,), daemon=True)
        self._receiver.start()
        found = self._next("a greeting", "greeting")
        if isinstance(found, GreetingError):
            raise FaultError(_word(str(found)), str(found))
        assert isinstance(found, Greeting)  # noqa: S101 - the first that arrives
        self.mode = found.mode
        return found

    def _accepted(self) -> Any:
        assert self._listener is not None  # noqa: S101 - asked by the caller
        self._listener.settimeout(self.limit_s)
        try:
            self._socket, _ = self._listener.accept()
        except TimeoutError:
            raise FaultError("greeting", f"it did not connect in {self.limit_s:g} s") from None
        return self._socket.recv

    def _read(self, size: int) -> bytes:
        assert self._popen.stdout is not None  # noqa: S101 - a pipe was asked for
        return os.read(self._popen.stdout.fileno(), size)

    def _receive(self, reader: FrameReader) -> None:
        try:
            while (greeting := self._greeting_in(reader.line(1 << 20))) is None:
                continue
            self._arrived.put(greeting)
            while True:
                self._arrived.put(reader.message())
        except (EOFError, OSError):
            self._arrived.put(_END)
        except (ValueError, GreetingError) as error:
            self._arrived.put(error)

    def _greeting_in(self, line: bytes) -> Greeting | None:
        greeting = find_greeting(line, self.token, self.opening.modes)
        self.first = line
        return greeting

    # --- messages ---

    def send(self, *messages: Any) -> None:
        """Send messages in one write; if the agent has ended, this is noticed at the next answer."""
        self.send_bytes(b"".join(framed(message, self.mode) for message in messages))

    def send_bytes(self, data: bytes) -> None:
        """Send any bytes."""
        with contextlib.suppress(OSError, ValueError):
            if self._socket is not None:
                self._socket.sendall(data)
                return
            assert self._popen.stdin is not None  # noqa: S101 - a pipe was asked for
            write_all(self._popen.stdin.write, data)

    def receive(self, expected: str) -> StartMessage | JobMessage:
        """Return the next message, which must have a known form."""
        message = self._next(expected, "time")
        if isinstance(message, tuple) and message[:1] == ("failed",):
            raise FaultError("died", f"in place of {expected} it reported: {one_line(message[1:], 200)}")
        try:
            parsed: StartMessage | JobMessage = msgspec.convert((message,), Envelope).message
        except (msgspec.ValidationError, RecursionError) as error:
            raise FaultError("form", f"a message of no known form: {one_line(error, 200)}") from error
        return parsed

    def _next(self, expected: str, late: Word) -> Any:
        try:
            message = self._arrived.get(timeout=self.limit_s)
        except queue.Empty:
            text = f"{expected} did not come in {self.limit_s:g} s{self._printed()}"
            raise FaultError(late, text) from None
        if message is _END:
            self._arrived.put(_END)
            raise FaultError("died" if late == "time" else late, f"it ended before {expected}{self._how()}")
        if isinstance(message, NoFrameError | ChangedFrameError):
            raise FaultError("frame", one_line(message, 200))
        if isinstance(message, ValueError):
            raise FaultError("form", f"what cannot be read: {one_line(message, 200)}")
        return message

    # --- the end ---

    def hang_up(self) -> None:
        """End the stream to the agent."""
        for end in (self._popen.stdin, self._socket):
            with contextlib.suppress(OSError):
                if isinstance(end, socket.socket):
                    end.shutdown(socket.SHUT_WR)
                elif end is not None:
                    end.close()

    def ended(self, after: str) -> str:
        """Return how it ended: empty for exit code 0."""
        try:
            return exit_cause(self._popen.wait(END_S))
        except subprocess.TimeoutExpired:
            raise FaultError("end", f"it did not end in {END_S:g} s after {after}") from None

    def close(self) -> None:
        """End it in any case."""
        self.hang_up()
        if self._popen.returncode is None:  # else the number of its group may belong to other processes
            kill_group(self._popen)
        self._popen.wait()
        # The next process may get the number of this pipe, and a thread that still reads here would take its
        # greeting. A child that has left the process's group can hold the pipe open: then it stays open here.
        if self._receiver is not None:
            self._receiver.join(END_S)
            if self._receiver.is_alive():
                return
        for end in (self._popen.stdout, self._socket, self._listener):
            if end is not None:
                with contextlib.suppress(OSError):
                    end.close()

    def _how(self) -> str:
        deadline = time.monotonic() + 1.0
        while self._popen.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        code = self._popen.returncode
        how = "" if code is None else f" ({exit_cause(code) or 'exit code 0'})"
        return how + self._printed()

    def _printed(self) -> str:
        with contextlib.suppress(OSError):
            text = (self._folder / OUTPUT).read_text("utf-8", "replace").strip()
            return f"; it printed: {one_line(text.rsplit(chr(10), 1)[-1], 200)}" if text else ""
        return ""


def _word(text: str) -> Word:
    """Return the word for a wrong greeting."""
    words: tuple[Word, ...] = ("token", "version", "mode", "declines")
    return next((word for word in words if word in text), "greeting")
