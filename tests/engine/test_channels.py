"""Channels between a harness and an agent: whole lines only, changed bytes, noise, sockets."""

import queue
import shlex
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.agent.frame import BINARY, LINE, MODES
from harness.agent.hello import hello
from harness.core.records.record import Record
from harness.core.records.verdict import Cause, Verdict
from harness.engine.processes.launch import launch
from harness.engine.processes.process import ENDED, AgentProcess
from harness.engine.processes.started import Started, start_process
from harness.engine.tasks.events import Event
from harness.plan.target import Runtime
from tests.kit import FAKE_ENV, fake_target, of_folder, records_of, run_matrix, write_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fake needs POSIX")

Run = Callable[..., list[Event]]

CUDA = "CUDAExecutionProvider"
PYTHON = shlex.quote(sys.executable)
FILTER = f"{PYTHON} {shlex.quote(str(Path(__file__).with_name('line_filter.py')))}"


def run_through(how: str, channel: str, tmp_path: Path) -> list[Record]:
    """Run three models, one of which kills its process, through a filter."""
    for name in ("1_fine", "2_segv_in_run", "3_fine"):
        write_model(tmp_path / "models" / f"{name}.onnx", "big" if name == "3_fine" else "")
    command = f"{FILTER} {how} {PYTHON}" if how else PYTHON
    target = fake_target(
        "far",
        runtime={"command": command, **({"channel": channel} if channel else {})},
        env={"EP_HARNESS_CACHE": str(tmp_path / "far")},
    )
    events = run_matrix(tmp_path, of_folder(target), processes=1)
    found = records_of(events)
    return sorted(found, key=lambda record: record.model)


# What the harness finds out where no channel is named is tested below, without a run.
@pytest.mark.parametrize(
    ("how", "channel"),
    [
        ("lines", "binary"),
        ("crlf", ""),
        ("seven", "line"),
        ("noise", ""),
        ("", "socket"),
        ("seven", "socket"),
    ],
)
def test_verdicts_are_the_same_through_any_channel(how: str, channel: str, tmp_path: Path) -> None:
    records = run_through(how, channel, tmp_path)
    assert [record.verdict for record in records] == [Verdict.PASS, Verdict.CRASH, Verdict.PASS]
    assert records[1].cause == "SIGSEGV"


def test_bytes_that_a_channel_changes_are_told(tmp_path: Path) -> None:
    records = run_through("seven", "binary", tmp_path)
    # The CPU EP over there is out of reach in the same way, so that no EP is blamed.
    assert {record.verdict for record in records} <= {Verdict.CRASH, Verdict.NO_GOLDEN}
    assert all("channel 'line' is for what changes bytes" in record.reason for record in records)


def test_a_channel_that_passes_nothing_on_is_told_in_time(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx")
    for channel in ("binary", "socket"):
        target = fake_target(
            "far",
            runtime={"command": "sh -c 'cat >/dev/null'", "channel": channel},
            timeouts_s={"start": 1.0},
        )
        events = run_matrix(tmp_path, of_folder(target))
        (record,) = (record for record in records_of(events))
        assert (record.verdict, record.cause) == (Verdict.UNAVAILABLE, Cause.IMPORT_FAILED)
        assert "no greeting of an agent in 1 s" in record.reason


@pytest.mark.parametrize(
    ("how", "mode"), [("lines", BINARY), ("noise", BINARY), ("crlf", LINE), ("seven", LINE)]
)
def test_a_probe_finds_out_what_a_channel_passes(how: str, mode: str, tmp_path: Path) -> None:
    served = Served(launch(Runtime(command=f"{FILTER} {how} {PYTHON}"), FAKE_ENV, tmp_path))
    assert served.receive() == ("imported",)
    assert served.process.mode == mode
    served.process.kill()
    assert served.receive() is ENDED
    served.process.wait()


class Served:
    """A process and its messages."""

    def __init__(self, started: Started) -> None:
        self.started = started
        self.process = AgentProcess(started)
        self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self.process.serve, args=(self.messages.put,), daemon=True).start()

    def receive(self) -> Any:
        return self.messages.get(timeout=60)


def test_only_what_has_the_token_may_connect(tmp_path: Path) -> None:
    started = launch(Runtime(command=PYTHON, channel="socket"), FAKE_ENV, tmp_path)
    assert started.listener is not None
    address = started.listener.getsockname()
    with socket.create_connection(address) as stranger, socket.create_connection(address) as liar:
        liar.sendall(b'ep-agent {"protocol": 1, "token": "0", "mode": "binary", "declines": {}}\n')
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        stranger.shutdown(socket.SHUT_WR)
        served = Served(started)
        assert served.receive() == ("imported",)
        for refused in (stranger, liar):
            refused.settimeout(10)
            assert refused.recv(100) == b""
    assert served.process.greeting is not None
    assert served.process.greeting.agent.startswith("python 3.")
    served.process.kill()
    assert served.receive() is ENDED
    served.process.wait()


GREETS = """
import json, sys
hello = json.loads(sys.stdin.readline().partition(" ")[2])
greeting = {"protocol": 1, "token": hello["token"], "mode": "binary", "agent": "x", "declines": {}}
print("ep-agent", json.dumps({**greeting, **CHANGED}), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"token": "0"}, "it greeted with another token than that of the hello"),
        ({"protocol": 2}, "it speaks version 2 of the agent protocol, and this harness 1"),
        ({"protocol": True}, "it speaks version True of the agent protocol, and this harness 1"),
        ({"mode": "telepathy"}, "it greeted with mode telepathy, which is none of binary, line"),
        ({"declines": {"make": 3}}, "its greeting has no reason in words for something that it declines"),
        ({"declines": []}, "its greeting has no reason in words for something that it declines"),
    ],
)
def test_a_wrong_greeting_ends_the_process(tmp_path: Path, changed: dict[str, Any], problem: str) -> None:
    program = GREETS.replace("CHANGED", repr(changed))
    token = "0123456789abcdef" * 2
    started = Started(
        popen=start_process([sys.executable, "-c", program], {}, tmp_path),
        folder=tmp_path,
        token=token,
        modes=MODES,
        preamble=hello(token).encode() + b"\n",
    )
    served = Served(started)
    assert served.receive() is ENDED
    assert served.process.wait() == problem
