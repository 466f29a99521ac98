"""Callers of a listener on loopback: accepts the first that proves to be the agent, and closes all others.

Every program of the machine can connect. So callers are heard side by side, and each has little time and
memory. There are few at once; where more come, those of the address with the most make way, the oldest first.
"""

import collections
import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from harness.agent.frame import LONGEST_LINE

_LOOK_S = 0.2
"""Seconds between two checks whether the process that should call has ended."""

PROOF_S = 10.0
"""Seconds in which a caller must greet."""

MOST_CALLERS = 64
"""Largest number of callers at once. On macOS a process has 256 descriptors."""

YOUNG_S = 1.0
"""Seconds for which a caller is not closed in favour of the next one: an agent greets when it connects."""

_Greeting = TypeVar("_Greeting")


class Proved(NamedTuple, Generic[_Greeting]):
    """The caller that is the agent: its connection, its greeting, and the bytes that followed."""

    connection: socket.socket
    greeting: _Greeting
    rest: bytes


def first_with_proof(
    listener: socket.socket,
    greeting_in: Callable[[bytes], _Greeting | None],
    is_over: Callable[[], bool],
) -> Proved[_Greeting] | None:
    """Return the first caller whose lines contain a greeting; close the listener and all others.

    Args:
        listener: Accepts connections.
        greeting_in: Returns the greeting in a line; None for another line; an exception closes the caller.
        is_over: Whether no further caller can come; then the result is None.
    """
    callers = _Callers(listener)
    try:
        look_at = time.monotonic() + _LOOK_S
        while True:
            for caller in callers.ready(look_at - time.monotonic()):
                try:
                    proved = _heard(caller, greeting_in)
                except Exception:  # noqa: BLE001 - it does not have the token, or is gone
                    callers.drop(caller)
                    continue
                if proved is not None:
                    callers.leave_out(caller)
                    caller.connection.setblocking(True)  # noqa: FBT003 - the standard library's
                    return proved
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + _LOOK_S
                if is_over():
                    return None
    finally:
        callers.close()


class _Caller:
    def __init__(self, connection: socket.socket, address: str) -> None:
        self.connection = connection
        self.address = address
        self.came = time.monotonic()
        self.said = b""
        """The bytes read so far, without lines that hold no greeting."""
        self.nbytes = 0

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.came


class _Callers:
    """The open connections."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._listener.setblocking(False)  # noqa: FBT003 - the standard library's
        self._selector = selectors.DefaultSelector()
        self._all: dict[socket.socket, _Caller] = {}
        self._takes_more = False

    def ready(self, limit_s: float) -> list[_Caller]:
        """Return callers that sent something or are gone; accept the next one, and drop late ones."""
        self._open_or_shut()
        ready = {key.fileobj for key, _ in self._selector.select(max(0.0, limit_s))}
        for caller in [each for each in self._all.values() if each.age_s > PROOF_S]:
            self.drop(caller)
        if self._listener in ready:
            self._take()
        return [caller for connection, caller in self._all.items() if connection in ready]

    def _open_or_shut(self) -> None:
        """Watch the listener if there is room; else new callers wait in the system's queue."""
        has_room = len(self._all) < MOST_CALLERS or self._next_to_go().age_s > YOUNG_S
        if has_room and not self._takes_more:
            self._selector.register(self._listener, selectors.EVENT_READ)
        elif self._takes_more and not has_room:
            self._selector.unregister(self._listener)
        self._takes_more = has_room

    def _take(self) -> None:
        if len(self._all) >= MOST_CALLERS:
            self.drop(self._next_to_go())
        with contextlib.suppress(OSError):  # it is gone already
            connection, (address, *_) = self._listener.accept()
            connection.setblocking(False)  # noqa: FBT003 - the standard library's
            self._all[connection] = _Caller(connection, str(address))
            self._selector.register(connection, selectors.EVENT_READ)

    def _next_to_go(self) -> _Caller:
        """Return the oldest caller of the address that has the most."""
        counts = collections.Counter(each.address for each in self._all.values())
        address, _ = counts.most_common(1)[0]
        return min(
            (each for each in self._all.values() if each.address == address), key=lambda each: each.came
        )

    def leave_out(self, caller: _Caller) -> None:
        """Stop watching a caller."""
        self._selector.unregister(caller.connection)
        del self._all[caller.connection]

    def drop(self, caller: _Caller) -> None:
        """Stop watching a caller, and close its connection."""
        self.leave_out(caller)
        caller.connection.close()

    def close(self) -> None:
        """Close the listener and all connections."""
        for caller in tuple(self._all.values()):
            self.drop(caller)
        self._selector.close()
        self._listener.close()


def _heard(caller: _Caller, greeting_in: Callable[[bytes], _Greeting | None]) -> Proved[_Greeting] | None:
    """Read what a caller sent; return the caller if it proves to be the agent.

    Raises:
        EOFError, OSError, ValueError: It cannot be the agent.
    """
    data = caller.connection.recv(LONGEST_LINE)
    if not data:
        raise EOFError("it is gone")
    caller.said += data
    caller.nbytes += len(data)
    while (end := caller.said.find(b"\n")) >= 0:
        line, caller.said = caller.said[:end], caller.said[end + 1 :]
        greeting = greeting_in(line)
        if greeting is not None:
            return Proved(caller.connection, greeting, caller.said)
    if caller.nbytes > LONGEST_LINE:
        raise ValueError("too much without a greeting")
    return None
