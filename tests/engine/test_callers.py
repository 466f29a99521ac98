"""Many may connect to a listener: the first that proves to be the agent is taken, whatever the others do."""

import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from harness.agent.frame import LONGEST_LINE
from harness.engine.processes import callers
from harness.engine.processes.callers import MOST_CALLERS, Proved, first_with_proof

Hear = Callable[..., "Future[Proved[str] | None]"]
Call = Callable[..., socket.socket]


def greeting_in(line: bytes) -> str | None:
    if line == b"wrong":
        raise ValueError(line)
    return "right" if line == b"the token" else None


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@pytest.fixture
def hear(listener: socket.socket) -> Iterator[Hear]:
    with ThreadPoolExecutor(1) as pool:
        yield lambda is_over=lambda: False: pool.submit(first_with_proof, listener, greeting_in, is_over)


@pytest.fixture
def call(listener: socket.socket) -> Iterator[Call]:
    address = listener.getsockname()
    with contextlib.ExitStack() as stack:
        yield lambda source="127.0.0.1": stack.enter_context(
            socket.create_connection(address, 60, (source, 0))
        )


@pytest.mark.parametrize("count", [0, 3, 300])
def test_an_agent_among_silent_strangers_is_found(
    listener: socket.socket, hear: Hear, call: Call, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "YOUNG_S", 0.01)
    address = listener.getsockname()
    heard = hear()
    strangers = [call() for _ in range(count)]
    agent = call()
    agent.sendall(b"a prompt\nthe token\n#b rest")
    found = heard.result(60)
    assert found is not None
    assert (found.greeting, found.rest) == ("right", b"#b rest")
    with found.connection as connection:
        connection.sendall(b"hello")
        assert agent.recv(100) == b"hello"
        for stranger in strangers:
            with contextlib.suppress(ConnectionError):
                assert stranger.recv(1) == b""
    with pytest.raises(OSError):  # noqa: PT011 - each system has its own
        socket.create_connection(address, 1).close()


@pytest.mark.parametrize("said", [b"wrong\n", b"x" * (LONGEST_LINE + 1), b"noise\n" * LONGEST_LINE])
def test_who_says_something_else_is_closed_at_once(hear: Hear, call: Call, said: bytes) -> None:
    heard = hear()
    liar, agent = call(), call()
    with contextlib.suppress(ConnectionError):
        liar.sendall(said)
        assert liar.recv(1) == b""
    assert not heard.done()
    for byte in b"the token\n":
        agent.sendall(bytes([byte]))
    found = heard.result(60)
    assert found is not None
    found.connection.close()


def test_who_says_nothing_is_closed_in_time(hear: Hear, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "PROOF_S", 0.05)
    ended: list[bool] = []
    heard = hear(lambda: bool(ended))
    assert call().recv(1) == b""
    ended.append(True)
    assert heard.result(60) is None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere loopback has one address")
def test_an_address_with_many_callers_makes_way(
    hear: Hear, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "YOUNG_S", 0.0)
    ended: list[bool] = []
    heard = hear(lambda: bool(ended))
    other = call("127.0.0.2")
    strangers = [call() for _ in range(2 * MOST_CALLERS)]
    assert strangers[0].recv(1) == b""
    other.sendall(b"the token\n")  # it is the oldest of all, and still there
    found = heard.result(60)
    assert found is not None
    found.connection.close()
