"""The process pool: which workers exist, and which queue each one serves."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness.agent.orphans import orphans_text
from harness.core.text.errors import one_line
from harness.engine.processes.launch import is_local, launch
from harness.engine.processes.mapped_tensors import TensorHome, Tensors
from harness.engine.processes.native_crash import with_native_stack
from harness.engine.processes.prestarted import take_prestarted
from harness.engine.processes.process import AgentProcess
from harness.engine.processes.slurm import QueueWatch
from harness.engine.tasks.configuration import HERE, Configuration, configured_at
from harness.engine.workers.admission import Admission
from harness.engine.workers.builds_seen import BuildsSeen
from harness.engine.workers.queues import TaskQueue
from harness.engine.workers.spares import Spares
from harness.engine.workers.worker import Worker
from harness.places.fleet import Fleet
from harness.places.place_state import PlaceState
from harness.runtimes.builds import Builds
from harness.runtimes.installer import InstallError

SILENT_S = 40.0
"""Seconds without a sign of life after which a place counts as silent; it sends one every ten seconds."""

STOP_S = 5.0
"""Seconds that processes get to exit by themselves at the end of a run."""


class ProcessPool:
    """Starts, keeps and ends all workers; at most ``processes`` of them compute on this machine at once.

    From other threads, it calls ``on_message`` with a worker's number and its message. It calls ``on_ended``
    with a worker whose process has been waited for, and how it ended.
    """

    def __init__(
        self,
        processes: int,
        on_message: Callable[[int, Any], None],
        warn: Callable[[str], None],
        builds: Builds,
        fleet: Fleet,
        on_ended: Callable[[Worker, str], None] = lambda _worker, _cause: None,
    ) -> None:
        self.builds = builds
        self.fleet = fleet
        self.builds_seen = BuildsSeen()
        self._queue_watch = QueueWatch(on_message)
        self.workers: dict[int, Worker] = {}
        self.spares = Spares(self.launch)
        self._processes = processes
        self._on_message = on_message
        self._warn = warn
        self._on_ended = on_ended
        self._admission = Admission(processes, warn)
        self._started = 0
        self._leaving: dict[int, tuple[Worker, threading.Thread]] = {}
        """Removed workers whose process has not ended, each with the thread that waits for the end."""
        self._scratch = tempfile.TemporaryDirectory(prefix="ep-harness-", ignore_cleanup_errors=True)
        self._tensors = TensorHome()

    # --- starting ---

    def serving(self, queue: TaskQueue) -> tuple[Worker, ...]:
        """Return the workers of a queue."""
        return tuple(worker for worker in self.workers.values() if worker.queue is queue)

    def start_workers(self, queue: TaskQueue) -> None:
        """Start as many processes for a queue as have work, if its runtime is built and there is room.

        Raises:
            InstallError: Its runtime cannot be built.
            OSError: Its interpreter cannot be started.
            ValueError: Its command is malformed.
        """
        if queue.places is not None:
            self._start_at_places(queue)
            return
        while self._wants_worker(queue) and self.builds.is_built(queue.configuration.runtime):
            if not self._start_one(queue, queue.configuration, None):
                return

    def _start_at_places(self, queue: TaskQueue) -> None:
        """Start processes at all free places; a place that cannot have one is set aside."""
        full: set[str] = set()
        while queue.places is not None and self._wants_worker(queue):
            place = queue.places.next_free(full | self._full_places(queue), queue.refused)
            if place is None:
                return
            config = configured_at(place.place, queue.configuration)
            try:
                started = self.builds.is_built(config.runtime) and self._start_one(queue, config, place)
            except (InstallError, OSError, ValueError) as error:
                queue.places.fail(place, f"its process cannot be started: {one_line(error)}")
                started = False
            if not started:
                full.add(place.name)

    def _start_one(self, queue: TaskQueue, config: Configuration, place: PlaceState | None) -> bool:
        """Start a process for a queue; return whether there was room."""
        leaving = [worker for worker, _ in self._leaving.values()]
        slot = self._admission.admit(queue, tuple(self.workers.values()), leaving, place)
        if slot is None:
            return False
        try:
            if queue.failed_starts:  # the second time, the place of its death is reported
                worker = self.launch(msgspec.structs.replace(config, env=with_native_stack(config.env)))
            else:
                worker = self.spares.take(config.interpreter) or self.launch(config)
        except BaseException:
            slot.release()
            raise
        at = "" if place is None else place.name
        digests = None if queue.is_reference else self.builds_seen.known(config, at)
        worker.serve(queue, slot, config, place, digests)
        return True

    def _full_places(self, queue: TaskQueue) -> set[str]:
        """Return the places with as many processes of the target as they can hold; stop one without tasks.

        Questions to the CPU provider have their own process beside them. Tasks that only some places may run
        do not need the others.
        """
        if queue.places is None:
            return set()
        there = self._at_places(queue)
        full = {name for name, workers in there.items() if len(workers) >= queue.slots}
        wanted = (worker for name in full - queue.refused.keys() for worker in there[name])
        of_others = (worker for worker in wanted if worker.queue is not queue)
        idle = [worker for worker in of_others if worker.idle and not worker.has_tasks_queued]
        if idle:
            idle[0].stop()
        if not queue.tasks:
            names = (state.name for state in queue.places.states)
            full |= {name for name in names if not any(task.may_run_at(name) for task in queue.checks)}
        return full

    def _at_places(self, queue: TaskQueue) -> dict[str, list[Worker]]:
        """Return place -> the workers there, for the target of a queue, or for questions to it."""
        there: dict[str, list[Worker]] = {}
        leaving = (worker for worker, _ in self._leaving.values())
        for worker in (*self.workers.values(), *leaving):
            at, serves = worker.place, worker.queue
            if at is None or serves is None or serves.places is not queue.places:
                continue
            if serves.is_reference == queue.is_reference:
                there.setdefault(at.name, []).append(worker)
        return there

    def launch(self, config: Configuration) -> Worker:
        """Start a process that can serve a configuration.

        Raises:
            InstallError, OSError, ValueError: As ``harness.engine.processes.launch.launch``.
        """
        self._started += 1
        folder = Path(self._scratch.name) / str(self._started)
        folder.mkdir()
        tensors = self._tensors.open(folder) if is_local(config.runtime) else Tensors()
        worker = self._add(AgentProcess(launch(config.runtime, dict(config.env), folder)), tensors)
        if config.runtime.command is not None:
            self._queue_watch.watch(worker.number, worker.process)
        deliver = lambda message: self._on_message(worker.number, message)  # noqa: E731
        threading.Thread(target=worker.process.serve, args=(deliver,), daemon=True).start()
        return worker

    def take_prestarted(self) -> None:
        """Take the prestarted process, if there is one, as a spare."""
        prestarted = take_prestarted()
        if prestarted is None:
            return
        try:
            tensors = self._tensors.open(prestarted.folder)
        except OSError:
            prestarted.discard()
            return
        self._started += 1
        worker = self._add(prestarted.process, tensors)
        self.spares.add(HERE, worker)
        prestarted.deliver_to(lambda message: self._on_message(worker.number, message))

    def warm_up(self, configurations: Iterable[Configuration]) -> None:
        """Start processes for queues to come, as many as may work at once."""
        self.spares.warm_up(configurations, self._processes)

    def make_way(self) -> None:
        """Stop idle processes elsewhere if they hold what a starting one of the same runtime may wait for.

        Behind ``srun`` both may need the only device. The starting process waits in Slurm's queue without a
        limit, and the idle one would wait for the answer that only the starting process can give.
        """
        for starting in tuple(self.workers.values()):
            if starting.ready or starting.stopping or starting.queue is None or starting.is_local:
                continue
            runtime = starting.queue.configuration.runtime
            for other in tuple(self.workers.values()):
                if not other.idle or other.has_tasks_queued or other.queue is None:
                    continue
                if other.queue.configuration.runtime == runtime and other.place is starting.place:
                    other.stop()

    def _wants_worker(self, queue: TaskQueue) -> bool:
        alive = [worker for worker in self.serving(queue) if not worker.stopping]
        queue.alive = len(alive)
        task_s = min((worker.pace.task_s for worker in alive), default=0.0)
        return queue.wants_worker(len(alive), sum(not worker.ready for worker in alive), task_s)

    def _add(self, process: AgentProcess, tensors: Tensors) -> Worker:
        worker = self.workers[self._started] = Worker(self._started, process, tensors)
        return worker

    # --- waiting ---

    def is_quiet(self, but_for: Worker) -> bool:
        """Return whether every other process is at rest, and nothing is being built."""
        others = (worker for worker in self.workers.values() if worker is not but_for)
        return not (self._leaving or self.builds.busy) and all(worker.at_rest for worker in others)

    def next_deadline(self) -> float | None:
        """Return the monotonic time at which something is due even if no message comes."""
        due = [self._admission.retry_at, self.fleet.next_deadline()]
        for worker in self.workers.values():
            due += (worker.deadline, worker.leaves_at, worker.look_at)
        return min((at for at in due if at is not None), default=None)

    def expire(self) -> bool:
        """Kill workers at their time limit, and stop those whose slot others may need.

        Returns:
            Return whether it is time to check a device again.
        """
        now = time.monotonic()
        for worker in self.workers.values():
            worker.look_for_life(now, SILENT_S)
            if worker.deadline is not None and worker.deadline <= now:
                worker.expire(now)
            elif worker.leaves_at is not None and worker.leaves_at <= now:
                if worker.has_tasks_queued:  # they wait for an answer of the CPU provider
                    worker.leaves_at = None
                else:
                    worker.stop()
        due = self.fleet.expire(now)
        return self._admission.expire(now) or due

    # --- ending ---

    def remove(self, worker: Worker) -> None:
        """Remove a worker whose process has ended, or will end soon."""
        del self.workers[worker.number]
        self._queue_watch.forget(worker.number)
        if worker.queue is None:
            self.spares.on_end(worker)

    def reap(self, worker: Worker, then: Callable[[], None]) -> None:
        """Wait in a thread for a removed worker's process to end, release its slot, and call ``then``."""

        def wait() -> None:
            self._wait_for(worker, worker.teardown_s if worker.asked_to_end else STOP_S)
            worker.tensors.remove()
            worker.slot.release()
            self._tell_left(worker)
            then()

        thread = threading.Thread(target=wait, daemon=True)
        self._leaving[worker.number] = worker, thread
        thread.start()

    def _wait_for(self, worker: Worker, grace_s: float) -> None:
        self._on_ended(worker, worker.process.wait(grace_s))

    def _tell_left(self, worker: Worker) -> None:
        """Name the processes left behind by one that ended in its turn: no cell's record has them."""
        if worker.process.left:
            name = "a spare process" if worker.queue is None else f"target {worker.queue.name}: a process"
            self._warn(f"{name} ended, and {orphans_text(worker.process.left)}")

    def on_gone(self, worker: Worker) -> None:
        """Forget a removed worker whose process has ended."""
        del self._leaving[worker.number]

    def close(self, *, gently: bool) -> None:
        """End every process: idle ones may exit by themselves if ``gently``; all others are killed."""
        self.builds.cancel()
        self._queue_watch.close()
        leaving = tuple(self._leaving.values())
        for worker, _ in leaving:
            if not gently:
                worker.process.kill()
        threads = []
        for worker in self.workers.values():
            if gently and worker.idle:
                worker.stop()
            elif not (gently and worker.asked_to_end):
                worker.process.kill()
            grace_s = worker.teardown_s if gently and worker.asked_to_end else 0.0
            threads.append(threading.Thread(target=self._wait_for, args=(worker, grace_s), daemon=True))
        for thread in threads:
            thread.start()
        ending = (*self.workers.values(), *(worker for worker, _ in leaving))
        limits_s = [worker.teardown_s for worker in ending if gently and worker.asked_to_end]
        deadline = time.monotonic() + max(limits_s, default=0.0) + STOP_S
        for thread in (*threads, *(thread for _, thread in leaving)):
            thread.join(max(0.0, deadline - time.monotonic()))
        for worker in self.workers.values():
            worker.slot.release()
            self._tell_left(worker)
        self.fleet.close()
        self._tensors.close()
        self._scratch.cleanup()
