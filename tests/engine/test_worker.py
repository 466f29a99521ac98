"""What a worker holds, and how long its limits last."""

from types import SimpleNamespace

import msgspec
import pytest

from harness.core.records.verdict import Phase
from harness.engine.processes.messages import After
from harness.engine.tasks.task import Question, QuestionTask
from harness.engine.workers.in_flight import FEWEST_IN_FLIGHT, MOST_IN_FLIGHT
from harness.engine.workers.watch import LOOKS
from harness.engine.workers.worker import WARM_UP_SESSIONS, Worker
from harness.plan.file_format import RenewAfter, Timeouts

AFTER = After(took_ms=2.0, teardown_ms=0.5, processor_ms=2.0)


def worker(in_flight: int) -> Worker:
    made = Worker(1, SimpleNamespace(pid=7))  # type: ignore[arg-type]
    made.in_flight.extend(
        QuestionTask(about=Question(suite="s", model=str(number))) for number in range(in_flight)
    )
    return made


def at_pace(in_flight: int, pace_s: float) -> Worker:
    """One that has been through with some tasks, each of which took so long."""
    made = worker(in_flight)
    for number in range(20):
        made.begin_next(number * pace_s)
        made.count(AFTER, (number + 1) * pace_s)
    return made


def room(busy: Worker) -> int:
    """How many tasks it takes."""
    busy.ready, busy.queue = True, SimpleNamespace(renew_after=RenewAfter(), takes_all=True)  # type: ignore[assignment]
    busy.process.send = lambda *_: None  # type: ignore[method-assign]
    while busy.has_room:
        busy.give(QuestionTask(about=Question(suite="s", model="m")), {})
    return len(busy.in_flight)


@pytest.mark.parametrize(
    ("pace_s", "tasks"),
    [
        (1e-9, MOST_IN_FLIGHT),
        (0.001, MOST_IN_FLIGHT),
        (0.02, 25),
        (0.5, FEWEST_IN_FLIGHT),
        (60.0, FEWEST_IN_FLIGHT),
    ],
)
def test_a_worker_holds_what_keeps_it_busy_for_some_time(pace_s: float, tasks: int) -> None:
    assert room(at_pace(0, pace_s)) == tasks


@pytest.mark.parametrize(("grown_mib", "tasks"), [(0.0, MOST_IN_FLIGHT), (300.0, FEWEST_IN_FLIGHT)])
def test_a_worker_that_has_grown_by_half_of_its_limit_holds_few(grown_mib: float, tasks: int) -> None:
    """What it holds it still does; compiled shaders of one network may take hundreds of MiB."""
    busy = worker(0)
    busy.queue = SimpleNamespace(renew_after=RenewAfter(growth_mib=512.0))  # type: ignore[assignment]
    for number in range(20):
        busy.begin_next(number * 0.001)
        rss_mib = 100.0 + grown_mib * (number > WARM_UP_SESSIONS)
        busy.count(msgspec.structs.replace(AFTER, rss_mib=rss_mib), (number + 1) * 0.001)
    assert not busy.retiring
    assert room(busy) == tasks


def test_a_worker_whose_pace_changes_holds_more_or_less() -> None:
    busy = at_pace(0, 0.001)
    for number in range(20):
        busy.begin_next(100.0 + number)
        busy.count(AFTER, 101.0 + number)
    assert room(busy) == FEWEST_IN_FLIGHT


def test_a_limit_holds_from_when_the_process_said_so() -> None:
    busy = worker(2)
    busy.enter(Phase.RUN, 100.0)
    assert (busy.phase, busy.deadline) == (Phase.RUN, 100.0 + Timeouts().run / LOOKS)
    busy.begin_next(200.0)
    assert (busy.phase, busy.deadline) == (Phase.CREATE, 200.0 + Timeouts().create / LOOKS)
