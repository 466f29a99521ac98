"""The lanes of a run: which one a cell or a question belongs to, opened when the first task asks for it."""

from collections import deque
from collections.abc import Iterable, Mapping

from harness.core.cell import Cell
from harness.engine.device import device_of
from harness.engine.durations import RESTART_MS
from harness.engine.effects import Effects
from harness.engine.job import Configuration, configuration, cpu_configuration
from harness.engine.lane import Lane
from harness.engine.process_pool import ProcessPool
from harness.engine.question import Kind, Question
from harness.engine.task import BaselineTask, CellTask, QuestionTask, Task
from harness.plan.file_format import Timeouts
from harness.plan.plan import Plan
from harness.plan.runs_entry import LatencySettings
from harness.plan.target import fixed_axes

SECOND_OPINION_TIMEOUTS = Timeouts(create=20.0, run=20.0)
"""Seconds for questions that only check a golden: a run must not wait long for them."""


class Lanes:
    """Puts every task into the queue of its lane.

    Args:
        plan: Where the cells come from.
        effects: What options change: it knows with which of them a baseline is run.
        pool: Staffs the lanes.
        durations_ms: Id of a cell -> what it took before; decides what is begun first.
        measures: Whether latency is measured where the matrix asks for it.
    """

    def __init__(
        self,
        plan: Plan,
        effects: Effects,
        pool: ProcessPool,
        durations_ms: Mapping[str, float],
        *,
        measures: bool,
    ) -> None:
        self._plan = plan
        self._effects = effects
        self._pool = pool
        self._durations_ms = durations_ms
        self._measures = measures
        self._open: dict[tuple[object, ...], Lane] = {}

    def submit(self, cells: Iterable[Cell]) -> None:
        """Queue cells for the first time."""
        lanes = set()
        for cell in cells:
            lane = self._of_cell(cell)
            took_ms = self._durations_ms.get(cell.id, 0.0) if self._durations_ms else 0.0
            lane.queue.append(CellTask(cell=cell, expected_ms=took_ms))
            lane.expected_ms += took_ms
            lanes.add(lane)
        if self._durations_ms:
            for lane in lanes:
                self._slow_ones_first(lane)
            self._pool.sort()

    def ask(self, name: str, models: tuple[tuple[str, str], ...], kind: Kind) -> None:
        """Queue models whose answer by the CPU provider of a target's runtime is what somebody waits for."""
        target = self._plan.target(name)
        key = ("asked", name)
        if key not in self._open:
            config = cpu_configuration(target.runtime)
            self._add(key, Lane(name, config, target.timeouts_s, target.workers))
        self._open[key].queue.extend(
            QuestionTask(
                about=Question(suite=suite, model=model, runtime=target.runtime, kind=kind), for_caller=True
            )
            for suite, model in models
        )

    def queue(self, task: Task) -> None:
        """Queue a question to the CPU provider of a runtime, one for a baseline, or a cell once more."""
        match task:
            case CellTask():
                # First in its queue: until it runs, its first result is held in memory, with the outputs.
                self._of_cell(task.cell).queue.appendleft(task)
            case BaselineTask():
                self._of_baseline(task.cell).queue.append(task)
            case QuestionTask():
                self._of_question(task.about).queue.append(task)

    def latency(self, cell: Cell) -> LatencySettings | None:
        """How the latency of a cell is measured; None where it is not."""
        return self._plan.latency(cell) if self._measures else None

    def _of_cell(self, cell: Cell) -> Lane:
        measured = self.latency(cell) is not None
        key = (cell.target, fixed_axes(cell), measured)
        if key not in self._open:
            config = configuration(self._plan.target(cell.target), cell)
            self._add(key, self._lane(cell, config, alone=measured))
        return self._open[key]

    def _of_question(self, question: Question) -> Lane:
        # A target may well be the CPU provider itself; its cells must not stand before questions to it.
        key = ("reference", question.runtime, question.queue)
        if key not in self._open:
            config = cpu_configuration(question.runtime)
            limits = SECOND_OPINION_TIMEOUTS if question.kind.checks_golden else Timeouts()
            self._add(key, Lane(question.queue, config, limits, is_reference=True))
        return self._open[key]

    def _of_baseline(self, cell: Cell) -> Lane:
        doubt = self._effects.doubt(cell)
        config = doubt.without if doubt else configuration(self._plan.target(cell.target), cell)
        key = ("baseline", config)
        if key not in self._open:
            self._add(key, self._lane(cell, config))
        return self._open[key]

    def _lane(self, cell: Cell, config: Configuration, *, alone: bool = False) -> Lane:
        target = self._plan.target(cell.target)
        alone = alone or target.alone
        lane = Lane(
            target.name,
            config,
            target.timeouts_s,
            1 if alone else target.workers,
            device=device_of(target, cell),
            alone=alone,
            renew_after=target.renew_after,
        )
        lane.slots = target.workers  # however few of them are used
        return lane

    def _add(self, key: tuple[object, ...], lane: Lane) -> None:
        self._open[key] = lane
        self._pool.add(lane)

    def _slow_ones_first(self, lane: Lane) -> None:
        """Several workers end at about the same time if the longest cells do not come last.

        A single one keeps to the plan, as others do that read the same models. But what ends its process, or
        takes as long, comes first, while other lanes have a use for the processors that wait meanwhile.
        """
        least_ms = 0.0 if lane.width > 1 else RESTART_MS

        def before(task: Task) -> float:
            return -task.expected_ms if task.expected_ms >= least_ms else 0.0

        lane.queue = deque(sorted(lane.queue, key=before))
