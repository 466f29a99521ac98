"""What runs first, and how results come together."""

import os
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.records.record import Record, decode_record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UncontainedError
from harness.corpus.load_case import load_case
from harness.engine.measuring.cell_record import record_of
from harness.engine.prepare import prepare
from harness.run.run_folder import RunFolder
from tests.kit import wait_for

if TYPE_CHECKING:
    from tests.engine.scheduling.conftest import Bench

PASS = Verdict.PASS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake needs POSIX")


def test_the_longest_queue_goes_first(bench: "Bench") -> None:
    bench.models("0_m", "1_m")
    took_ms = {"a 0_m": 5.0, "b 0_m": 1.0, "b 1_m": 100.0, "c 0_m": 50.0}
    found = bench.run(*map(bench.target, "abc"), processes=1, took_ms=took_ms)
    assert bench.verdicts(found) == {PASS: 6}
    order = [target for target, _ in bench.handed if target not in {"cpu", "references"}]
    assert order == [name for name in "bca" for _ in range(2)]
    # Cells of one process keep the order of the plan.
    assert [model for target, model in bench.handed if target == "b"] == ["0_m", "1_m"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system keeps no process to processors")
def test_one_of_many_processors_is_one(bench: "Bench") -> None:
    bench.models("0_m", "1_m")
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        found = bench.run(*map(bench.target, "abc"), processes=None)
    finally:
        os.sched_setaffinity(0, processors)
    assert bench.verdicts(found) == {PASS: 6}
    order = [target for target, _ in bench.handed if target not in {"cpu", "references"}]
    assert order == [name for name in "abc" for _ in range(2)]


def test_the_longest_cells_of_several_workers_go_first(bench: "Bench") -> None:
    bench.models(*(f"{number}_m" for number in range(6)))
    took_ms = {"t 1_m": 7.0, "t 4_m": 90.0, "t 5_m": 8.0}
    bench.run(bench.target("t", workers=2), took_ms=took_ms)
    order = [model for target, model in bench.handed if target == "t"]
    assert order == ["4_m", "5_m", "1_m", "0_m", "2_m", "3_m"]


def test_what_ends_the_process_of_a_single_worker_goes_first(bench: "Bench") -> None:
    bench.models("0_m", "1_m", "2_m", "3_segv_in_run", "4_m")
    took_ms = {"t 1_m": 900.0, "t 3_segv_in_run": 1001.0, "t 4_m": 950.0}
    bench.run(bench.target("t"), took_ms=took_ms)
    order = [model for target, model in bench.handed if target == "t"]
    assert list(dict.fromkeys(order)) == ["3_segv_in_run", "0_m", "1_m", "2_m", "4_m"]


def test_without_durations_the_plan_is_the_order(bench: "Bench") -> None:
    bench.models(*(f"{number}_m" for number in range(3)))
    bench.run(bench.target("b"), bench.target("a"), processes=1)
    order = [(target, model) for target, model in bench.handed if target not in {"cpu", "references"}]
    assert order == [(target, f"{number}_m") for target in "ba" for number in range(3)]


def test_all_that_waits_comes_together(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    bench.models(*(f"{number}_m" for number in range(7)))
    with bench.engine(bench.target("t")) as engine:
        bench.wait_for_the_end()
        (batch,) = engine.batches()
    assert bench.verdicts(batch) == {PASS: 7}
    monkeypatch.setattr("harness.engine.engine.BATCH", 3)
    with bench.engine(bench.target("t")) as engine:
        bench.wait_for_the_end()
        sizes = [len(batch) for batch in engine.batches()]
    assert sizes == [3, 3, 3], "with the news that the target is ready, and that its process has ended"


def test_what_an_interrupt_finds_half_gathered_is_handed_out_the_next_time(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.models(*(f"{number}_m" for number in range(3)), "3_gate_in_run", "4_m")

    interrupts: list[bool] = []

    class Interrupted(queue.SimpleQueue):  # type: ignore[type-arg]
        """Takes the first event, and is interrupted at the second."""

        def get_nowait(self) -> Any:
            if interrupts and threading.current_thread() is threading.main_thread():
                interrupts.clear()
                raise KeyboardInterrupt
            return super().get_nowait()

    monkeypatch.setattr("harness.engine.engine.queue.SimpleQueue", Interrupted)
    recorded: list[object] = []

    def watched(*arguments: Any, **settings: Any) -> Record:
        recorded.append(arguments)
        return record_of(*arguments, **settings)

    monkeypatch.setattr("harness.engine.cell_pipeline.record_of", watched)
    with bench.engine(bench.target("t")) as engine:
        bench.wait_at_gate("t")
        wait_for(lambda: len(recorded) == 3)
        time.sleep(0.1)  # a record is announced just after it is made
        interrupts.append(True)
        with pytest.raises(KeyboardInterrupt):
            next(engine.batches())
        engine.close()
        assert bench.verdicts(list(engine.events())) == {PASS: 3}


def test_what_happened_before_the_engine_broke_comes_first(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.models("0_m")

    def fail(*_arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("harness.engine.questions.next_step.measure", fail)
    monkeypatch.setattr("harness.engine.cell_pipeline.own_error", fail)
    with bench.engine(bench.target("t")) as engine:
        bench.wait_for_the_end()
        batches = engine.batches()
        assert len(next(batches)) == 1
        with pytest.raises(UncontainedError):
            next(batches)


def test_a_model_that_cannot_be_read_costs_no_neighbour(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read early, for the sake of its questions, while another one is given to a process."""
    models = tuple(f"{number}_m" for number in range(7))
    bench.models(*models)

    def broken(suite: Any, model: str, *rest: Any, **settings: Any) -> Any:
        if model.removesuffix(".onnx") == "4_m":
            raise TypeError("a fault of the harness")
        return load_case(suite, model, *rest, **settings)

    monkeypatch.setattr("harness.engine.answers.cases.load_case", broken)
    monkeypatch.setattr("harness.engine.dispatcher.AHEAD", 2)
    found = bench.records(bench.run(bench.target("t")))
    lost = [name for name, record in found.items() if record.verdict is Verdict.HARNESS_ERROR]
    assert lost == ["t 4_m"]


def test_records_are_written_at_once_and_waited_for_at_the_end(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.models(*(f"{number}_m" for number in range(4)))
    found = tuple(bench.records(bench.run(bench.target("t"))).values())
    folder = RunFolder.create(bench.home / "run", prepare(bench.home / "m.toml")[0])
    synced: list[int] = []
    monkeypatch.setattr("harness.run.durable.SYNC_EVERY_S", 3600.0)
    monkeypatch.setattr("harness.run.durable.os.fsync", synced.append)
    folder.add(*found[:3])
    lines = (bench.home / "run" / "records.jsonl").read_bytes().splitlines()
    assert [decode_record(line).cell for line in lines] == [record.cell for record in found[:3]]
    folder.add()
    folder.add(*found[3:])
    assert not synced
    assert folder.finish() is True
    assert len(synced) == 1
