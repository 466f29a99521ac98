"""How a process ended, in words, and when it must; and a queue that starts its first process alone."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from harness.agent.launcher import exit_cause
from harness.agent.orphans import end_orphans, orphans_text
from harness.engine.processes.launch import launch_here
from harness.engine.processes.process import ENDED, AgentProcess
from harness.engine.tasks.configuration import Configuration
from harness.engine.tasks.task import Question, QuestionTask
from harness.engine.workers.queues import TaskQueue
from harness.plan.file_format import Timeouts
from harness.plan.target import Runtime
from tests.kit import FAKE_ENV, wait_for


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (0, ""),
        (3, "exit code 3"),
        (255, "exit code 255"),
        (-11, "SIGSEGV"),
        (-9, "SIGKILL"),
        (-200, "signal 200"),
        (0xC0000005, "0xC0000005: access violation"),
        (0x80000003, "0x80000003"),
    ],
)
def test_an_exit_code_has_a_name(code: int, cause: str) -> None:
    assert exit_cause(code) == cause


HARNESS = """
import pathlib, sys, threading
from harness.engine.processes.launch import launch_here
from harness.engine.processes.process import AgentProcess

def start():
    global process
    process = AgentProcess(launch_here([sys.executable], {}, pathlib.Path(sys.argv[1])))

thread = threading.Thread(target=start)
thread.start()
thread.join()
process.serve(print)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the end of the pipe tells")
def test_an_agent_that_hangs_with_the_gil_dies_with_the_harness(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    env = {**os.environ, **FAKE_ENV, "FAKE_FAULT": "stuck_in_import", "FAKE_MARKER": str(marker)}
    with subprocess.Popen([sys.executable, "-c", HARNESS, tmp_path], env=env) as harness:
        wait_for(lambda: marker.exists() and marker.read_text(encoding="utf-8") != "")
        agent = Path("/proc", marker.read_text(encoding="utf-8"))
        assert agent.exists()
        harness.kill()
    wait_for(lambda: not agent.exists() or ") Z " in (agent / "stat").read_text(encoding="utf-8"))


@pytest.mark.skipif(os.name != "posix", reason="kills by a POSIX signal")
def test_a_process_outlives_the_thread_that_asked_for_it_and_its_folder_does_not_outlive_it(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    started: queue.SimpleQueue[AgentProcess] = queue.SimpleQueue()
    enough = threading.Event()

    def start() -> None:
        started.put(AgentProcess(launch_here([sys.executable], FAKE_ENV, folder)))
        enough.wait(10.0)

    starter = threading.Thread(target=start)
    starter.start()
    process = started.get(timeout=60.0)
    messages: list[Any] = []
    serving = threading.Thread(target=process.serve, args=(messages.append,), daemon=True)
    serving.start()
    wait_for(lambda: messages == [("imported",)])
    enough.set()
    starter.join()
    time.sleep(0.1)
    assert messages == [("imported",)]
    (folder / "core").touch()
    (folder / "output.txt").write_text("last words", encoding="utf-8")
    os.kill(process.pid, signal.SIGTERM)
    wait_for(lambda: messages == [("imported",), ENDED])
    assert process.wait() == "SIGTERM"
    assert not folder.exists()
    assert process.printed() == "last words"
    serving.join(60.0)
    assert not serving.is_alive()


LEAVES = """
import os, subprocess
for _ in range(12):
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
if not os.fork():  # a daemon, which holds the pipe
    os.setsid()
    os.execvp("sleep", ["sleep", "1000"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show the variables of processes")
def test_what_a_process_leaves_behind_is_named_and_ended(tmp_path: Path) -> None:
    started = launch_here([sys.executable, "-c", LEAVES], {}, tmp_path)
    process = AgentProcess(started)
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=process.serve, args=(messages.put,), daemon=True).start()
    assert messages.get(timeout=60) is ENDED  # although the daemon holds the pipe
    assert process.wait() == ""
    assert process.left == ["sleep"] * 13
    assert end_orphans(started.owner) == []
    assert orphans_text(process.left[:1]) == "it left a process behind, which was ended: sleep"
    assert orphans_text(process.left).startswith("it left 13 processes behind, which were ended: sleep, ")
    assert orphans_text([]) == ""


def test_a_system_that_shows_no_variables_is_not_asked(tmp_path: Path) -> None:
    assert end_orphans("x", proc=str(tmp_path / "none")) == []


def test_no_message_passes_for_the_end() -> None:
    assert ENDED != ("ended",)


@pytest.mark.parametrize(
    ("alive", "starting", "queued", "wants"),
    [
        (0, 0, 0, False),
        (0, 0, 1, True),
        (1, 1, 5, False),
        (1, 0, 5, True),
        (2, 1, 1, False),
        (2, 1, 2, True),
        (3, 0, 5, False),
    ],
)
def test_when_a_queue_wants_another_process(alive: int, starting: int, queued: int, *, wants: bool) -> None:
    queue = TaskQueue("t", Configuration(runtime=Runtime()), Timeouts(), 3)
    queue.tasks.extend(QuestionTask(about=Question(suite="s", model="m")) for _ in range(queued))
    assert queue.wants_worker(alive, starting) is wants


@pytest.mark.parametrize(
    ("alive", "queued", "task_s", "wants"),
    [
        (0, 1, 0.0, True),
        (1, 1000, 0.0, False),  # no task has ended yet
        (1, 1000, 0.0005, False),
        (1, 1000, 0.002, True),
        (1, 31, 60.0, False),
        (1, 32, 60.0, True),
        (2, 1000, 60.0, False),
    ],
)
def test_a_second_process_starts_by_itself_where_much_work_is_left(
    alive: int, queued: int, task_s: float, *, wants: bool
) -> None:
    queue = TaskQueue("t", Configuration(runtime=Runtime()), Timeouts(), 2, automatic=True)
    queue.tasks.extend(QuestionTask(about=Question(suite="s", model="m")) for _ in range(queued))
    assert queue.wants_worker(alive, 0, task_s) is wants
