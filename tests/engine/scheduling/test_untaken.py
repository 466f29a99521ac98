"""Results that wait, to be taken or for an answer, take little memory; piled up events come at once."""

import gc
import threading
import time
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from harness.core.records.cell import Cell
from harness.core.records.verdict import Verdict
from harness.core.values.value import Tensor, tensor
from harness.engine.questions.open_questions import OpenQuestions
from harness.engine.steps.effects import outputs_digest
from harness.engine.tasks.events import Finished
from harness.engine.tasks.outcome import Ran
from harness.engine.tasks.task import CellTask, Question, Task
from harness.engine.workers.process_pool import ProcessPool
from harness.engine.workers.queues import Queues, TaskQueue
from tests.kit import placement_of, wait_for

if TYPE_CHECKING:
    from tests.engine.scheduling.conftest import Bench

IN_HAND = 4
MOST_UNTAKEN = 6
MOST_WAITING = 6
MODELS = tuple(f"{number:02}_m" for number in range(30))
PLACEMENT = placement_of({"Relu": 1})


@pytest.mark.parametrize("limit", ["MOST_UNTAKEN", "MOST_UNTAKEN_BYTES"])
def test_no_process_gets_tasks_until_some_are_taken(
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
        wait_for(lambda: len(bench.handed) >= MOST_UNTAKEN - 1)
        bench.wait_until_still()
        # One event is that the target is ready.
        assert MOST_UNTAKEN - 1 <= len(bench.handed) <= MOST_UNTAKEN + 2 * IN_HAND < len(MODELS)
        assert bench.verdicts(list(engine.events())) == {Verdict.PASS: len(MODELS)}


def test_events_that_wait_are_handed_out_together(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engine.engine.BATCH", 5)
    monkeypatch.setattr("harness.engine.engine.MOST_UNTAKEN", 12)
    bench.models(*MODELS)
    with bench.engine(bench.target("t")) as engine:
        batches = engine.batches()
        wait_for(lambda: len(bench.handed) >= 11)
        bench.wait_until_still()
        assert [len(next(batches)) for _ in range(2)] == [5, 5]


def test_many_bytes_are_not_handed_out_together(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    bench.models(*MODELS)
    monkeypatch.setattr("harness.engine.engine.MOST_UNTAKEN_BYTES", 1)
    with bench.engine(bench.target("t")) as engine:
        batches = list(engine.batches())
    assert max(sum(isinstance(event, Finished) for event in batch) for batch in batches) == 1
    assert bench.verdicts([event for batch in batches for event in batch]) == {Verdict.PASS: len(MODELS)}


@pytest.mark.usefixtures("goldens_unknown")
@pytest.mark.parametrize("limit", ["MOST_WAITING", "MOST_WAITING_BYTES"])
def test_no_process_gets_tasks_while_too_much_waits_for_goldens(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    start_workers, may_answer = ProcessPool.start_workers, threading.Event()

    def start_late(pool: ProcessPool, queue: TaskQueue) -> None:
        if may_answer.is_set() or not queue.is_reference:
            start_workers(pool, queue)

    monkeypatch.setattr(ProcessPool, "start_workers", start_late)
    bench.models(*MODELS, data=True)
    monkeypatch.setattr(f"harness.engine.questions.open_questions.{limit}", MOST_WAITING)
    with bench.engine(bench.target("t")) as engine:
        wait_for(lambda: bool(bench.handed))
        bench.wait_until_still()
        assert 0 < len(bench.handed) <= MOST_WAITING + 2 * IN_HAND < len(MODELS)
        may_answer.set()
        engine.submit(())  # has the dispatcher start processes
        assert bench.verdicts(list(engine.events())) == {Verdict.PASS: len(MODELS)}


def test_what_waits_is_counted_until_its_question_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question(suite="s", model="m")
    asked: list[Question] = []
    questions = OpenQuestions(SimpleNamespace(), SimpleNamespace(), asked.append)  # type: ignore[arg-type]
    task = CellTask(cell=Cell(suite="s", model="m", target="t", axes=()))
    ran = Ran(outputs=((("y", tensor(np.zeros(4, np.float32))),),), placement=PLACEMENT, timings_ms={})
    for limit, most in (("MOST_WAITING", 2), ("MOST_WAITING_BYTES", 32)):
        with monkeypatch.context() as patch:
            patch.setattr(f"harness.engine.questions.open_questions.{limit}", most)
            questions.hold(question, task, ran)
            assert not questions.is_behind
            questions.hold(question, task, ran)
            assert questions.is_behind
            assert questions.close(question) == [(task, ran)] * 2
            assert not questions.is_behind
    assert asked == [question] * 2


@pytest.mark.parametrize("gives_outputs", [False, True])
def test_results_wait_for_another_target_without_outputs(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch, *, gives_outputs: bool
) -> None:
    arrays: list[weakref.ref[Any]] = []
    digested: list[str] = []

    def watched(outcome: Ran) -> str:
        arrays.extend(
            weakref.ref(value.array) for _, value in outcome.outputs[0] if isinstance(value, Tensor)
        )
        digested.append(outputs_digest(outcome))
        return digested[-1]

    monkeypatch.setattr("harness.engine.steps.effect_step.outputs_digest", watched)
    bench.models("0_gate_in_run", "1_rounds", "2_rounds", "3_rounds")
    bench.open_gate("strict")
    targets = bench.target("plain"), bench.target("strict", options={"use_tf32": 0})
    with bench.engine(*targets, gives_outputs=gives_outputs) as engine:
        bench.wait_at_gate("plain")
        wait_for(lambda: len(digested) == 3)
        time.sleep(0.5)
        gc.collect()
        assert {array() is not None for array in arrays} == {gives_outputs}
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
    put, waiting = Queues.put, []

    def watched(queues: Queues, task: Task) -> None:
        if isinstance(task, CellTask) and task.first is not None:
            waiting.append(task.first)
        put(queues, task)

    monkeypatch.setattr(Queues, "put", watched)
    bench.models("0_error_in_run", "1_error_in_run", "2_m")
    events = bench.run(bench.target("t", retries=2))
    # Two retries of each, and one other draw of its inputs, which fails, too.
    assert [one.case for one in waiting] == [None] * 6
    failed = [event for event in events if isinstance(event, Finished) and event.record.retries]
    assert [event.case is not None for event in failed] == [True] * 2
