"""The agent's end of the stream: its location, and messages over it."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import queue
import threading
from collections.abc import Callable
from typing import Any

from harness.agent.frame import BINARY, FrameReader, framed, write_all
from harness.agent.hello import HELLO, HELLO_VARIABLE, PROBE, PROTOCOL, chosen_mode, greeting, read_hello

GRACE_S = 5.0  # seconds in which a busy agent may end by itself once the harness is gone
CONNECT_S = 30.0
PROBE_BEGIN = PROBE[: PROBE.index(b" ") + 1]
MOST_PARTS = 8  # lines that a channel makes of a probe: two of its bytes end a line somewhere
_END = object()


class Stream:
    """Messages to and from a harness. They are received in advance, in a separate thread.

    Args:
        reader: Source of bytes from the harness.
        write: Takes bytes to the harness; a lock keeps messages whole.
        mode: The encoding of messages until a binary frame comes, which shows that the channel supports it.
        grace_s: Seconds after the end of the stream in which this process must end, whatever it is doing.
    """

    TimeoutError = queue.Empty

    def __init__(
        self,
        reader: FrameReader,
        write: Callable[[bytes], Any],
        mode: str = BINARY,
        grace_s: float = GRACE_S,
    ) -> None:
        self._reader = reader
        self._write = write
        self._mode = mode
        self._grace_s = grace_s
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._sending = threading.Lock()
        self._finished = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, message: Any) -> None:
        """Send a message."""
        frame = framed(message, self._mode)
        with self._sending:
            self._write(frame)

    def receive(self, timeout: float | None = None) -> Any:
        """Return the next message; wait for it as many seconds as given, or for ever.

        Raises:
            EOFError: The stream has ended.
            TimeoutError: No message has come; the class is this one's.
        """
        message = self._messages.get(timeout is None or timeout > 0, timeout)
        if message is _END:
            self._messages.put(_END)
            raise EOFError("the harness is gone")
        return message

    def finish(self) -> None:
        """Let this process end in its own time."""
        self._finished.set()

    def _listen(self) -> None:
        try:
            while True:
                message = self._reader.message()
                if self._reader.mode == BINARY:
                    self._mode = BINARY
                self._messages.put(message)
        except (EOFError, OSError):
            pass
        except ValueError as error:
            with contextlib.suppress(OSError):
                os.write(2, b"ep-harness: from the harness came %s\n" % str(error).encode())
        self._messages.put(_END)
        if not self._finished.wait(self._grace_s):
            os._exit(1)  # it may be busy in a provider's code for ever


def open_stream() -> tuple[Stream, Callable[[], None]]:
    """Read the hello, greet the harness, and move the stream away from standard input and output.

    Returns the stream, and a function that closes it.

    Raises:
        SystemExit: There is no hello, or it requests something that this agent does not support.
    """
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)  # providers print there
    reader = FrameReader(lambda size: os.read(source, size))
    try:
        given = os.environ.pop(HELLO_VARIABLE, "")
        line, intact = (given.encode(), False) if given else first_lines(reader)
        values = read_hello(line.decode("utf-8", "replace").rstrip("\r"))
    except (EOFError, ValueError) as error:
        raise SystemExit("ep-harness: %s" % error) from None

    write: Callable[[bytes], Any] = functools.partial(write_all, functools.partial(os.write, sink))
    close: Callable[[], Any] = functools.partial(os.close, sink)
    if values.get("connect"):
        close()
        receive, write, close = _connected(values["connect"])
        reader = FrameReader(receive)
    if intact:
        write(PROBE + b"\n")
    answer = greeting(values, "python " + platform.python_version(), {})
    write(answer.encode("ascii") + b"\n")
    if PROTOCOL not in values.get("protocols", ()):
        raise SystemExit("ep-harness: the harness does not speak version %d of the protocol" % PROTOCOL)
    return Stream(reader, write, chosen_mode(values)), close


def first_lines(reader: FrameReader) -> tuple[bytes, bool]:
    """Return the line of the hello, and whether a probe came before it unchanged.

    Raises:
        EOFError: The stream ends before.
    """
    line = reader.line()
    if not line.startswith(PROBE_BEGIN):
        return line, False
    intact = line == PROBE
    for _ in range(MOST_PARTS):  # a channel may make several lines of it
        line = reader.line()
        if line.startswith(HELLO.encode()):
            break
    return line, intact and not line.endswith(b"\r")


def _connected(address: str) -> tuple[Callable[[int], bytes], Callable[[bytes], Any], Callable[[], Any]]:
    """Connect to the harness, and return functions that receive, send and end the connection.

    Raises:
        SystemExit: There is no connection, or the address is not a TCP address.
    """
    import socket  # takes milliseconds, and most processes answer on standard output

    scheme, _, place = address.partition("://")
    host, _, port = place.rstrip("/").rpartition(":")
    if scheme != "tcp" or not port.isdigit():
        raise SystemExit("ep-harness: this agent connects by tcp://HOST:PORT only, not to %r" % address)
    try:
        connection = socket.create_connection((host, int(port)), CONNECT_S)
    except OSError as error:
        raise SystemExit("ep-harness: no connection to %s: %s" % (address, error)) from None
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close() -> None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    return connection.recv, connection.sendall, close


def serve(main: Callable[[Stream], None]) -> None:
    """Open the stream, run an agent over it, and close it before the interpreter ends."""
    stream, close = open_stream()
    try:
        main(stream)
    except Exception as error:
        with contextlib.suppress(OSError, ValueError):
            text = "%s: %s" % (type(error).__name__, error)
            stream.send(("failed", text[:4000].encode("utf-8", "replace").decode("utf-8")))
        raise
    finally:
        stream.finish()
        close()  # the harness need not wait for the providers' exit handlers
