"""The planned end of a process: how it reacted to the order to end, which is evidence about its target.

Only the harness's order ended it, so a signal, another exit code or a hang comes from the libraries that it
loaded.
"""

from typing import Any

from harness.agent.native_stack.block import without_stacks
from harness.core.records.verdict import Phase
from harness.core.text.errors import one_line
from harness.engine.processes.process import FROM_OUTSIDE
from harness.engine.tasks.events import ProcessEnded
from harness.engine.tasks.outcome import Died, Hung
from harness.engine.tasks.task import Task
from harness.engine.workers.agent_environments import Environments
from harness.engine.workers.worker import Worker

HANG = "hang"

_OTHERS = (FROM_OUTSIDE, "SIGKILL")
"""Signals that no program sends to itself: the system or a person sent them."""

_PHASES = (Phase.TEARDOWN, Phase.UNLOAD, Phase.EXIT)

_PRINTED_CHARS = 160


def planned_end(worker: Worker, cause: str, environments: Environments) -> ProcessEnded | None:
    """Return how a process ended that was asked to end; None if this says nothing about its target.

    The process has been waited for; ``cause`` is what ``AgentProcess.wait`` returned.
    """
    process = worker.process
    hangs = process.went_on or worker.timed_out
    if not worker.asked_to_end or (not hangs and (process.killed or cause in _OTHERS)):
        return None
    if not cause and process.leaving in (Phase.TEARDOWN, Phase.UNLOAD):
        cause = "exit code 0"  # it named a phase, and reached no other one
    if not hangs and not cause:
        return _ended(worker, environments)
    phase = next((one for one in _PHASES if one == process.leaving), Phase.EXIT)
    printed = process.printed()
    return _ended(
        worker,
        environments,
        phase=phase,
        cause=HANG if hangs else cause,
        reason=_reason(phase, "" if hangs else cause, worker.teardown_s, printed),
        printed=printed,
    )


def end_in_teardown(
    worker: Worker, task: Task, end: Died | Hung, environments: Environments
) -> ProcessEnded | None:
    """Return how a process ended while it released the session of a task with a result; None as above.

    The cell keeps the verdict that its result deserves.
    """
    slow = isinstance(end, Hung) and end.at_work
    if slow or (isinstance(end, Died) and (not end.cause or end.cause in _OTHERS)):
        return None
    how = f"died: {end.cause}" if isinstance(end, Died) else f"did not end within {end.limit_s:g} s"
    return _ended(
        worker,
        environments,
        phase=Phase.TEARDOWN,
        cause=end.cause if isinstance(end, Died) else HANG,
        reason=f"a process that released the session of {task.about.suite}/{task.about.model}, after the "
        f"result, {how}",
        printed=end.printed,
    )


def _ended(worker: Worker, environments: Environments, **how: Any) -> ProcessEnded | None:
    """Return the end of a process of a target; None for one without a target, or with a lost connection."""
    queue = worker.queue
    if queue is None or queue.is_reference or worker.process.lost:
        return None
    place = "" if worker.place is None else worker.place.name
    expected = environments.exit_verdicts(queue.name, place)
    return ProcessEnded(target=queue.name, place=place, expected=expected, **how)


def _reason(phase: Phase, cause: str, limit_s: float, printed: str) -> str:
    """Return in one line how a process ended; an empty cause means that it did not."""
    during = {
        Phase.TEARDOWN: "while its last session was released",
        Phase.UNLOAD: "while its plugin library was unregistered",
        Phase.EXIT: "while the process exited",
    }[phase]
    verb = "ended" if cause.startswith("exit code") else "died"
    how = f"a process that was asked to end {verb} {during}: {cause}"
    if not cause:
        how = f"a process that was asked to end did not within {limit_s:g} s, {during}, and was killed"
    last = without_stacks(printed).strip().rpartition("\n")[2]
    return how + (f"; it printed: {one_line(last, _PRINTED_CHARS)}" if last else "")
