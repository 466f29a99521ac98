"""A court in this process: the pipeline of a run, whose agent is called and not started.

The agent's own code answers every question of the pipeline: golden, noise, references, float64. Only the
answer of the provider under test is somebody's choice.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from harness.agent.agent import _play  # no process: nothing of the protocol is measured here
from harness.agent.job_run import JobRun
from harness.agent.safe_text import clean
from harness.agent.session_target import CPU, SessionTarget
from harness.agent.target_errors import UnsupportedError
from harness.core.records.cell import Cell
from harness.core.records.facts import Placement
from harness.core.records.record import Record
from harness.core.records.verdict import Phase
from harness.corpus.case import Case
from harness.engine.answers.cases import Cases
from harness.engine.answers.references import References, Stores
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.prepare import open_suites
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.processes.messages import RunResult
from harness.engine.questions.next_step import NextStep
from harness.engine.steps.effects import Effects
from harness.engine.tasks.events import Event, Finished
from harness.engine.tasks.outcome import Outcome, Raised, Ran, Unsupported, from_result
from harness.engine.tasks.task import CellTask, Question, Task
from harness.engine.workers.job import job
from harness.golden.golden_cache import GoldenStore
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from

TARGETS = {
    "plain": "XnnpackExecutionProvider",
    "bfloat16": "OpenVINOExecutionProvider",
    "float16": "QNNExecutionProvider",
    "tf32": "CUDAExecutionProvider",
    "wgsl": "WebGpuExecutionProvider",
}
"""Target -> a provider whose catalogue allows it that and no more; ``plain`` rounds like the CPU EP."""


class Court:
    """Judges answers to the models of a folder."""

    def __init__(self, folder: Path) -> None:
        targets = [{"name": name, "provider": provider} for name, provider in TARGETS.items()]
        table = {"schema": 1, "models": {"folders": ["models"]}, "target": targets}
        matrix = matrix_from(table, folder / "m.toml")
        suites = open_suites(matrix)
        plan = expand(matrix, {name: suite.models() for name, suite in suites.items()})
        names = ("cpu", "unoptimized", "onnx", "float64")
        stores = Stores(*(GoldenStore({"by": name}, folder / "goldens") for name in names))
        references = References(stores)
        self.cases = Cases(plan, suites, references, lambda _: None)
        self.cells = {(cell.model.partition("/")[0], cell.target): cell for cell in plan.cells}
        self.queue: list[Task] = []
        self.records: list[Record] = []
        self.errors: list[str] = []
        self.pipeline = CellPipeline(
            NextStep(plan, self.cases, references), Effects(plan), self.queue.append, self._announce
        )
        self.target = SessionTarget(
            importlib.import_module("onnxruntime"), {"providers": [CPU], "options": {}}, {}
        )

    def honest(self, model: str) -> Ran:
        """Return what the CPU EP computes, other inputs included.

        Raises:
            TypeError: It does not run.
        """
        task = self._open(self.cells[model, "plain"])
        case = self.pipeline.case(task)
        self.pipeline.open -= 1
        if not isinstance(case, Case):
            raise TypeError(f"{model}: {case}")
        found = self._run(case, {})
        if not isinstance(found, Ran):
            raise TypeError(f"{model}: {found}")
        return found

    def other_inputs(self, model: str) -> Case | None:
        """Return the case with the inputs of the other run; None if there are none."""
        cell = self.cells[model, "plain"]
        found = self.cases.of(Question(suite=cell.suite, model=cell.model, others=True))
        return found if isinstance(found, Case) else None

    def judge(self, model: str, target: str, answer: Ran) -> Record:
        """Return the record of a cell of a provider that gives this answer."""
        task = self._open(self.cells[model, target])
        case = self.pipeline.case(task)
        if not isinstance(case, Case):
            raise TypeError(f"{model}: {case}")
        operators = dict(answer.placement.ep_ops)
        taken = Placement(
            ep_nodes=max(1, sum(operators.values())),
            cpu_nodes=0,
            ep_ops=operators,
            cpu_ops={},
            partitions=1,
            source="assignment",
        )
        self.pipeline.conclude(task, msgspec.structs.replace(answer, placement=taken))
        self._settle()
        if self.pipeline.open:
            raise RuntimeError(f"{model}: {self.pipeline.open} tasks left")
        return self.records[-1]

    def _open(self, cell: Cell) -> CellTask:
        task = CellTask(cell=cell)
        self.pipeline.open += 1
        while self.pipeline.questions.awaits(task):
            self._settle()
        return task

    def _settle(self) -> None:
        while self.queue:
            task = self.queue.pop(0)
            case = self.pipeline.case(task)
            self.pipeline.conclude(task, self._run(case, task.about) if isinstance(case, Case) else case)

    def _announce(self, event: Event) -> None:
        if isinstance(event, Finished):
            self.records.append(event.record)
            self.errors += [event.traceback] if event.traceback else []

    def _run(self, case: Case, asked: Any) -> Outcome:
        tensors = Tensors()
        result: dict[str, Any] = {"status": "ok", "phase": "create", "timings_ms": {}}
        enter: Callable[[str], None] = lambda phase: result.update(phase=phase)  # noqa: E731
        run = JobRun(self.target, job(case, asked, tensors, local=True), result, enter)
        self.target.files.begin()
        try:
            _play(run)
        except UnsupportedError as error:
            return Unsupported(phase=Phase(result["phase"]), message=clean(error))
        except Exception as error:  # noqa: BLE001 - as in the agent: an error of the runtime is an answer
            kind = type(error).__name__
            return Raised(phase=Phase(result["phase"]), kind=kind, message=clean(error))
        run.close()
        result["output"] = ""
        return from_result(msgspec.convert(result, RunResult), tensors)
