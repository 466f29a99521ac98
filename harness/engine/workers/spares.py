"""Spare processes: started in advance, so that a worker that ends has a successor at once.

A spare has imported onnxruntime and has no configuration yet. It holds no device, and can serve any queue
with its interpreter and environment variables.
"""

import contextlib
import time
from collections.abc import Callable, Iterable

from harness.engine.processes.launch import is_local
from harness.engine.processes.slurm import allocates
from harness.engine.tasks.configuration import Configuration, Interpreter
from harness.engine.workers.queues import TaskQueue
from harness.engine.workers.worker import Worker
from harness.runtimes.installer import InstallError

START_S = 30.0
"""Seconds that a spare process may take to start.

After that it counts as hung, and no other one is started.
"""

SPARE_AFTER_S = 5.0
"""A queue that has worked for so long gets a spare process: starting one costs some 0.3 s of a processor."""


class Spares:
    """At most one spare worker for each interpreter."""

    def __init__(self, launch: Callable[[Configuration], Worker]) -> None:
        self._launch = launch
        self._workers: dict[Interpreter, Worker] = {}
        self._failed: set[Interpreter] = set()

    def take(self, interpreter: Interpreter) -> Worker | None:
        """Return the spare of an interpreter, once; None if there is none."""
        return self._workers.pop(interpreter, None)

    def add(self, interpreter: Interpreter, worker: Worker) -> None:
        """Take a worker whose process has just been started."""
        self._workers[interpreter] = worker
        worker.begin_spare(START_S)

    def on_end(self, worker: Worker) -> None:
        """Forget a worker that ended unused: the next one would do the same."""
        self._failed |= {key for key, spare in self._workers.items() if spare is worker}
        self._workers = {key: spare for key, spare in self._workers.items() if spare is not worker}

    def on_failed_start(self, interpreter: Interpreter) -> None:
        """Start no more spares of an interpreter that does not start beside others."""
        self._failed.add(interpreter)

    def keep_for(self, queue: TaskQueue, workers: Iterable[Worker]) -> None:
        """Start a spare for a queue that has tasks left and that lost a process or probably will.

        A queue that runs alone gets none: nothing may start beside it. A runtime that a scheduler starts gets
        none: it would keep a device from others. Places get none: it is unknown which one loses a process
        next.
        """
        is_needed = queue.losses or any(
            worker.retiring or (worker.ready and time.monotonic() - worker.ready_at > SPARE_AFTER_S)
            for worker in workers
        )
        interpreter = queue.configuration.interpreter
        has_one = interpreter in self._workers or interpreter in self._failed
        may_start = not (queue.alone or queue.places or allocates(queue.configuration.runtime))
        if is_needed and queue.tasks and queue.verdict is None and not has_one and may_start:
            self._start(queue.configuration)

    def warm_up(self, configurations: Iterable[Configuration], most: int) -> None:
        """Start spares for queues to come, unless they are remote or still to be built."""
        for configuration in configurations:
            runtime = configuration.runtime
            is_elsewhere = not is_local(runtime) or runtime.places is not None
            if len(self._workers) < most and not is_elsewhere and not runtime.packages:
                self._start(configuration)

    def _start(self, configuration: Configuration) -> None:
        if configuration.interpreter not in self._workers:
            # Such as too many processes, or a missing interpreter, which the queue's own start reports.
            with contextlib.suppress(OSError, ValueError, InstallError):
                self.add(configuration.interpreter, self._launch(configuration))
