"""The stream to an agent: its standard input and output, or a socket to which it connects.

The agent's greeting opens it. Bytes before it, such as the words of a login script, are kept for an error
message if no greeting comes.
"""

import contextlib
import hmac
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.agent.frame import BINARY, MODES, FrameReader
from harness.agent.hello import GREETING, PROBE, PROTOCOL
from harness.core.text.errors import one_line
from harness.engine.processes.callers import first_with_proof
from harness.engine.processes.started import Started

MOST_NOISE = 1 << 20
"""Bytes that may come before the greeting."""

KEPT_NOISE = 16384
"""Number of the last of these bytes that are kept."""

HERE_MS = 500
"""Milliseconds without a byte after which the process is checked for its end."""

FAR_MS = 5000
"""The same for a command on another machine: its last bytes may still arrive."""

MOST_DECLINES = 1000
"""Largest number of things that an agent may decline; there are a few dozen."""

_BEGIN = f"{GREETING} {{".encode()


class GreetingError(Exception):
    """An agent's greeting does not allow a conversation; the text describes it."""


class Greeting(NamedTuple):
    """The agent's description of itself.

    Attributes:
        agent: Its name, for people.
        mode: The encoding of messages in both directions.
        declines: What it does not support -> why.
    """

    agent: str
    mode: str
    declines: dict[str, str]


class Connection:
    """The stream to the agent of one process."""

    def __init__(self, started: Started) -> None:
        self.greeting: Greeting | None = None
        """The agent's greeting; None until it comes."""
        self._passes_all_bytes = False
        """Whether a probe has arrived unchanged in both directions."""
        self._started = started
        self._popen = started.popen
        self._noise = b""
        self._noise_bytes = 0
        self._socket: socket.socket | None = None
        self._reader = FrameReader(self._read_pipe)
        self._poll: Any = None
        """Waits for the stream ``_polled``, where the system has that."""
        self._polled = -1

    @property
    def noise(self) -> str:
        """The end of the bytes that came in place of a greeting; empty after a greeting."""
        return "" if self.greeting is not None else self._noise.decode("utf-8", "replace")

    @property
    def mode(self) -> str:
        """The encoding of messages to the agent; it answers a binary one in the same way."""
        if self._passes_all_bytes:
            return BINARY
        return "" if self.greeting is None else self.greeting.mode

    def begin(self) -> None:
        """Send the bytes that make the process an agent.

        Raises:
            OSError: The process has ended.
        """
        self._write_pipe(self._started.preamble)

    def open(self) -> Greeting:
        """Wait for the agent's greeting.

        Raises:
            EOFError, OSError: The process ended before it greeted.
            GreetingError: Too many other bytes came, or the greeting does not match the hello.
        """
        listener = self._started.listener
        self.greeting = self._accepted(listener) if listener is not None else self._found(MOST_NOISE)
        return self.greeting

    @property
    def message_bytes(self) -> int:
        """Bytes of the latest message."""
        return self._reader.message_bytes

    def messages(self) -> Iterator[Any]:
        """Yield the agent's messages until the end of the stream; errors as ``FrameReader.message``."""
        while True:
            yield self._reader.message()

    def write(self, data: bytes) -> None:
        """Send bytes to the agent.

        Raises:
            OSError: The process has ended.
        """
        if self._socket is None:
            self._write_pipe(data)
        else:
            self._socket.sendall(data)

    def hang_up(self) -> None:
        """Send nothing more; this ends an agent."""
        with contextlib.suppress(OSError):
            if self._popen.stdin is not None:
                self._popen.stdin.close()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close everything; nothing reads or writes any more."""
        self.hang_up()
        for end in (self._popen.stdout, self._socket, self._started.listener):
            if end is not None:
                with contextlib.suppress(OSError):
                    end.close()

    # --- greeting ---

    def _found(self, limit: int) -> Greeting:
        seen = False
        while True:
            line = self._reader.line(limit)
            # A prompt may stand before the probe, but nothing comes between it and the greeting.
            intact, seen = seen and not line.endswith(b"\r"), line.endswith(PROBE)
            greeting = find_greeting(line, self._started.token, self._started.modes)
            if greeting is not None:
                self._passes_all_bytes = intact
                return greeting

    def _accepted(self, listener: socket.socket) -> Greeting:
        proved = first_with_proof(
            listener,
            lambda line: find_greeting(line, self._started.token, self._started.modes),
            lambda: has_exited(self._popen),
        )
        if proved is None:
            raise EOFError("it ended without connecting")
        self._socket = proved.connection
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader(self._read_socket, proved.rest)
        return proved.greeting

    # --- reading and writing ---

    def _read_pipe(self, size: int) -> bytes:
        assert self._popen.stdout is not None  # noqa: S101 - a pipe was asked for
        pipe = self._popen.stdout.fileno()
        data = os.read(pipe, size) if self._goes_on(pipe) else b""
        if self.greeting is None:
            self._noise = (self._noise + data)[-KEPT_NOISE:]
            self._noise_bytes += len(data)
            if self._noise_bytes > MOST_NOISE:
                raise GreetingError(f"it wrote {MOST_NOISE >> 10} KiB on stdout without an agent's greeting")
        return data

    def _read_socket(self, size: int) -> bytes:
        assert self._socket is not None  # noqa: S101 - it reads what has connected
        return self._socket.recv(size) if self._goes_on(self._socket.fileno()) else b""

    def _goes_on(self, stream: int) -> bool:
        """Wait until there is something to read; return False if the process has ended and nothing comes.

        A process that it left behind may hold the stream open. Windows cannot wait like this.
        """
        if sys.platform == "win32":
            return True
        if self._poll is None or self._polled != stream:
            self._poll, self._polled = select.poll(), stream
            self._poll.register(stream, select.POLLIN)
        patience_ms = FAR_MS if self._started.marker else HERE_MS
        while not self._poll.poll(patience_ms):
            if has_exited(self._popen) and not self._poll.poll(0):
                return False
        return True

    def _write_pipe(self, data: bytes) -> None:
        assert self._popen.stdin is not None  # noqa: S101 - a pipe was asked for
        rest = memoryview(data)
        while rest:
            rest = rest[self._popen.stdin.write(rest) :]


def find_greeting(line: bytes, token: str, modes: tuple[str, ...] = MODES) -> Greeting | None:
    """Return the greeting in a line of a channel; None if there is none.

    Other text may precede it in the line, such as a prompt. Token and modes are those of the hello.

    Raises:
        GreetingError: It does not match the hello.
    """
    at = line.find(_BEGIN)
    if at < 0:
        return None
    try:
        values = json.loads(line[at + len(_BEGIN) - 1 :])
    except (ValueError, RecursionError) as error:
        raise GreetingError(f"its greeting is no JSON: {one_line(error)}") from error
    return _checked(values, token, modes)


def _checked(values: dict[str, Any], token: str, modes: tuple[str, ...]) -> Greeting:
    version, given, mode = (values.get(key) for key in ("protocol", "token", "mode"))
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(errors="replace"), token.encode()):
        raise GreetingError("it greeted with another token than that of the hello")
    if version != PROTOCOL or isinstance(version, bool):
        raise GreetingError(
            f"it speaks version {one_line(version, 20)} of the agent protocol, and this harness {PROTOCOL}"
        )
    if mode not in modes:
        raise GreetingError(f"it greeted with mode {one_line(mode, 20)}, which is none of {', '.join(modes)}")
    declines = values.get("declines", {})
    if (
        not isinstance(declines, dict)
        or len(declines) > MOST_DECLINES
        or not all(isinstance(reason, str) and reason for reason in declines.values())
    ):
        raise GreetingError("its greeting has no reason in words for something that it declines")
    return Greeting(
        agent=one_line(values.get("agent", ""), 100),
        mode=str(mode),
        declines={name: one_line(reason) for name, reason in declines.items()},
    )


def has_exited(popen: "subprocess.Popen[bytes]") -> bool:
    """Return whether a process has ended, without reaping it: its group's number must stay reserved."""
    if sys.platform != "win32" and hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True
    return popen.poll() is not None
