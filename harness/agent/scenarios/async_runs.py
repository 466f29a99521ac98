"""Scenario ``async_runs``: several runs of one session are in flight at once, started by ``run_async``.

The results come by callback, on threads of onnxruntime. This shows a provider that says it can run
concurrently and cannot, or that frees what a run in flight still uses.
"""

from __future__ import annotations

import queue
from typing import Any

from harness.agent.difference import difference
from harness.agent.faded import CROSS_TALK, faded
from harness.agent.job_run import Feeds, JobRun, RawOutputs
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.session_run import PROGRESS_S
from harness.agent.target_errors import ApiMissingError, UnsupportedError

_IN_FLIGHT = 4
"""Runs that are started before the first result is awaited; every second one has other inputs."""


class AsynchronousRunError(Exception):
    """A run in flight ended with an error."""


def play(job_run: JobRun) -> None:
    """Run alone, then several at once; of each data set the result furthest from the one alone is judged.

    Raises:
        UnsupportedError: This onnxruntime has no ``run_async``, or an output is of a type that numpy lacks.
        AsynchronousRunError: A callback got an error, or other inputs gave something else than alone.
    """

    def at_least_two_threads(settings: Any) -> None:
        # The calling thread counts as one: alone, onnxruntime has no thread for the run.
        if settings.intra_op_num_threads == 1:
            settings.intra_op_num_threads = 2

    job_run.adjust = at_least_two_threads
    job_run.create()
    if not hasattr(job_run.session, "run_async"):
        version = clean(job_run.target.ort.__version__)
        raise ApiMissingError("onnxruntime %s has no run_async, 1.16 is the first" % version)
    if job_run.runner.has_narrow:
        raise UnsupportedError("run_async gives numpy arrays, and numpy lacks the element type of an output")
    job_run.result["outputs"] = []
    apart, runs = 0.0, 0
    for inputs in job_run.job["data_sets"]:
        feeds, alone = job_run.run(inputs)
        other = faded(feeds)
        expected = [alone, job_run.runner(other) if other else alone]
        worst = [(0.0, outputs) for outputs in expected]
        for index, outputs in enumerate(_at_once(job_run, [feeds, other or feeds] * (_IN_FLIGHT // 2))):
            runs += 1
            distance = difference(expected[index % 2], outputs)
            if distance > worst[index % 2][0]:
                worst[index % 2] = (distance, outputs)
        judged = worst[0] if other else max(worst, key=lambda pair: pair[0])
        apart = max(apart, judged[0])
        job_run.result["outputs"].append(job_run.send(judged[1]))
        # If the given inputs show it, they are judged; and what differs alone is no matter of other runs.
        if other and worst[1][0] > CROSS_TALK >= judged[0] and not _wanders(job_run, other, expected[1]):
            reason = "among runs in flight a result is off by %.3g of its largest value; alone it is not"
            raise AsynchronousRunError(reason % worst[1][0])
    job_run.facts.update(runs=runs, in_flight=_IN_FLIGHT, equal_to_alone=apart == 0)
    if apart:
        job_run.facts["difference"] = apart
    conclude(job_run)


def _wanders(job_run: JobRun, feeds: Feeds, before: RawOutputs) -> bool:
    """Return whether a run alone is as far off as cross-talk would be."""
    return difference(before, job_run.runner(feeds)) > CROSS_TALK


def _at_once(job_run: JobRun, turns: list[Feeds]) -> list[RawOutputs]:
    """Start all runs, then wait for each; return their outputs in wire form, in the order of the inputs."""
    ended: queue.SimpleQueue[tuple[int, Any, str]] = queue.SimpleQueue()

    def take(values: Any, number: int, error: str) -> None:  # an exception here would end the process
        ended.put((number, values, error))

    job_run.begin_run()
    for index, feeds in enumerate(turns):
        job_run.session.run_async(job_run.runner.names, feeds, take, index)
    outputs: dict[int, RawOutputs] = {}
    while len(outputs) < len(turns):
        try:
            number, values, error = ended.get(timeout=PROGRESS_S)
        except queue.Empty:
            continue  # the harness limits the time of a run
        if error:
            raise AsynchronousRunError(clean(error))
        outputs[number] = job_run.runner.in_wire_form(list(values))
        job_run.further()
    return [outputs[number] for number in range(len(turns))]
