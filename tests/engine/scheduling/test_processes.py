"""Which process a cell runs in: spare ones take over, and none lasts for ever."""

import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Warned
from harness.engine.workers import queues, spares
from tests.kit import wait_for

if TYPE_CHECKING:
    from harness.engine.engine import Engine
    from tests.engine.scheduling.conftest import Bench

PASS, CRASH = Verdict.PASS, Verdict.CRASH

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake needs POSIX")


def test_after_a_crash_a_process_goes_on_that_was_there_before(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spares, "SPARE_AFTER_S", 0.0)
    # Queues with the same interpreter share one spare: one makes it, the other needs it.
    bench.models(*(f"{number}_m" for number in range(8)), folder="a")
    bench.models("0_gate_in_run", "1_segv_in_run", *(f"{number}_m" for number in range(2, 8)), folder="b")
    apart = [{"suite": "a", "target": "b"}, {"suite": "b", "target": "a"}]
    same = {"FAKE_MARKER": str(bench.home / "b")}
    with bench.engine(bench.target("a", env=same), bench.target("b"), exclude=apart) as engine:
        bench.wait_at_gate("b")
        wait_for(lambda: len(bench.launched) == 3 and bench.launched[2].imported)
        bench.open_gate("b")
        events = list(engine.events())
    assert bench.verdicts(events) == {PASS: 15, CRASH: 1}
    of_b = [bench.records(events)[f"b {number}_m"].process for number in range(2, 8)]
    assert {state.pid for state in of_b if state} == {bench.launched[2].process.pid}
    assert [worker.is_spare for worker in bench.launched][:3] == [False, False, True]
    assert len(bench.launched) <= 4, "one more spare for the one that was needed"
    assert all(bench.is_gone(worker) for worker in bench.launched)


def test_a_crash_makes_a_spare_worth_its_while_and_a_short_run_does_not(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spares, "SPARE_AFTER_S", 60.0)
    bench.models("00_segvonce_in_run", *(f"{number:02}_m" for number in range(1, 12)))
    (bench.home / "smooth.00_segvonce_in_run").write_bytes(b".")
    assert bench.verdicts(bench.run(bench.target("smooth"), bench.target("rough"))) == {PASS: 23, CRASH: 1}
    # One process for each, one in place of the crashed one, and then one that is never needed.
    assert [worker.is_spare for worker in bench.launched] == [False, False, False, True]


def test_a_queue_at_work_for_some_time_gets_a_spare(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spares, "SPARE_AFTER_S", 0.0)
    bench.models(*(f"{number}_m" for number in range(8)))
    assert bench.verdicts(bench.run(bench.target("t"))) == {PASS: 8}
    assert [worker.is_spare for worker in bench.launched] == [False, True]


@pytest.mark.parametrize(
    ("fault", "taken"),
    [
        pytest.param("seconddies_in_import", False, id="it dies"),
        pytest.param("secondhangs_in_import", False, id="it hangs"),
        pytest.param("secondhangs_in_import", True, id="it hangs and is taken"),
    ],
)
def test_a_spare_that_does_not_start_does_no_harm(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch, fault: str, *, taken: bool
) -> None:
    monkeypatch.setattr(spares, "SPARE_AFTER_S", 0.0)
    crash, gate = (1, 5) if taken else (6, 1)
    bench.models(
        "0_m", f"{crash}_segv_in_run", f"{gate}_gate_in_run", *(f"{n}_m" for n in (2, 3, 4, 7, 8, 9))
    )
    with bench.engine(bench.target("t", env={"FAKE_FAULT": fault})) as engine:
        if taken:
            bench.open_gate("t")
        starts = bench.home / "t.process"
        wait_for(lambda: starts.exists() and starts.stat().st_size >= 2)
        if "hang" in fault:
            assert bench.launched[1].deadline is not None
            bench.launched[1].deadline = time.monotonic()
            engine.submit(())  # looks at the clock
        if not taken:
            wait_for(lambda: bench.is_gone(bench.launched[1]))
            bench.open_gate("t")
        events = list(engine.events())
    assert bench.verdicts(events) == {PASS: 8, CRASH: 1}
    assert not any(isinstance(event, Warned) for event in events)
    # The first, the unused spare one, and one in place of the crashed one.
    assert [worker.is_spare for worker in bench.launched] == [False, True, False]


@pytest.mark.parametrize("workers", [None, 1])
def test_a_target_of_the_processor_gets_a_second_process_unless_workers_says_one(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch, workers: int | None
) -> None:
    monkeypatch.setattr(queues, "uses_processor", lambda *_: True)  # the fake's provider is CUDA
    monkeypatch.setattr(queues, "SECOND_FROM_TASKS", 2)
    monkeypatch.setattr(queues, "SECOND_FROM_S", 0.0)
    bench.models("0_gate_in_run", *(f"{number}_m" for number in range(1, 10)))
    given = {} if workers is None else {"workers": workers}
    with bench.engine(bench.target("t", **given)) as engine:
        bench.wait_at_gate("t")
        if workers is None:
            wait_for(lambda: len(bench.launched) == 2 and bench.launched[1].ready)
        bench.open_gate("t")
        events = list(engine.events())
    assert bench.verdicts(events) == {PASS: 10}
    pids = {record.process.pid for record in bench.records(events).values() if record.process}
    assert len(pids) == (1 if workers else 2)


def test_a_process_is_renewed_after_so_many_sessions(bench: "Bench") -> None:
    bench.models(*(f"{number}_m" for number in range(8)))
    found = bench.records(bench.run(bench.target("t", renew_after={"sessions": 3})))
    states = [found[f"t {number}_m"].process for number in range(8)]
    assert [state.session for state in states if state] == [1, 2, 3, 1, 2, 3, 1, 2]
    pids = [state.pid for state in states if state]
    assert [len(set(pids[first : first + 3])) for first in (0, 3, 6)] == [1, 1, 1]
    assert len(set(pids)) == 3
    if sys.platform == "linux":
        assert all(state and state.rss_mib and 1.0 < state.rss_mib < 1000.0 for state in states)


def test_a_process_is_renewed_once_it_has_grown(bench: "Bench") -> None:
    bench.models(*(f"{number:02}_m" for number in range(40)))
    leaky = bench.target("t", env={"FAKE_FAULT": "leak"}, renew_after={"growth_mib": 4})
    found = bench.records(bench.run(leaky))
    assert {record.verdict for record in found.values()} == {PASS}
    states = [record.process for record in found.values() if record.process]
    last = {state.pid: state.session for state in sorted(states, key=lambda state: state.session)}
    # A MiB a session; the first 16 do not count, and what is in flight it still does.
    assert max(last.values()) in range(20, 27), last
    assert sum(last.values()) == 40
    assert len(last) == 2


def test_processes_that_start_before_there_are_cells_serve_the_first_ones(bench: "Bench") -> None:
    bench.models("0_m", "1_m")
    others = [bench.target(name, runtime={"command": "no-such-command"}) for name in ("far", "away")]

    def warm_up(engine: "Engine") -> None:
        engine.warm_up()
        wait_for(lambda: len(bench.launched) == 2 and all(spare.imported for spare in bench.launched))

    with bench.engine(*others, *map(bench.target, "abc"), processes=2, prepare_for=warm_up) as engine:
        found = bench.records(list(engine.events()))
    assert {record.verdict for name, record in found.items() if name[0] in "abc" and name[1] == " "} == {PASS}
    started_early = {worker.process.pid for worker in bench.launched if worker.is_spare}
    serving = {name[0]: record.process.pid for name, record in found.items() if record.process}
    assert {serving["a"], serving["b"]} == started_early
    assert serving["c"] not in started_early


@pytest.mark.parametrize("fault", ["firstdies_in_import", "firsthangs_in_import"])
def test_one_that_does_not_start_ahead_does_no_harm(bench: "Bench", fault: str) -> None:
    bench.models("0_m", "1_m")

    def warm_up(engine: "Engine") -> None:
        engine.warm_up()
        wait_for(lambda: len(bench.launched) == 1)
        if "hangs" in fault:
            starts = bench.home / "t.process"
            # It has counted itself: killed before that, the next one would be the first and hang as well.
            wait_for(lambda: starts.exists() and starts.stat().st_size >= 1)
            wait_for(lambda: bench.launched[0].deadline is not None)
            bench.launched[0].deadline = time.monotonic()

    target = bench.target("t", env={"FAKE_FAULT": fault})
    with bench.engine(target, prepare_for=warm_up) as engine:
        events = list(engine.events())
    assert bench.verdicts(events) == {PASS: 2}
    assert not any(isinstance(event, Warned) for event in events)
    assert [worker.is_spare for worker in bench.launched] == [True, False]
