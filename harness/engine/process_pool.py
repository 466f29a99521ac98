"""The pool: which processes there are, what each of them serves, and when another may start."""

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.core.errors import one_line
from harness.corpus.cache import cache_root
from harness.engine.builds import Builds
from harness.engine.device import Slot, Slots
from harness.engine.job import HERE, Configuration, Interpreter, is_local
from harness.engine.lane import Lane
from harness.engine.prestarted import take_prestarted
from harness.engine.process import AgentProcess
from harness.engine.remote import start_process
from harness.engine.rotation import Rotation
from harness.engine.tensor_files import TensorHome, Tensors
from harness.engine.uv import InstallError
from harness.engine.worker import Worker

STOP_S = 5.0
"""Seconds that processes get to exit by themselves at the end of a run."""

ASK_AGAIN_S = 0.2
"""Seconds between two looks at a device that another run uses."""

SPARE_START_S = 30.0
"""Seconds that a spare process may take to start; beyond that it hangs, and there will be no other."""

SPARE_AFTER_S = 5.0
"""A lane at work for so long gets a spare process: starting one costs some 0.3 s of a processor."""


class ProcessPool:
    """Workers by their lanes, and spare ones.

    A spare is a process that has imported onnxruntime and not been told yet what to serve; it holds no
    device, and can take the place of a worker of any lane with its interpreter.

    Args:
        processes: Workers at once that compute on this machine's processors.
        hear: Called with a worker's number and a message from it, from other threads.
        warn: Called with a line for people.
        builds: Environments that are built for it.
    """

    def __init__(
        self,
        processes: int,
        hear: Callable[[int, Any], None],
        warn: Callable[[str], None],
        builds: Builds,
    ) -> None:
        self.builds = builds
        self.lanes: list[Lane] = []
        self.workers: dict[int, Worker] = {}
        self.ask_again_at: float | None = None
        """When a device that another run uses is looked at again."""
        self._processes = processes
        self.rotation = Rotation(processes)
        self._hear = hear
        self._warn = warn
        self._spares: dict[Interpreter, Worker] = {}
        self._spareless: set[Interpreter] = set()
        self._started = 0
        self._leaving: dict[int, tuple[Worker, threading.Thread]] = {}
        """Removed workers whose process is not gone yet, nor their place given back; and who waits for it."""
        self._slots = Slots(cache_root() / "locks")
        self._told: set[str] = set()
        self._scratch = tempfile.TemporaryDirectory(prefix="ep-harness-", ignore_cleanup_errors=True)
        self._tensors = TensorHome()

    def add(self, lane: Lane) -> None:
        """Take up a lane. References come last; see ``Dispatcher.assign``."""
        self.lanes.append(lane)
        self.sort()

    def sort(self) -> None:
        """The longest lane starts first, so that it is not the last one to end; those that run alone last."""
        self.lanes.sort(key=lambda lane: (lane.is_reference, lane.alone, -lane.expected_ms))

    def serving(self, lane: Lane) -> tuple[Worker, ...]:
        """The workers of a lane."""
        return tuple(worker for worker in self.workers.values() if worker.lane is lane)

    # --- starting ---

    def wants_worker(self, lane: Lane) -> bool:
        """Whether another process would find work in a lane."""
        alive = [worker for worker in self.serving(lane) if not worker.stopping]
        return lane.wants_worker(len(alive), sum(not worker.ready for worker in alive))

    def staff(self, lane: Lane) -> None:
        """Start a process for a lane, if it wants one, its runtime is built and there is room.

        Raises:
            InstallError: Its runtime cannot be built.
            OSError: Its interpreter cannot be started.
            ValueError: There is no way to start it.
        """
        while self.wants_worker(lane) and self.builds.is_there(lane.configuration.runtime):
            admitted, slot = self._admit(lane)
            if not admitted:
                return
            try:
                config = lane.configuration
                worker = self._spares.pop(config.interpreter, None) or self._launch(config)
            except BaseException:
                if slot is not None:
                    slot.release()
                raise
            worker.serve(lane, slot)

    def keep_spare(self, lane: Lane) -> None:
        """Have a spare process for a lane with work left that lost one, or may do so.

        None for a lane that runs alone: a process that starts is something else that runs.
        """
        worth_it = lane.losses or any(
            worker.retiring or (worker.ready and time.monotonic() - worker.ready_at > SPARE_AFTER_S)
            for worker in self.serving(lane)
        )
        interpreter = lane.configuration.interpreter
        has_one = interpreter in self._spares or interpreter in self._spareless
        if worth_it and lane.queue and lane.verdict is None and not has_one and not lane.alone:
            self._start_spare(lane.configuration)

    def welcome(self) -> None:
        """Take in the process that was started before there was a pool, as a spare one."""
        prestarted = take_prestarted()
        if prestarted is None:
            return
        try:
            tensors = self._tensors.open(prestarted.folder)
        except OSError:
            prestarted.discard()
            return
        self._started += 1
        spare = self._spares[HERE] = self._enlist(prestarted.process, tensors)
        spare.stand_by(SPARE_START_S)
        prestarted.deliver_to(lambda message: self._hear(spare.number, message))

    def warm_up(self, configurations: Iterable[Configuration]) -> None:
        """Start processes that lanes to come can use, as many as may work at once.

        Args:
            configurations: Of these lanes; what is elsewhere, or still to be built, waits for its turn.
        """
        for configuration in configurations:
            runtime = configuration.runtime
            if len(self._spares) < self._processes and is_local(runtime) and not runtime.packages:
                self._start_spare(configuration)

    def _start_spare(self, configuration: Configuration) -> None:
        if configuration.interpreter not in self._spares:
            # Such as too many processes, or no such interpreter; it works without, or its lane will tell.
            with contextlib.suppress(OSError, ValueError, InstallError):
                spare = self._spares[configuration.interpreter] = self._launch(configuration)
                spare.stand_by(SPARE_START_S)

    def do_without_spares(self, lane: Lane) -> None:
        """Spare processes do not start beside others of a lane's interpreter."""
        self._spareless.add(lane.configuration.interpreter)

    def is_quiet(self, but_for: Worker) -> bool:
        """Whether every other process waits, and no question does."""
        questions = any(lane.queue for lane in self.lanes if lane.is_reference)
        others = (worker for worker in self.workers.values() if worker is not but_for)
        under_way = questions or self._leaving or self.builds.busy
        return not under_way and all(worker.at_rest for worker in others)

    def _launch(self, config: Configuration) -> Worker:
        self._started += 1
        folder = Path(self._scratch.name) / str(self._started)
        folder.mkdir()
        tensors = self._tensors.open(folder) if is_local(config.runtime) else Tensors()
        worker = self._enlist(start_process(config.runtime, dict(config.env), folder), tensors)
        deliver = lambda message: self._hear(worker.number, message)  # noqa: E731
        threading.Thread(target=worker.process.serve, args=(deliver,), daemon=True).start()
        return worker

    def _enlist(self, process: AgentProcess, tensors: Tensors) -> Worker:
        worker = self.workers[self._started] = Worker(self._started, process, tensors)
        return worker

    def _admit(self, lane: Lane) -> tuple[bool, Slot | None]:
        """Whether another worker of a lane may start now, and its place on the device where it needs one."""
        if lane.is_reference:
            return True, None
        others = [worker for worker in self._at_work() if worker.lane is not lane]
        somebody_alone = lane.alone or any(worker.lane and worker.lane.alone for worker in others)
        if somebody_alone and (self._leaving or not self._make_room(others, allowed=0)):
            return False, None
        if lane.device is not None:
            return self._take_slot(lane, lane.device, others)
        if not _is_here(lane):
            return True, None
        computing = [worker for worker in self._at_work() if _computes_here(worker.lane)]
        return self._make_room(computing, self._processes - 1), None

    def _make_room(self, workers: list[Worker], allowed: int) -> bool:
        """Whether there are no more workers than allowed; else one that is idle is told to go."""
        if len(workers) <= allowed:
            return True
        self._send_home(workers)
        return False

    def _take_slot(self, lane: Lane, device: str, others: list[Worker]) -> tuple[bool, Slot | None]:
        try:
            # Alone means: no process of another run on it, either.
            take = self._slots.take_all if lane.alone else self._slots.take
            slot = take(device, lane.slots)
        except OSError as error:
            self._tell_once(f"devices cannot be locked against other runs: {one_line(error)}")
            return True, None
        if slot is not None:
            return True, slot
        self._send_home([worker for worker in others if _occupies(worker, device)])
        ours = (*self.workers.values(), *(worker for worker, _ in self._leaving.values()))
        if not any(_occupies(worker, device) for worker in ours):
            self._tell_once(f"target {lane.name} waits: another run uses its device ({device})")
        self.ask_again_at = time.monotonic() + ASK_AGAIN_S
        return False, None

    def _send_home(self, workers: list[Worker]) -> None:
        idle = next((worker for worker in workers if worker.idle and not _wanted(worker)), None)
        if idle is not None:
            idle.stop()

    def _at_work(self) -> Iterator[Worker]:
        """Every worker of a target."""
        return (worker for worker in self.workers.values() if worker.lane and not worker.lane.is_reference)

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._warn(text)

    # --- ending ---

    def remove(self, worker: Worker) -> None:
        """A worker's process has ended, or is about to."""
        del self.workers[worker.number]
        if worker.lane is None:
            # It ended without ever having been of use; the next one would, too.
            self._spareless |= {key for key, spare in self._spares.items() if spare is worker}
            self._spares = {key: spare for key, spare in self._spares.items() if spare is not worker}

    def reap(self, worker: Worker, then: Callable[[], None]) -> None:
        """Wait, elsewhere, for a removed worker's process to be gone, then give its place back."""

        def wait() -> None:
            worker.process.ended()
            worker.tensors.remove()
            if worker.slot is not None:
                worker.slot.release()
            then()

        thread = threading.Thread(target=wait, daemon=True)
        self._leaving[worker.number] = worker, thread
        thread.start()

    def is_gone(self, worker: Worker) -> None:
        """A removed worker's process is gone."""
        del self._leaving[worker.number]

    def next_deadline(self) -> float | None:
        """The monotonic time at which something is due even if no message comes."""
        due = [self.ask_again_at]
        for worker in self.workers.values():
            due += (worker.deadline, worker.leaves_at)
        return min((at for at in due if at is not None), default=None)

    def expire(self) -> bool:
        """Kill workers that are beyond their time limit; let go those that nobody needs.

        Returns:
            Whether it is time to look at a device again.
        """
        now = time.monotonic()
        ask_again = self.ask_again_at is not None and self.ask_again_at <= now
        if ask_again:
            self.ask_again_at = None
        for worker in self.workers.values():
            if worker.deadline is not None and worker.deadline <= now:
                worker.expire()
            elif worker.leaves_at is not None and worker.leaves_at <= now:
                if _wanted(worker):  # it waits for an answer of the CPU provider
                    worker.leaves_at = None
                else:
                    worker.stop()
        return ask_again

    def dismiss(self, *, gently: bool) -> None:
        """End every process.

        Args:
            gently: Let idle ones exit by themselves; the others are killed at once.
        """
        self.builds.cancel()
        grace = STOP_S if gently else 0.0
        leaving = tuple(self._leaving.values())
        for worker, _ in leaving:
            if not gently:
                worker.process.kill()
        threads = []
        for worker in self.workers.values():
            if gently and worker.idle:
                worker.stop()
            else:
                worker.process.kill()
            threads.append(threading.Thread(target=worker.process.ended, args=(grace,), daemon=True))
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + STOP_S
        for thread in (*threads, *(thread for _, thread in leaving)):
            thread.join(max(0.0, deadline - time.monotonic()))
        for worker in self.workers.values():
            if worker.slot is not None:
                worker.slot.release()
        self._tensors.close()
        self._scratch.cleanup()


def _wanted(worker: Worker) -> bool:
    """Whether an idle worker's lane has something for it, and just has not handed it over yet."""
    return bool(worker.lane and worker.lane.queue)


def _occupies(worker: Worker, device: str) -> bool:
    return worker.slot is not None and worker.slot.device == device


def _computes_here(lane: Lane | None) -> bool:
    return lane is not None and lane.device is None and _is_here(lane)


def _is_here(lane: Lane) -> bool:
    return is_local(lane.configuration.runtime)
