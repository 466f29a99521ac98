"""Which queues go on and which pause."""

import itertools
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.verdict import Verdict
from harness.engine.configuration import Configuration, cpu_configuration
from harness.engine.queues import TaskQueue
from harness.engine.rotation import TURN, Rotation
from harness.engine.task import Question, QuestionTask
from harness.plan.file_format import Timeouts
from harness.plan.target import Runtime

if TYPE_CHECKING:
    from tests.engine.scheduling.conftest import Bench

HERE = cpu_configuration(Runtime())
ELSEWHERE = cpu_configuration(Runtime(command="ssh box"))
WORKERS: dict[TaskQueue, list[Any]] = {}


def queue(
    name: str, done: float = 0.0, *, config: Configuration = HERE, busy: int = 1, **settings: Any
) -> TaskQueue:
    """One with something to do, a process that is at work, and so much of it done."""
    made = TaskQueue(name, config, Timeouts(), **settings)
    made.tasks.append(QuestionTask(about=Question(suite="s", model="m")))
    made.expected_ms, made.done_ms = 100.0, 100.0 * done
    WORKERS[made] = [SimpleNamespace(in_flight=[1], pace=SimpleNamespace(is_busy=True)) for _ in range(busy)]
    return made


def pausing(rotation: Rotation, queues: list[TaskQueue]) -> set[TaskQueue]:
    return rotation.pausing([(one, WORKERS[one]) for one in queues])


def names(queues: set[TaskQueue]) -> str:
    return "".join(sorted(one.name for one in queues))


def test_those_that_have_got_furthest_pause() -> None:
    queues = [queue("a", 0.5), queue("b", 0.1), queue("c", 0.9), queue("d", 0.4)]
    assert names(pausing(Rotation(2), queues)) == "ac"
    assert names(pausing(Rotation(4), queues)) == ""
    assert names(pausing(Rotation(1), [queue("e", 0.2), *queues])) == "acde"


def test_a_queue_with_several_processes_takes_as_many_processors() -> None:
    queues = [queue("a", 0.1, busy=3), queue("b", 0.2), queue("c", 0.3)]
    assert names(pausing(Rotation(3), queues)) == "bc"
    assert names(pausing(Rotation(4), queues)) == "c"


def test_a_turn_lasts_for_some_time_and_then_it_is_the_others() -> None:
    rotation = Rotation(1)
    first, second = queue("a"), queue("b")
    assert names(pausing(rotation, [first, second])) == "b"
    turns = ""
    for _ in range(200):
        (paused,) = pausing(rotation, [first, second])
        working = first if paused is second else second
        WORKERS[paused][0].in_flight.clear()  # it gets through what it has
        WORKERS[working][0].in_flight.append(1)
        working.done_ms += 1.0
        turns += working.name
        if working.done_ms == 100.0:
            break
    assert abs(first.done_ms - second.done_ms) <= 2.0
    lasted = [len(list(turn)) for _, turn in itertools.groupby(turns)]
    assert lasted[0] == pytest.approx(100 * (1 - 1 / (1 + TURN)), abs=1.0)
    assert 4 < len(lasted) < 30, "shorter towards the end, so that none is left alone there"
    assert max(lasted[-3:]) < lasted[0] / 2


@pytest.mark.parametrize(
    "settings",
    [{"is_reference": True}, {"alone": True}, {"config": ELSEWHERE}],
    ids=["reference", "alone", "elsewhere"],
)
def test_a_queue_without_local_processes_neither_pauses_nor_makes_others_pause(
    settings: dict[str, Any],
) -> None:
    assert names(pausing(Rotation(1), [queue("a", 0.9, **settings), queue("b", 0.1)])) == ""
    assert names(pausing(Rotation(1), [queue("a", 0.1, **settings), queue("b", 0.9)])) == ""


def test_if_a_duration_is_unknown_all_go_on() -> None:
    queues = [queue("a", 0.9), queue("b"), queue("c", 0.2)]
    queues[1].expected_ms = 0.0
    assert names(pausing(Rotation(1), queues)) == ""


def test_a_queue_that_waits_for_an_accelerator_does_not_count() -> None:
    queues = [queue("a", 0.1), queue("b", 0.5), queue("c", 0.2)]
    WORKERS[queues[0]][0].pace.is_busy = False
    assert names(pausing(Rotation(1), queues)) == "b"


def test_a_queue_without_tasks_in_flight_makes_no_other_wait() -> None:
    """It may wait for an answer for long, and others must not wait for it."""
    rotation = Rotation(1)
    waiting, working = queue("a", 0.1), queue("b", 0.9)
    WORKERS[waiting][0].in_flight.clear()
    assert names(pausing(rotation, [waiting, working])) == ""
    WORKERS[waiting][0].in_flight.append(1)
    assert names(pausing(rotation, [waiting, working])) == "b"
    WORKERS[working][0].in_flight.clear()
    assert names(pausing(rotation, [waiting, working])) == "b", "it pauses"
    WORKERS[waiting][0].in_flight.clear()
    assert names(pausing(rotation, [waiting, working])) == "", "none is at work, so none pauses"


def test_a_queue_without_a_queue_only_ends() -> None:
    ending = queue("a", 0.1)
    ending.tasks.clear()
    assert names(pausing(Rotation(1), [ending, queue("b", 0.9)])) == ""


@pytest.mark.skipif(os.name != "posix", reason="the fake needs POSIX")
def test_all_get_their_answers_in_turn(bench: "Bench") -> None:
    """With processes that crash and are renewed meanwhile."""
    models = [f"{number:02}_m" for number in range(60)]
    bench.models(*models, "60_segv_in_run", "61_error_in_run")
    took_ms = {f"{target} {model}": 1.0 for target in "abc" for model in models}
    targets = [bench.target(name, device_lock=name, renew_after={"sessions": 25}) for name in "abc"]
    found = bench.run(*targets, processes=1, took_ms=took_ms)
    assert bench.verdicts(found) == {Verdict.PASS: 180, Verdict.CRASH: 3, Verdict.ERROR: 3}
