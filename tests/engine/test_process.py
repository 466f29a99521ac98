"""How a process ended, in words; and a lane that starts its first process alone."""

import pytest

from harness.engine.job import Configuration
from harness.engine.lane import Lane
from harness.engine.process import exit_cause
from harness.engine.worker import Task
from harness.plan.file_format import Timeouts
from harness.plan.target import Runtime


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (0, ""),
        (3, "exit code 3"),
        (255, "exit code 255"),
        (-11, "SIGSEGV"),
        (-9, "SIGKILL"),
        (-200, "signal 200"),
        (0xC0000005, "0xC0000005"),
        (0x80000003, "0x80000003"),
    ],
)
def test_an_exit_code_has_a_name(code: int, cause: str) -> None:
    assert exit_cause(code) == cause


class StubWorker:
    """As much of a worker as a lane looks at."""

    def __init__(self, *, ready: bool, stopping: bool = False, hands: int = 0) -> None:
        self.ready = ready
        self.stopping = stopping
        self.hands = [None] * hands


@pytest.mark.parametrize(
    ("workers", "queued", "wants"),
    [
        ([], 0, False),
        ([], 1, True),
        ([StubWorker(ready=False)], 5, False),
        ([StubWorker(ready=True)], 5, True),
        ([StubWorker(ready=True), StubWorker(ready=False)], 1, False),
        ([StubWorker(ready=True), StubWorker(ready=False)], 2, True),
        ([StubWorker(ready=True)] * 3, 5, False),
        ([StubWorker(ready=True, stopping=True)] * 3, 5, True),
    ],
)
def test_when_a_lane_wants_another_process(workers: list[StubWorker], queued: int, *, wants: bool) -> None:
    lane = Lane("t", Configuration(runtime=Runtime()), Timeouts(), 3, is_reference=False)
    lane.workers.extend(workers)  # type: ignore[arg-type]
    lane.queue.extend(Task(suite="s", model="m") for _ in range(queued))
    assert lane.wants_worker is wants


def test_only_a_lane_without_work_gives_a_process_away() -> None:
    lane = Lane("t", Configuration(runtime=Runtime()), Timeouts(), 3, is_reference=False)
    busy, idle = StubWorker(ready=True, hands=1), StubWorker(ready=True)
    lane.workers.extend([busy, idle])  # type: ignore[list-item]
    assert lane.idle_worker is idle  # type: ignore[comparison-overlap]
    lane.queue.append(Task(suite="s", model="m"))
    assert lane.idle_worker is None
