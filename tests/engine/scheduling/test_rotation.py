"""Which lanes go on and which pause."""

import itertools
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.verdict import Verdict
from harness.engine.job import Configuration, cpu_configuration
from harness.engine.lane import Lane
from harness.engine.question import Question
from harness.engine.rotation import TURN, Rotation
from harness.engine.task import QuestionTask
from harness.plan.file_format import Timeouts
from harness.plan.target import Runtime

if TYPE_CHECKING:
    from tests.engine.scheduling.conftest import Bench

HERE = cpu_configuration(Runtime())
ELSEWHERE = cpu_configuration(Runtime(command="ssh box"))
WORKERS: dict[Lane, list[Any]] = {}


def lane(
    name: str, done: float = 0.0, *, config: Configuration = HERE, busy: int = 1, **settings: Any
) -> Lane:
    """One with something to do, a process that is at work, and so much of it done."""
    made = Lane(name, config, Timeouts(), **settings)
    made.queue.append(QuestionTask(about=Question(suite="s", model="m")))
    made.expected_ms, made.done_ms = 100.0, 100.0 * done
    WORKERS[made] = [SimpleNamespace(in_flight=[1], is_busy=True) for _ in range(busy)]
    return made


def pausing(rotation: Rotation, lanes: list[Lane]) -> set[Lane]:
    return rotation.pausing([(one, WORKERS[one]) for one in lanes])


def names(lanes: set[Lane]) -> str:
    return "".join(sorted(one.name for one in lanes))


def test_those_that_have_got_furthest_pause() -> None:
    lanes = [lane("a", 0.5), lane("b", 0.1), lane("c", 0.9), lane("d", 0.4)]
    assert names(pausing(Rotation(2), lanes)) == "ac"
    assert names(pausing(Rotation(4), lanes)) == ""
    assert names(pausing(Rotation(1), [lane("e", 0.2), *lanes])) == "acde"


def test_a_lane_with_several_processes_takes_as_many_processors() -> None:
    lanes = [lane("a", 0.1, busy=3), lane("b", 0.2), lane("c", 0.3)]
    assert names(pausing(Rotation(3), lanes)) == "bc"
    assert names(pausing(Rotation(4), lanes)) == "c"


def test_a_turn_lasts_for_some_time_and_then_it_is_the_others() -> None:
    rotation = Rotation(1)
    first, second = lane("a"), lane("b")
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
    assert 4 < len(lasted) < 30, "shorter towards the end, so that nobody is left alone there"
    assert max(lasted[-3:]) < lasted[0] / 2


@pytest.mark.parametrize(
    "settings",
    [{"is_reference": True}, {"alone": True}, {"config": ELSEWHERE}],
    ids=["reference", "alone", "elsewhere"],
)
def test_who_shares_no_processors_neither_pauses_nor_makes_others_pause(settings: dict[str, Any]) -> None:
    assert names(pausing(Rotation(1), [lane("a", 0.9, **settings), lane("b", 0.1)])) == ""
    assert names(pausing(Rotation(1), [lane("a", 0.1, **settings), lane("b", 0.9)])) == ""


def test_where_nobody_knows_how_long_one_takes_all_go_on() -> None:
    lanes = [lane("a", 0.9), lane("b"), lane("c", 0.2)]
    lanes[1].expected_ms = 0.0
    assert names(pausing(Rotation(1), lanes)) == ""


def test_who_waits_for_an_accelerator_is_in_nobodys_way() -> None:
    lanes = [lane("a", 0.1), lane("b", 0.5), lane("c", 0.2)]
    WORKERS[lanes[0]][0].is_busy = False
    assert names(pausing(Rotation(1), lanes)) == "b"


def test_who_has_nothing_to_do_though_it_may_makes_nobody_wait() -> None:
    """It may wait for an answer for long, and others must not wait for it."""
    rotation = Rotation(1)
    waiting, working = lane("a", 0.1), lane("b", 0.9)
    WORKERS[waiting][0].in_flight.clear()
    assert names(pausing(rotation, [waiting, working])) == ""
    WORKERS[waiting][0].in_flight.append(1)
    assert names(pausing(rotation, [waiting, working])) == "b"
    WORKERS[working][0].in_flight.clear()
    assert names(pausing(rotation, [waiting, working])) == "b", "it pauses"
    WORKERS[waiting][0].in_flight.clear()
    assert names(pausing(rotation, [waiting, working])) == "", "nobody is at work, so nobody pauses"


def test_a_lane_without_a_queue_only_ends() -> None:
    ending = lane("a", 0.1)
    ending.queue.clear()
    assert names(pausing(Rotation(1), [ending, lane("b", 0.9)])) == ""


@pytest.mark.skipif(os.name != "posix", reason="the fake needs POSIX")
def test_all_get_their_answers_in_turn(bench: "Bench") -> None:
    """With processes that crash and are renewed meanwhile."""
    models = [f"{number:02}_m" for number in range(60)]
    bench.models(*models, "60_segv_in_run", "61_error_in_run")
    took_ms = {f"{target} {model}": 1.0 for target in "abc" for model in models}
    targets = [bench.target(name, device_lock=name, renew_after={"sessions": 25}) for name in "abc"]
    found = bench.run(*targets, processes=1, took_ms=took_ms)
    assert bench.verdicts(found) == {Verdict.PASS: 180, Verdict.CRASH: 3, Verdict.ERROR: 3}
