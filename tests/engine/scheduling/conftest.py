"""Runs of small matrices that record which process gets which cell, and when."""

import contextlib
import os
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.corpus.caches.cache import ENVIRONMENT
from harness.engine.engine import Engine, StudySettings
from harness.engine.prepare import prepare
from harness.engine.tasks.configuration import Configuration
from harness.engine.tasks.events import Event
from harness.engine.tasks.task import Task
from harness.engine.workers.process_pool import ProcessPool
from harness.engine.workers.worker import Worker
from tests.kit import FAKE_ENV, records_of, wait_for, write_model

CUDA = "CUDAExecutionProvider"


@pytest.fixture(autouse=True)
def _four_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a queue of a few models is still one."""
    for name in ("FEWEST_IN_FLIGHT", "FIRST_IN_FLIGHT", "MOST_IN_FLIGHT"):
        monkeypatch.setattr(f"harness.engine.workers.in_flight.{name}", 4)


class Bench:
    """A folder of models, and runs of them on targets with the fake onnxruntime.

    Attributes:
        launched: Processes of targets, spare ones included, in the order of their start.
        handed: What workers were given, as (target, model), in that order; questions have the target ``cpu``.
        together: Targets that had something at work while a cell that runs alone had.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.launched: list[Worker] = []
        self.handed: list[tuple[str, str]] = []
        self.together: list[set[str]] = []
        self._workers: set[Worker] = set()

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        launch, give = ProcessPool.launch, Worker.give

        def watched_launch(pool: ProcessPool, config: Configuration) -> Worker:
            worker = launch(pool, config)
            if config.providers != (CPU,):
                self.launched.append(worker)
            return worker

        def watched_give(worker: Worker, task: Task, job: dict[str, object]) -> None:
            give(worker, task, job)
            self._workers.add(worker)
            busy = [queue for one in self._workers if one.in_flight and (queue := one.queue) is not None]
            if any(queue.alone for queue in busy):
                self.together.append({queue.name for queue in busy})
            assert worker.queue is not None
            self.handed.append((worker.queue.name, task.about.model.removesuffix(".onnx")))

        patch.setattr(ProcessPool, "launch", watched_launch)
        patch.setattr(Worker, "give", watched_give)

    def models(self, *names: str, folder: str = "models", data: bool = False) -> None:
        """Write models; without ``data`` of their own they wait until their generated inputs have run."""
        for name in names:
            write_model(self.home / folder / f"{name}.onnx")
            if data:
                home = self.home / folder / name / "test_data_set_0"
                home.mkdir(parents=True)
                np.save(home / "input_0.npy", np.array([-1.5, 2.0, 0.0, 3.5], np.float32))

    def target(self, name: str, **settings: Any) -> dict[str, Any]:
        """A target that occupies no device, unless it says so."""
        env = {**FAKE_ENV, "FAKE_MARKER": str(self.home / name), **settings.pop("env", {})}
        return {"name": name, "provider": CUDA, "device_lock": "", "env": env, **settings}

    @contextlib.contextmanager
    def engine(
        self,
        *targets: dict[str, Any],
        processes: int | None = 4,
        took_ms: dict[str, float] | None = None,
        prepare_for: Callable[[Engine], None] = lambda _: None,
        gives_outputs: bool = False,
        study: StudySettings = StudySettings(),  # noqa: B008 - it is frozen
        **tables: Any,
    ) -> Iterator[Engine]:
        """An engine at work on everything; ``took_ms`` holds durations by ``target model``.

        ``prepare_for`` is called before anything is submitted.
        """
        folders = sorted({path.parent.name for path in self.home.glob("*/*.onnx")})
        (self.home / "m.toml").write_text(
            toml({"schema": 1, "models": {"folders": folders}, "target": list(targets), **tables}),
            encoding="utf-8",
        )
        plan, suites = prepare(self.home / "m.toml")
        durations = {
            cell.id: ms
            for cell in plan.cells
            if (ms := (took_ms or {}).get(f"{cell.target} {cell.model.removesuffix('.onnx')}")) is not None
        }
        engine = Engine(plan, suites, processes, durations, gives_outputs=gives_outputs, study=study)
        with contextlib.closing(engine):
            prepare_for(engine)
            engine.submit(plan.cells)
            engine.drain()
            yield engine

    def run(self, *targets: dict[str, Any], **settings: Any) -> list[Event]:
        with self.engine(*targets, **settings) as engine:
            # An engine that waits for ever shall fail the test and not stop all tests.
            watchdog = threading.Timer(60.0, engine.close)
            watchdog.start()
            try:
                return list(engine.events())
            finally:
                watchdog.cancel()

    @staticmethod
    def records(events: list[Event]) -> dict[str, Record]:
        """Records by ``target model``, each cell having one."""
        found = records_of(events)
        by_name = {f"{record.target} {record.model.removesuffix('.onnx')}": record for record in found}
        assert len(by_name) == len(found)
        return by_name

    def verdicts(self, events: list[Event]) -> Counter[Verdict]:
        return Counter(record.verdict for record in self.records(events).values())

    def wait_at_gate(self, target: str) -> None:
        wait_for((self.home / f"{target}.waits").exists)

    def wait_until_still(self) -> None:
        """Wait until the target's process has nothing to do, and gets nothing for half a second."""
        handed = -1
        while self.launched[-1].in_flight or len(self.handed) != handed:
            handed = len(self.handed)
            time.sleep(0.5)

    @classmethod
    def wait_for_the_end(cls) -> None:
        """Wait until no engine is at work; its events may still wait."""
        wait_for(lambda: all(one.name != "ep-harness-engine" for one in threading.enumerate()))

    @staticmethod
    def is_gone(worker: Worker) -> bool:
        """Whether a worker's process has ended and been waited for."""
        try:
            os.kill(worker.process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def open_gate(self, target: str) -> None:
        (self.home / f"{target}.open").touch()


def toml(table: dict[str, Any]) -> str:
    """TOML of tables and lists of tables, whatever is inside of them inline."""
    text = "\n".join(f"{key} = {inline(value)}" for key, value in table.items())
    assert tomllib.loads(text) == table
    return text


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {inline(inner)}' for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(tmp_path)
    bench.watch(monkeypatch)
    return bench


@pytest.fixture
def goldens_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
