"""Scenario ``concurrent``: several threads run one session at the same time.

onnxruntime promises that a session can be run so. What gets from one run into another shows only where the
two compute something different: so each thread runs the given inputs and others by turns.
"""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.difference import difference
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.run import call
from harness.agent.system import elapsed_ms
from harness.agent.text import sendable
from harness.agent.wire import to_feed

TELL_S = 0.1  # seconds after which the harness hears that runs go on: its time limit holds for one run
FADE = (
    0.875  # what values of other inputs are multiplied by: exact in every type, and in any range around zero
)

CROSS_TALK = 0.05  # of the largest value: what no rounding explains

Feeds = dict[str, Any]
Outputs = list[Any]


class CrossTalkError(Exception):
    """A run among others has computed something else than it does alone."""


def play(job_run: JobRun) -> None:
    """Run alone, then in threads; the results furthest from those alone are what is judged.

    Raises:
        CrossTalkError: Results of other inputs than the given ones are far from those alone.
    """
    settings = job_run.job["scenario_settings"]
    session = job_run.create()
    names = [output.name for output in session.get_outputs()]
    types = [output.type.lower() for output in session.get_outputs()]
    run = functools.partial(call, session, names, types)
    given: list[Feeds] = []
    alone: list[Outputs] = []
    for inputs in job_run.job["data_sets"]:
        given.append({name: to_feed(wire) for name, wire in inputs})
        job_run.enter("run")
        started = time.perf_counter()
        alone.append(run(given[-1]))
        job_run.result["timings_ms"].setdefault("first_run", elapsed_ms(started))
    job_run.enter("run")
    started = time.perf_counter()
    run(given[0])  # what the first run had to prepare is there now
    job_run.facts.update(threads=settings["threads"], alone_ms=elapsed_ms(started))
    job_run.enter("run")
    other = varied(given[0])
    crowd = Crowd(run, given, alone, other, run(other) if other else [])
    started = time.perf_counter()
    try:
        crowd.run(settings, job_run.enter)
    finally:
        job_run.facts.update(crowd.facts(), all_ms=elapsed_ms(started))
    # Nobody else knows what the other inputs give, so what comes of them is judged here.
    if crowd.other_difference > CROSS_TALK >= difference(crowd.other_alone, run(other)):
        reason = "among concurrent runs a result is off by %.3g of its largest value, which it is not alone"
        raise CrossTalkError(reason % crowd.other_difference)
    job_run.result["names"] = sendable(names)
    job_run.result["outputs"] = [[job_run.files.send(wire) for wire in values] for _, values in crowd.worst]
    conclude(job_run)


def varied(feeds: Feeds) -> Feeds:
    """Inputs that the model takes as it takes the given ones, with other values; empty where there are none.

    Only matrices and beyond: a vector of floats may hold the scales of a Resize, which decide a shape.
    """
    other = {
        name: (feed * feed.dtype.type(FADE))
        for name, feed in feeds.items()
        if isinstance(feed, np.ndarray) and feed.dtype.kind == "f" and feed.ndim > 1 and feed.size
    }
    return {**feeds, **other} if other else {}


class Crowd:
    """Threads that run one session, and what came of it.

    Args:
        run: Runs the session.
        given: The inputs of each data set.
        alone: The outputs of each, as they come when nothing else runs.
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
        self.worst = [(0.0, values) for values in alone]
        self.other_difference = 0.0
        self.runs = self.other_runs = self.differing = self.differing_others = 0
        self.under_way = self.at_once = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run(self, settings: dict[str, Any], enter: Callable[[str], None]) -> None:
        """Let so many ``threads`` make so many ``runs`` each of the given inputs, in ``budget_s`` seconds.

        Raises:
            Exception: Whatever the first run that failed has raised.
        """
        until = time.perf_counter() + settings["budget_s"]
        pool = [
            threading.Thread(target=self.work, args=(number, settings["runs"], until), daemon=True)
            for number in range(settings["threads"])
        ]
        enter("run")
        for thread in pool:
            thread.start()
        left, made, error = len(pool), 0, None
        while left:
            try:
                ended = self.ended.get(timeout=TELL_S)
                error = error or ended
                left -= 1
            except queue.Empty:
                pass
            if made != self.runs + self.other_runs:  # a hang is no progress
                made = self.runs + self.other_runs
                enter("run")
        if error is not None:
            raise error

    def work(self, number: int, runs: int, until: float) -> None:
        """What one thread does."""
        try:
            for turn in range(runs):
                if self.stopped.is_set() or (turn and time.perf_counter() > until):
                    break
                self.run_given((number + turn) % len(self.given))
                if self.other:
                    self.run_other()
        except BaseException as error:  # noqa: BLE001 - raised again where somebody waits
            self.stopped.set()
            self.ended.put(error)
        else:
            self.ended.put(None)

    def run_given(self, index: int) -> None:
        """Run a data set once and compare."""
        values = self.counted(self.given[index])
        apart = difference(self.alone[index], values)
        with self.lock:
            self.runs += 1
            self.differing += apart > 0
            if apart > self.worst[index][0]:
                self.worst[index] = (apart, values)

    def run_other(self) -> None:
        """Run the other inputs once and compare."""
        apart = difference(self.other_alone, self.counted(self.other))
        with self.lock:
            self.other_runs += 1
            self.differing_others += apart > 0
            self.other_difference = max(self.other_difference, apart)

    def counted(self, feeds: Feeds) -> Outputs:
        """Run once, and count how many do so at this time."""
        with self.lock:
            self.under_way += 1
            self.at_once = max(self.at_once, self.under_way)
        try:
            return self.call(feeds)
        finally:
            with self.lock:
                self.under_way -= 1

    def facts(self) -> dict[str, Any]:
        """What was seen."""
        return {
            "runs": self.runs,
            "other_runs": self.other_runs,
            "at_once": self.at_once,
            "differing_runs": self.differing,
            "differing_other_runs": self.differing_others,
            "difference": max([apart for apart, _ in self.worst] + [self.other_difference]),
        }
