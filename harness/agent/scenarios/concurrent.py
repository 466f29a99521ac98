"""Scenario ``concurrent``: several threads run one session at the same time, as onnxruntime allows.

If one run's data gets into another run, it shows only where the two compute something different. So each
thread alternates between the given inputs and others.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.difference import difference
from harness.agent.job_run import Feeds, JobRun, Outputs
from harness.agent.plain import conclude
from harness.agent.run import PROGRESS_S
from harness.agent.system import elapsed_ms

FADE = 0.875  # factor for the values of other inputs: exact in every type, and in any range around zero
CROSS_TALK = 0.05  # share of the largest value, beyond what rounding explains


class CrossTalkError(Exception):
    """A run among others computed something else than it does alone."""


def play(job_run: JobRun) -> None:
    """Run alone, then in threads; the results furthest from those alone are judged.

    Raises:
        CrossTalkError: Results of other inputs than the given ones are far from those alone.
    """
    settings = job_run.job["scenario_settings"]
    job_run.create()
    run = job_run.runner
    given, alone = map(list, zip(*map(job_run.run, job_run.job["data_sets"])))
    job_run.enter("run")
    started = time.perf_counter()
    run(given[0])  # everything that the first run had to prepare is there now
    job_run.facts.update(threads=settings["threads"], alone_ms=elapsed_ms(started))
    job_run.enter("run")
    other = _other_inputs(given[0])
    runs = ConcurrentRuns(run, given, alone, other, run(other) if other else [])
    started = time.perf_counter()
    try:
        runs.run(settings, job_run.enter)
    finally:
        job_run.facts.update(runs.facts(), all_ms=elapsed_ms(started))
    # The harness has no reference for the other inputs, so their results are judged here.
    if runs.other_difference > CROSS_TALK >= difference(runs.other_alone, run(other)):
        reason = "among concurrent runs a result is off by %.3g of its largest value, which it is not alone"
        raise CrossTalkError(reason % runs.other_difference)
    job_run.result["outputs"] = [job_run.send(outputs) for _, outputs in runs.worst]
    conclude(job_run)


def _other_inputs(feeds: Feeds) -> Feeds:
    """Return inputs of the same shapes with other values; empty if there are none.

    Only matrices and beyond change: a vector of floats may hold the scales of a Resize, which decide a shape.
    """
    other = {
        name: (feed * feed.dtype.type(FADE))
        for name, feed in feeds.items()
        if isinstance(feed, np.ndarray) and feed.dtype.kind == "f" and feed.ndim > 1 and feed.size
    }
    return {**feeds, **other} if other else {}


class ConcurrentRuns:
    """Runs one session in several threads, and compares the outputs.

    Args:
        run: Runs the session.
        given: The inputs of each data set.
        alone: The outputs of each, from a run with no other at the same time.
        other: Further inputs; empty for none.
        other_alone: Their outputs.
    """

    def __init__(
        self,
        run: Callable[[Feeds], Outputs],
        given: list[Feeds],
        alone: list[Outputs],
        other: Feeds,
        other_alone: Outputs,
    ) -> None:
        self.call = run
        self.given = given
        self.alone = alone
        self.other = other
        self.other_alone = other_alone
        self.worst = [(0.0, outputs) for outputs in alone]
        self.other_difference = 0.0
        self.runs = self.other_runs = self.differing = self.differing_others = 0
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
            if made != self.runs + self.other_runs:  # a hang is no progress
                made = self.runs + self.other_runs
                enter("run")
        if error is not None:
            raise error

    def _work(self, number: int, runs: int, until: float) -> None:
        """Do what one thread has to do."""
        try:
            for turn in range(runs):
                if self.stopped.is_set() or (turn and time.perf_counter() > until):
                    break
                self._run_given((number + turn) % len(self.given))
                if self.other:
                    self._run_other()
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            self.stopped.set()
            self.ended.put(error)
        else:
            self.ended.put(None)

    def _run_given(self, index: int) -> None:
        outputs = self._counted(self.given[index])
        apart = difference(self.alone[index], outputs)
        with self.lock:
            self.runs += 1
            self.differing += apart > 0
            if apart > self.worst[index][0]:
                self.worst[index] = (apart, outputs)

    def _run_other(self) -> None:
        apart = difference(self.other_alone, self._counted(self.other))
        with self.lock:
            self.other_runs += 1
            self.differing_others += apart > 0
            self.other_difference = max(self.other_difference, apart)

    def _counted(self, feeds: Feeds) -> Outputs:
        """Run once, and count the runs at this time."""
        with self.lock:
            self.under_way += 1
            self.at_once = max(self.at_once, self.under_way)
        try:
            return self.call(feeds)
        finally:
            with self.lock:
                self.under_way -= 1

    def facts(self) -> dict[str, Any]:
        """Return the counts, and the largest difference."""
        return {
            "runs": self.runs,
            "other_runs": self.other_runs,
            "at_once": self.at_once,
            "differing_runs": self.differing,
            "differing_other_runs": self.differing_others,
            "difference": max([apart for apart, _ in self.worst] + [self.other_difference]),
        }
