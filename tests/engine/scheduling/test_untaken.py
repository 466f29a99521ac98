"""Results that wait, to be taken or for an answer, take little memory; piled up events come at once."""

import threading
import time
from typing import TYPE_CHECKING

import pytest

from harness.core.verdict import Verdict
from harness.engine.events import Finished
from harness.engine.lane import Lane
from harness.engine.lanes import Lanes
from harness.engine.outcome import Ran
from harness.engine.process_pool import ProcessPool
from harness.engine.task import CellTask, Task

if TYPE_CHECKING:
    from tests.engine.scheduling.conftest import Bench

IN_HAND = 4
MOST_UNTAKEN = 6
MOST_WAITING = 6
MODELS = tuple(f"{number:02}_m" for number in range(30))


@pytest.mark.parametrize("limit", ["MOST_UNTAKEN", "MOST_UNTAKEN_BYTES"])
def test_nobody_gets_more_to_do_until_some_are_taken(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    bench.models(*MODELS)
    # Nothing waits for goldens from now on.
    sizes = {event.nbytes for event in bench.run(bench.target("t")) if isinstance(event, Finished)}
    (nbytes,) = sizes
    assert nbytes > 0
    bench.handed.clear()
    times = {"MOST_UNTAKEN": 1, "MOST_UNTAKEN_BYTES": nbytes}
    monkeypatch.setattr(f"harness.engine.engine.{limit}", MOST_UNTAKEN * times[limit])
    with bench.engine(bench.target("t")) as engine:
        bench.wait_until(lambda: engine._is_ahead and not bench.launched[-1].in_flight)
        handed = len(bench.handed)
        time.sleep(0.5)
        assert MOST_UNTAKEN <= engine._outbox.qsize() <= MOST_UNTAKEN + 2 * IN_HAND
        assert len(bench.handed) == handed < len(MODELS)
        assert bench.verdicts(list(engine.events())) == {Verdict.PASS: len(MODELS)}


def test_events_gather_only_where_there_are_few(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engine.engine.BATCH", 5)
    monkeypatch.setattr("harness.engine.engine.MOST_UNTAKEN", 12)
    monkeypatch.setattr("harness.engine.engine.LINGER_S", 30.0)
    bench.models(*MODELS)
    with bench.engine(bench.target("t")) as engine:
        batches = engine.batches()
        bench.wait_until(lambda: engine._is_ahead)
        started = time.monotonic()
        assert [len(next(batches)) for _ in range(2)] == [5, 5]
        assert time.monotonic() - started < 15.0
        monkeypatch.setattr("harness.engine.engine.LINGER_S", 0.0)
        assert sum(map(len, batches)) >= len(MODELS) - 10


def test_many_bytes_are_not_handed_out_together(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    bench.models(*MODELS)
    monkeypatch.setattr("harness.engine.engine.MOST_UNTAKEN_BYTES", 1)
    with bench.engine(bench.target("t")) as engine:
        batches = list(engine.batches())
    assert max(sum(isinstance(event, Finished) for event in batch) for batch in batches) == 1
    assert bench.verdicts([event for batch in batches for event in batch]) == {Verdict.PASS: len(MODELS)}


@pytest.mark.usefixtures("goldens_unknown")
@pytest.mark.parametrize("limit", ["MOST_WAITING", "MOST_WAITING_BYTES"])
def test_nobody_gets_more_to_do_while_too_much_waits_for_goldens(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    staff, may_answer = ProcessPool.staff, threading.Event()

    def staff_late(pool: ProcessPool, lane: Lane) -> None:
        if may_answer.is_set() or not lane.is_reference:
            staff(pool, lane)

    monkeypatch.setattr(ProcessPool, "staff", staff_late)
    bench.models(*MODELS, data=True)
    monkeypatch.setattr(f"harness.engine.cell_pipeline.{limit}", MOST_WAITING)
    with bench.engine(bench.target("t")) as engine:
        bench.wait_until(lambda: engine._pipeline.is_behind and not bench.launched[-1].in_flight)
        handed = len(bench.handed)
        time.sleep(0.5)
        waiting = [outcome for held in engine._pipeline._waiting.values() for _, outcome in held]
        assert len(bench.handed) == handed == len(waiting) < len(MODELS)
        assert engine._pipeline._held_bytes == sum(isinstance(one, Ran) and one.nbytes for one in waiting) > 0
        may_answer.set()
        engine.submit(())  # looks who needs a process
        assert bench.verdicts(list(engine.events())) == {Verdict.PASS: len(MODELS)}
        assert engine._pipeline._held == engine._pipeline._held_bytes == 0


@pytest.mark.parametrize("gives_outputs", [False, True])
def test_results_wait_for_another_target_without_outputs(bench: "Bench", *, gives_outputs: bool) -> None:
    bench.models("0_gate_in_run", "1_rounds", "2_rounds", "3_rounds")
    bench.open_gate("strict")
    targets = bench.target("plain"), bench.target("strict", options={"use_tf32": 0})
    with bench.engine(*targets, gives_outputs=gives_outputs) as engine:
        bench.wait_at_gate("plain")
        bench.wait_until(lambda: len(engine._pipeline._compared) == 3)
        waiting = [one for ones in engine._pipeline._compared.values() for one in ones]
        assert [bool(one.outcome.outputs) for one in waiting] == [gives_outputs] * 3
        bench.open_gate("plain")
        events = list(engine.events())
    assert [bool(event.outputs) for event in events if isinstance(event, Finished)] == [gives_outputs] * 8
    found = bench.records(events)
    for model in ("1_rounds", "2_rounds", "3_rounds"):
        effect = found[f"strict {model}"].effect
        assert effect is not None
        assert effect.seen


def test_failures_wait_for_another_try_without_their_inputs(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, waiting = Lanes.queue, []

    def watched(lanes: Lanes, task: Task) -> None:
        if isinstance(task, CellTask) and task.first is not None:
            waiting.append(task.first)
        queue(lanes, task)

    monkeypatch.setattr(Lanes, "queue", watched)
    bench.models("0_error_in_run", "1_error_in_run", "2_m")
    events = bench.run(bench.target("t", retries=2))
    assert [one.case for one in waiting] == [None] * 4
    failed = [event for event in events if isinstance(event, Finished) and event.record.retries]
    assert [event.case is not None for event in failed] == [True] * 2
