"""Task queues: one for each configuration, opened with its first task."""

from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from harness.core.records.cell import Cell
from harness.engine.processes.launch import is_local
from harness.engine.steps.effects import Effects
from harness.engine.tasks.configuration import Configuration, configuration, cpu_configuration
from harness.engine.tasks.outcome import Rejected, Unavailable
from harness.engine.tasks.task import (
    BaselineTask,
    CellTask,
    FixedTask,
    Question,
    QuestionKind,
    QuestionTask,
    Task,
)
from harness.engine.workers.device import device_of, devices_at, uses_processor
from harness.places.fleet import Fleet
from harness.places.of_target import TargetPlaces
from harness.plan.file_format import RenewAfter, Timeouts
from harness.plan.plan import Plan
from harness.plan.runs_entry import LatencySettings
from harness.plan.target import fixed_axes

CHECK_TIMEOUTS = Timeouts(create=20.0, run=20.0)
"""Seconds for questions that only check a golden: a run must not wait long for them."""

START_ATTEMPTS = 2
"""Number of processes in a row that may die before they are ready: one kill from outside proves nothing."""

SECOND_FROM_S = 1.0
"""Seconds of waiting work from which a second process starts on the processor, if the matrix does not set
``workers``. Its start takes 0.2 s of a processor."""

SECOND_FROM_TASKS = 32
"""Number of waiting tasks from which it starts: a few may end with the first process as early."""

RESTART_MS = 1000.0
"""The additional cost of a cell that ends its process: another one starts in 0.3 s to 2 s."""


class TaskQueue(msgspec.Struct, eq=False):
    """Tasks that share one configuration, and the state of the processes that serve it.

    Attributes:
        name: Name for people: the target, or a queue of questions.
        slots: Sessions that the device can hold at once.
        is_reference: Whether the CPU provider answers questions here; such a queue comes first.
        device: The device that its sessions occupy; None if processes may share it freely.
        alone: Whether the target runs alone.
        automatic: Whether a second process is left to the harness, for the matrix does not set ``workers``.
        alive: Processes that serve it, at the latest look.
        width: Largest number of processes at once.
        expected_ms: Duration of its tasks in an earlier run; tasks with an unknown duration count as 0.
        failed_starts: Processes in a row that ended before they were ready.
        losses: Processes that died at work.
        verdict: The outcome of every task once the configuration has turned out to be unusable.
        places: Where its processes may run; None for the runtime of its configuration.
        devices: Place -> the device that a session there occupies; None if it shares the device.
        refused: Place -> why the configuration cannot be used there.
        checks: Tasks that only some places may run.
        is_small: Whether all its models are small, so that a process still at work at its limit counts as
            hung.
    """

    name: str
    configuration: Configuration
    limits: Timeouts
    slots: int = 1
    is_reference: bool = False
    device: str | None = None
    alone: bool = False
    renew_after: RenewAfter = RenewAfter()
    automatic: bool = False
    alive: int = 0
    width: int = 0
    tasks: deque[Task] = msgspec.field(default_factory=deque)
    expected_ms: float = 0.0
    failed_starts: int = 0
    losses: int = 0
    verdict: Unavailable | Rejected | None = None
    places: TargetPlaces | None = None
    devices: dict[str, str | None] = {}
    refused: dict[str, Unavailable | Rejected] = {}
    checks: deque[Task] = msgspec.field(default_factory=deque)
    is_small: bool = False

    def __post_init__(self) -> None:
        everywhere = self.slots * (1 if self.places is None or self.is_reference else len(self.places.states))
        self.width = 1 if self.alone else everywhere

    @property
    def is_local(self) -> bool:
        """Whether its processes run on this machine."""
        return is_local(self.configuration.runtime)

    def wants_worker(self, alive: int, starting: int, task_s: float = 0.0) -> bool:
        """Return whether another process would have work, beside those alive, some of which are starting.

        The first one starts alone: it shows whether the configuration can be used at all. Places start
        together: each shows only whether it can be used itself. A task takes some ``task_s`` seconds.
        """
        return (
            self.verdict is None
            and alive < self.width
            and self.waiting > starting
            and (not alive or starting < alive or self.places is not None)
            and (not alive or not self.automatic or self._has_much_left(task_s))
        )

    def _has_much_left(self, task_s: float) -> bool:
        return self.waiting >= SECOND_FROM_TASKS and self.waiting * task_s >= SECOND_FROM_S

    @property
    def waiting(self) -> int:
        """Return the number of waiting tasks."""
        return len(self.tasks) + len(self.checks)

    @property
    def takes_all(self) -> bool:
        """Whether one process may hold all tasks: there is no other one that would lack them at the end."""
        return self.places is None and self.alive <= 1

    @property
    def share(self) -> int:
        """Return how many tasks one of several processes may hold: half of its part of the waiting ones.

        So no process lacks work at the end while another one holds it.
        """
        return max(1, -(-len(self.tasks) // (2 * self.width)))

    def bring_forward(self, place: str) -> bool:
        """Move a task that a place may run to the front; return whether there is one."""
        while self.tasks and not self.tasks[0].may_run_at(place):
            self.checks.append(self.tasks.popleft())
        for task in self.checks:
            if task.may_run_at(place):
                self.checks.remove(task)
                self.tasks.appendleft(task)
                break
        return bool(self.tasks)


class Queues(msgspec.Struct, eq=False):
    """All queues of a run; ``all`` has them in the order in which they get processes and tasks."""

    plan: Plan
    effects: Effects
    durations_ms: Mapping[str, float]
    fleet: Fleet
    measures: bool
    is_small: bool = False
    all: list[TaskQueue] = []
    by_key: dict[tuple[object, ...], TaskQueue] = {}

    @property
    def has_questions(self) -> bool:
        """Whether a question waits for a process."""
        return any(queue.tasks for queue in self.all if queue.is_reference)

    def submit(self, cells: Iterable[Cell]) -> None:
        """Queue cells for the first time."""
        queues = set()
        for cell in cells:
            queue = self._of_cell(cell)
            took_ms = self.durations_ms.get(cell.id, 0.0) if self.durations_ms else 0.0
            queue.tasks.append(CellTask(cell=cell, expected_ms=took_ms))
            queue.expected_ms += took_ms
            queues.add(queue)
        if self.durations_ms:
            for queue in queues:
                _move_slow_tasks_first(queue)
            self._sort()

    def ask(self, name: str, models: tuple[tuple[str, str], ...], kind: QuestionKind) -> None:
        """Queue questions of the engine's caller to the CPU provider of a target's runtime."""
        target = self.plan.target(name)
        key = ("asked", name)
        if key not in self.by_key:
            config = cpu_configuration(target.runtime)
            places = self.fleet.of(config.runtime)
            self._add(key, TaskQueue(name, config, target.timeouts_s, target.workers or 1, places=places))
        self.by_key[key].tasks.extend(
            QuestionTask(
                about=Question(suite=suite, model=model, runtime=target.runtime, kind=kind), for_caller=True
            )
            for suite, model in models
        )

    def put(self, task: Task) -> None:
        """Queue a question, a baseline, or a cell once more."""
        match task:
            case CellTask() | FixedTask():
                # First in its queue: until it runs, its first result stays in memory, with the outputs.
                self._of_cell(task.cell).tasks.appendleft(task)
            case BaselineTask():
                self._of_baseline(task.cell).tasks.append(task)
            case QuestionTask():
                self._of_question(task.about).tasks.append(task)

    def latency(self, cell: Cell) -> LatencySettings | None:
        """Return how the latency of a cell is measured; None if it is not."""
        return self.plan.latency(cell) if self.measures else None

    def _of_cell(self, cell: Cell) -> TaskQueue:
        measured = self.latency(cell) is not None
        key = (cell.target, fixed_axes(cell), measured)
        if key not in self.by_key:
            config = configuration(self.plan.target(cell.target), cell)
            self._add(key, self._of_target(cell, config, alone=measured))
        return self.by_key[key]

    def _of_question(self, question: Question) -> TaskQueue:
        # A target can be the CPU provider itself; its cells must not precede questions to it.
        key = ("reference", question.runtime, question.queue)
        if key not in self.by_key:
            config = cpu_configuration(question.runtime)
            limits = CHECK_TIMEOUTS if question.kind.checks_golden else Timeouts()
            places = self.fleet.of(config.runtime)
            self._add(key, TaskQueue(question.queue, config, limits, is_reference=True, places=places))
        return self.by_key[key]

    def _of_baseline(self, cell: Cell) -> TaskQueue:
        doubt = self.effects.doubt(cell)
        config = doubt.without if doubt else configuration(self.plan.target(cell.target), cell)
        key = ("baseline", config)
        if key not in self.by_key:
            self._add(key, self._of_target(cell, config))
        return self.by_key[key]

    def _of_target(self, cell: Cell, config: Configuration, *, alone: bool = False) -> TaskQueue:
        target = self.plan.target(cell.target)
        places = self.fleet.of(config.runtime)
        alone = alone or target.alone
        automatic = target.workers is None and places is None and not alone and uses_processor(target, cell)
        return TaskQueue(
            target.name,
            config,
            target.timeouts_s,
            2 if automatic else target.workers or 1,
            automatic=automatic,
            device=device_of(target, cell) if places is None else None,
            places=places,
            devices={} if places is None else devices_at(target, cell, places.states),
            alone=alone,
            renew_after=target.renew_after,
            is_small=self.is_small,
        )

    def _add(self, key: tuple[object, ...], queue: TaskQueue) -> None:
        self.by_key[key] = queue
        self.all.append(queue)
        self._sort()

    def _sort(self) -> None:
        """Sort the queues: the longest starts first, so that it does not end last.

        Then those alone; then questions.
        """
        self.all.sort(key=lambda queue: (queue.is_reference, queue.alone, -queue.expected_ms))


def _move_slow_tasks_first(queue: TaskQueue) -> None:
    """Sort the tasks of a queue.

    Several workers end at about the same time if the longest cells do not come last. A single worker, or one
    that may get a second one beside it, keeps the plan's order, in which queues share the models that they
    read. But cells that end their process, or take as long, come first while other queues need the processors
    that are free meanwhile.
    """
    least_ms = 0.0 if queue.width > 1 and not queue.automatic else RESTART_MS

    def before(task: Task) -> float:
        return -task.expected_ms if task.expected_ms >= least_ms else 0.0

    queue.tasks = deque(sorted(queue.tasks, key=before))
