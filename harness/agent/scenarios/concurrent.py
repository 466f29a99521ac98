"""Scenario ``concurrent``: several threads run one session at the same time, as onnxruntime allows.

If one run's data gets into another run, this is visible only if the two compute different things. So each
thread alternates between the given inputs and others.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from harness.agent.difference import difference
from harness.agent.faded import CROSS_TALK, faded
from harness.agent.job_run import Feeds, JobRun, RawOutputs
from harness.agent.plain import conclude
from harness.agent.session_run import PROGRESS_S
from harness.agent.system import elapsed_ms


class _CrossTalkError(Exception):
    """A run computed something else among others than it does alone."""


def play(job_run: JobRun) -> None:
    """Run alone, then in threads; the results furthest from those alone are judged.

    Raises:
        _CrossTalkError: Results for the other inputs are far from those of a run alone.
    """
    settings = job_run.job["scenario_settings"]
    job_run.create()
    run = job_run.runner
    given, alone = map(list, zip(*map(job_run.run, job_run.job["data_sets"])))
    job_run.enter("run")
    started = time.perf_counter()
    run(given[0])  # the first run has now prepared everything
    job_run.facts.update(threads=settings["threads"], alone_ms=elapsed_ms(started))
    job_run.enter("run")
    other = faded(given[0])
    inputs, expected = ([*given, other], [*alone, run(other)]) if other else (given, alone)
    runs = _ConcurrentRuns(run, inputs, expected, len(given))
    started = time.perf_counter()
    try:
        runs.run(settings, job_run.enter)
    finally:
        job_run.facts.update(runs.facts(), all_ms=elapsed_ms(started))
    # The harness has no reference for the other inputs, so their results are judged here.
    for apart, _ in runs.worst[len(given) :]:
        if apart > CROSS_TALK >= difference(expected[-1], run(other)):
            reason = (
                "among concurrent runs a result is off by %.3g of its largest value, which it is not alone"
            )
            raise _CrossTalkError(reason % apart)
    job_run.result["outputs"] = [job_run.send(outputs) for _, outputs in runs.worst[: len(given)]]
    conclude(job_run)


class _ConcurrentRuns:
    """Runs one session in several threads, and compares the outputs with those of each run alone.

    The inputs are those of the ``given`` data sets, then others, if there are any.
    """

    def __init__(
        self, run: Callable[[Feeds], RawOutputs], inputs: list[Feeds], expected: list[RawOutputs], given: int
    ) -> None:
        self.call = run
        self.inputs = inputs
        self.expected = expected
        self.given = given
        self.worst = [(0.0, outputs) for outputs in expected]
        self.runs = [0] * len(inputs)
        self.differing = [0] * len(inputs)
        self.under_way = self.at_once = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run(self, settings: dict[str, Any], enter: Callable[[str], None]) -> None:
        """Let ``threads`` threads run the given inputs ``runs`` times each, within ``budget_s`` seconds.

        Raises:
            Exception: The error of the first run that failed.
        """
        until = time.perf_counter() + settings["budget_s"]
        pool = [
            threading.Thread(target=self._work, args=(number, settings["runs"], until), daemon=True)
            for number in range(settings["threads"])
        ]
        enter("run")
        for thread in pool:
            thread.start()
        left, made, error = len(pool), 0, None
        while left:
            try:
                ended = self.ended.get(timeout=PROGRESS_S)
                error = error or ended
                left -= 1
            except queue.Empty:
                pass
            if made != sum(self.runs):  # a hang is no progress
                made = sum(self.runs)
                enter("run")
        if error is not None:
            raise error

    def _work(self, number: int, runs: int, until: float) -> None:
        try:
            for turn in range(runs):
                # A limit for safety: the harness notes missing runs in the record.
                if self.stopped.is_set() or (turn and time.perf_counter() > until):
                    break
                self._run_once((number + turn) % self.given)
                if len(self.inputs) > self.given:
                    self._run_once(self.given)
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            self.stopped.set()
            self.ended.put(error)
        else:
            self.ended.put(None)

    def _run_once(self, index: int) -> None:
        with self.lock:
            self.under_way += 1
            self.at_once = max(self.at_once, self.under_way)
        try:
            outputs = self.call(self.inputs[index])
        finally:
            with self.lock:
                self.under_way -= 1
        apart = difference(self.expected[index], outputs)
        with self.lock:
            self.runs[index] += 1
            self.differing[index] += apart > 0
            if apart > self.worst[index][0]:
                self.worst[index] = (apart, outputs)

    def facts(self) -> dict[str, Any]:
        """Return the counts, and the largest difference."""
        return {
            "runs": sum(self.runs[: self.given]),
            "other_runs": sum(self.runs[self.given :]),
            "at_once": self.at_once,
            "differing_runs": sum(self.differing[: self.given]),
            "differing_other_runs": sum(self.differing[self.given :]),
            "difference": max(apart for apart, _ in self.worst),
        }
