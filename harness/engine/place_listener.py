"""The listener of places: separates what the end of a process says about its machine and about its cell."""

from collections.abc import Callable
from typing import Any

import msgspec

from harness.agent.native_stack.block import without_stacks
from harness.core.records.verdict import Cause, Phase
from harness.core.text.errors import one_line
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.measuring.early_end import problem_of
from harness.engine.processes.native_crash import died_in, native_crash
from harness.engine.processes.slurm import told_end
from harness.engine.tasks.events import Event, Warned
from harness.engine.tasks.outcome import Died, Ending, Hung, Raised, Ran, Rejected, Unavailable
from harness.engine.workers.planned_end import end_in_teardown
from harness.engine.workers.queues import TaskQueue
from harness.engine.workers.worker import Worker
from harness.places.fleet import Fleet
from harness.places.place_state import PlaceState

MOST_LOSSES = 5
"""Attempts at a cell that may end because its machine or process was killed from outside.

If one of eight places is killed every two seconds, a cell of half a second is hit by chance in 3 % of its
attempts.
"""


AnnounceTarget = Callable[[TaskQueue, dict[str, Any], str], None]
"""Announces the target of a queue with its environment, once, and why it cannot be used."""


class PlaceListener(msgspec.Struct, frozen=True, eq=False):
    """Reacts to the ends of processes at places: the provider is not to blame for what the machine did."""

    fleet: Fleet
    pipeline: CellPipeline
    announce: Callable[[Event], None]
    announce_target: AnnounceTarget

    def refuse(
        self,
        queue: TaskQueue,
        place: PlaceState,
        verdict: Unavailable | Rejected,
        fingerprint: dict[str, Any],
    ) -> None:
        """Start no process of a configuration at a place; without any place the configuration is unusable."""
        queue.refused[place.name] = verdict
        problem = problem_of(verdict)
        if queue.places is not None and queue.places.is_lost(queue.refused):
            queue.verdict = verdict
            self.announce_target(queue, fingerprint, problem)
        else:
            self.announce(
                Warned(message=f"target {queue.name} cannot be used at place {place.name}: {problem}")
            )

    def on_end(self, worker: Worker, place: PlaceState, queue: TaskQueue, end: Died | Hung) -> None:
        """React to the end of a process at a place: the provider is not to blame for what the machine did."""
        places = self.fleet.at(place)
        if not worker.ready:
            verdict = why_not_started(end, worker)
            places.fail(place, verdict.reason)
            if places.is_lost(queue.refused) and not any(state.cells for state in places.states):
                reason = f"none of its places can be used: {places.reasons()}"
                unusable = msgspec.structs.replace(verdict, reason=one_line(reason))
                queue.verdict = unusable
                self.announce_target(queue, {}, problem_of(unusable))
            return
        if worker.process.lost:
            places.fail(place, lost_reason(worker, end))
        if worker.in_flight:
            self._on_loss(worker, queue, end)

    def _on_loss(self, worker: Worker, queue: TaskQueue, end: Died | Hung) -> None:
        queue.losses += 1
        task = worker.in_flight.popleft()
        queue.tasks.extendleft(reversed(worker.in_flight))
        from_outside = worker.process.lost or (isinstance(end, Died) and end.cause == "SIGKILL")
        task.losses += from_outside
        if worker.result is not None:
            self.pipeline.conclude(task, with_teardown(worker.result, end))
            if ended := end_in_teardown(worker, task, end, self.pipeline.environments):
                self.announce(ended)
        elif from_outside and task.losses < MOST_LOSSES:
            task.attempt += 1
            queue.tasks.appendleft(task)
        elif worker.process.lost:
            reason = f"the connection was lost in phase {end.phase}, in each of {task.losses} tries"
            self.pipeline.conclude(task, Unavailable(cause=Cause.NO_DEVICE, reason=reason))
        else:
            self.pipeline.conclude(task, end)

    def on_no_place(self, queue: TaskQueue) -> None:
        """React to the loss of a target's last place: waiting tasks get no record."""
        if queue.places is None:
            return
        reasons = queue.places.reasons()
        refused = next(iter(queue.refused.values()), None)
        if refused is not None:
            queue.verdict = refused
            self.announce_target(queue, {}, problem_of(refused))
            return
        self.announce(
            Warned(
                message=f"target {queue.name}: no place is left ({reasons}); {queue.waiting:,} tasks cannot "
                "run. Mend the places, then continue the run with --resume"
            )
        )
        while queue.tasks or queue.checks:
            task = queue.tasks.popleft() if queue.tasks else queue.checks.popleft()
            self.pipeline.abandon(task, f"no place is left: {reasons}")


def why_not_started(end: Died | Hung, worker: Worker) -> Unavailable:
    """Return what the end of a process before it was ready shows."""
    registering = end.phase is Phase.REGISTER
    cause = Cause.REGISTRATION_FAILED if registering else Cause.IMPORT_FAILED
    if worker.process.lost or worker.waits is not None:
        cause = Cause.NO_DEVICE
    if isinstance(end, Died):
        how = (end.cause or "exited early") + died_in(native_crash(end.printed)).rstrip(",")
    elif worker.waits is not None:
        how = f"{worker.waits}, for {end.limit_s:g} s, the limit timeouts_s.queue"
    elif worker.process.greeting is None:
        how = f"no greeting of an agent in {end.limit_s:g} s (the command must pass stdin and stdout on)"
    else:
        how = f"no answer in {end.limit_s:g} s" + (f"; {end.told}" if end.told else "")
    last = told_end(end.printed) or one_line(without_stacks(end.printed).strip().rsplit("\n", 1)[-1])
    reason = f"the process ended in phase {end.phase}: {how}" + (f"; it printed: {last}" if last else "")
    return Unavailable(cause=cause, reason=reason, printed=end.printed)


def lost_reason(worker: Worker, end: Died | Hung) -> str:
    """Return in one line how a place was lost."""
    printed = end.printed.strip().rsplit("\n", 1)[-1]
    last = told_end(end.printed) or one_line(without_stacks(printed))
    how = worker.process.silence or "the connection to it was lost"
    return how + (f"; it printed: {last}" if last and not worker.process.silence else "")


def with_teardown(outcome: Ending, end: Died | Hung) -> Ending:
    """Return a result that arrived before the process died, with a note about the death."""
    how = (end.cause or "it exited") if isinstance(end, Died) else f"no end within {end.limit_s:g} s"
    how = "; ".join(filter(None, (how, end.left)))
    if isinstance(outcome, Raised):
        return msgspec.structs.replace(outcome, sick=f"in teardown, {how}")
    if not isinstance(outcome, Ran):
        return outcome
    return msgspec.structs.replace(outcome, teardown=f"the process died in teardown, after the result: {how}")
