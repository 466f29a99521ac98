"""An agent sends as much about a job as the job asks for, and no flood takes memory, or time of others."""

import base64
import os
import queue
import sys
import threading
import time
import tracemalloc
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.frame import LARGEST_BINARY, LARGEST_JSON, MODES, FrameReader, NoFrameError
from harness.agent.hello import hello
from harness.engine.engine import those_waiting
from harness.engine.processes.message_budget import budget_of
from harness.engine.processes.messages import ProtocolError
from harness.engine.processes.process import (
    ENDED,
    MOST_MESSAGE_BYTES_WAITING,
    MOST_MESSAGES_WAITING,
    AgentProcess,
)
from harness.engine.processes.started import Started, start_process
from harness.engine.workers import worker
from harness.engine.workers.worker import Worker

PLAIN: dict[str, Any] = {"model": "m.onnx", "data_sets": [[]]}
REMOTE = {**PLAIN, "model": {"digest": "", "files": [["m.onnx", 250, ""], ["w.bin", 0, ""]]}}


@pytest.mark.parametrize(
    ("more", "create", "run"),
    [
        ({}, 10, 36),
        ({"data_sets": [[]] * 10}, 10, 72),
        ({"repeat": {"runs": 100, "sessions": 3, "bit_equal": False}}, 16, 636),
        ({"scenario_settings": {"count": 20, "budget_s": 1}}, 50, 116),
        ({"scenario_settings": {"rounds": 50}}, 118, 144),
        ({"scenario_settings": {"threads": 4, "runs": 25, "budget_s": 1}}, 10, 436),
        ({"scenario": "interleaved"}, 74, 100),
        ({"latency": {"warm_up": 10, "repeats": 100, "budget_s": 1}}, 10, 260),
        ({"latency": {"warm_up": 10, "repeats": 100, "budget_s": 1, "nodes": True}}, 16, 932),
        (
            {
                "latency": {"warm_up": 10, "repeats": 100, "budget_s": 1, "grid": {"n": [1, 2]}},
                "data_sets": [[]] * 10,
            },
            10,
            2312,
        ),
    ],
)
def test_a_job_may_begin_a_phase_as_often_as_it_can_ask_for(
    more: dict[str, Any], create: int, run: int
) -> None:
    budget = budget_of({**PLAIN, **more}, 100)
    for phase, count in (("create", create), ("run", run), ("teardown", create)):
        for _ in range(count):
            budget.enter(phase)
        with pytest.raises(ProtocolError, match=f"it began phase {phase} of one job more often"):
            budget.enter(phase)


def test_each_step_of_a_text_is_a_run() -> None:
    play = {"ends": list(range(1, 1001))}
    job = {**PLAIN, "generate": {"plays": [play, play], "new_tokens": 64}}
    assert budget_of(job, 100).phases["run"] >= 2 * (3 * 1001 + 64)


def test_each_piece_of_a_model_may_be_requested_twice() -> None:
    budget = budget_of(REMOTE, 100)
    for _ in range(2 * (2 + 2 + 2)):
        budget.need()
    with pytest.raises(ProtocolError, match="more pieces of a model than its files have"):
        budget.need()
    with pytest.raises(ProtocolError):
        budget_of(PLAIN, 100).need()  # the model is a path


def test_a_piece_is_read_when_its_turn_comes() -> None:
    """Those that an agent asks for and does not read take no memory."""
    with pytest.MonkeyPatch.context() as patch:
        read: list[tuple[str, int]] = []

        def piece(_: object, name: str, offset: int) -> bytes:
            read.append((name, offset))
            return b"content"

        patch.setattr(worker, "Case", SimpleNamespace)
        patch.setattr(worker, "piece", piece)
        queued: list[Any] = []
        asked = Worker(1, SimpleNamespace(pid=7, send=queued.append))  # type: ignore[arg-type]
        for offset in range(100):
            asked.send_piece(5, "m.onnx", offset, SimpleNamespace())
        assert read == []
        assert queued[3]() == ("model", 5, "m.onnx", 3, b"content")
        assert read == [("m.onnx", 3)]
    asked.send_piece(5, "m.onnx", 0, None)
    assert queued[-1]() == ("model", 5, "m.onnx", 0, None)


AGENT = """
import json, sys
sys.path.insert(0, FOLDER)
from harness.agent.frame import framed
hello = json.loads(sys.stdin.readline().partition(" ")[2])
greeting = {"protocol": 1, "token": hello["token"], "mode": "binary", "agent": "x", "declines": {}}
print("ep-agent", json.dumps(greeting), flush=True)
for message in MESSAGES:
    sys.stdout.buffer.write(framed(message))
    sys.stdout.buffer.flush()
"""


def agent(messages: str, folder: Path) -> tuple[AgentProcess, "queue.SimpleQueue[Any]"]:
    """A process that sends messages, which are an expression, and the queue that they come into."""
    program = AGENT.replace("FOLDER", repr(str(Path(__file__).parents[2]))).replace("MESSAGES", messages)
    token = "0123456789abcdef" * 2
    started = Started(
        popen=start_process([sys.executable, "-c", program], {}, folder),
        folder=folder,
        token=token,
        modes=MODES,
        preamble=hello(token).encode() + b"\n",
    )
    process, inbox = AgentProcess(started), queue.SimpleQueue[Any]()
    threading.Thread(target=process.serve, args=(inbox.put,), daemon=True).start()
    return process, inbox


@pytest.mark.parametrize(
    ("nbytes", "most"), [(10, MOST_MESSAGES_WAITING), (MOST_MESSAGE_BYTES_WAITING // 4, 4)]
)
def test_a_flood_waits_outside_until_messages_are_taken(nbytes: int, most: int, tmp_path: Path) -> None:
    process, inbox = agent(f'iter(lambda: ("phase", 7, bytes({nbytes})), 0)', tmp_path)
    for taken in (0, 1, 2):
        process.taken = taken * most
        deadline = time.monotonic() + 60
        while inbox.qsize() < (taken + 1) * most:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(0.1)
        assert inbox.qsize() == (taken + 1) * most
    process.kill()
    assert process.wait() == "SIGKILL" if os.name == "posix" else process.wait()


def test_an_agent_that_is_broken_says_so_once(tmp_path: Path) -> None:
    process, inbox = agent('[("failed", "no"), ("phase",), ("failed", "no"), ("x",)]', tmp_path)
    assert [inbox.get(timeout=60) for _ in range(2)] == [("phase",), ENDED]
    assert process.wait() == "it sent `failed`, and went on"


def test_limits_are_looked_at_between_messages_that_never_end() -> None:
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for number in range(3):
        inbox.put(number)
    taken: list[Any] = []
    for each in those_waiting(inbox, 1.0):
        taken.append(each)
        inbox.put(each)
    assert taken == [0, 1, 2]
    assert inbox.qsize() == 3


@pytest.mark.parametrize("sizes", [(LARGEST_JSON + 1, 0), (1, LARGEST_BINARY + 1)])
def test_a_frame_that_is_too_large_is_refused_before_it_is_read(sizes: tuple[int, int]) -> None:
    parts = [b"#b %d %d 00000000\n" % sizes]
    reader = FrameReader(lambda _: parts.pop())
    with pytest.raises(NoFrameError, match="too many"):
        reader.message()


@pytest.mark.parametrize("step", [1, 2, 4000])
def test_a_message_in_many_lines_takes_no_more_memory(step: int) -> None:
    content = b'["' + b"a" * 60_000 + b'"]'
    text = base64.b64encode(content)
    lines = b"".join(text[at : at + step] + b"\n" for at in range(0, len(text), step))
    stream = b"#l %d 0 %08x\n" % (len(content), zlib.crc32(content)) + lines
    reader = FrameReader(lambda _: stream)
    tracemalloc.start()
    assert reader.message()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * len(stream)
