"""Scenario ``sessions``: many sessions are opened, run and closed, one after the other, in one process.

What is not given back adds up, and a teardown that breaks something breaks it for the next session.
"""

from __future__ import annotations

import functools
import statistics
import time
from typing import Any

from harness.agent.difference import difference
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.run import call
from harness.agent.system import elapsed_ms, resident_mib
from harness.agent.text import sendable
from harness.agent.wire import to_feed


def play(job_run: JobRun) -> None:
    """Open, run and close; the outputs furthest from the first session's are what is judged.

    The last session stays open for the result, and ends as that of a plain run does.
    """
    settings = job_run.job["scenario_settings"]
    census = Census()
    try:
        began = time.perf_counter()
        for number in range(1, settings["count"] + 1):
            job_run.enter("create")
            job_run.create()
            census.create_ms.append(job_run.result["timings_ms"]["create"])
            census.compare(run_all(job_run))
            over = number > 1 and time.perf_counter() - began > settings["budget_s"]
            if over or number == settings["count"]:
                break
            job_run.enter("teardown")
            started = time.perf_counter()
            job_run.session = None
            census.close_ms.append(elapsed_ms(started))
            census.resident_mib.append(resident_mib())
    finally:
        job_run.facts.update(census.facts())
    job_run.result["timings_ms"]["create"] = census.create_ms[0]
    job_run.result["outputs"] = [[job_run.files.send(wire) for wire in values] for _, values in census.worst]
    conclude(job_run)


def run_all(job_run: JobRun) -> list[list[Any]]:
    """Run each data set; their outputs in wire form."""
    names = [output.name for output in job_run.session.get_outputs()]
    types = [output.type.lower() for output in job_run.session.get_outputs()]
    job_run.result["names"] = sendable(names)
    run = functools.partial(call, job_run.session, names, types)
    outputs = []
    for inputs in job_run.job["data_sets"]:
        job_run.enter("run")
        feeds = {name: to_feed(wire) for name, wire in inputs}
        started = time.perf_counter()
        outputs.append(run(feeds))
        job_run.result["timings_ms"].setdefault("first_run", elapsed_ms(started))
    return outputs


class Census:
    """What was seen of the sessions so far."""

    def __init__(self) -> None:
        self.create_ms: list[float] = []
        self.close_ms: list[float] = []
        self.resident_mib: list[float | None] = []
        self.first: list[list[Any]] = []
        self.worst: list[tuple[float, list[Any]]] = []
        self.differing = 0

    def compare(self, outputs: list[list[Any]]) -> None:
        """Take the outputs of one more session, for each data set."""
        if not self.first:
            self.first = outputs
            self.worst = [(0.0, values) for values in outputs]
        apart = list(map(difference, self.first, outputs))
        self.differing += any(apart)
        for index, values in enumerate(outputs):
            if apart[index] > self.worst[index][0]:
                self.worst[index] = (apart[index], values)

    def facts(self) -> dict[str, Any]:
        """What is told of them."""
        if not self.create_ms:
            return {"count": 0}
        return {
            "count": len(self.create_ms),
            "create_first_ms": self.create_ms[0],
            "create_median_ms": round(statistics.median(self.create_ms), 4),
            "create_max_ms": max(self.create_ms),
            "teardown_max_ms": max(self.close_ms, default=0.0),
            "differing_sessions": self.differing,
            "difference": max((apart for apart, _ in self.worst), default=0.0),
            **growth(self.resident_mib),
        }


def growth(resident_mib: list[float | None]) -> dict[str, float]:
    """What the memory of the process says, in MiB after each session; nothing where the system tells nothing.

    Growth is that of a session in the second half, when pools and caches are filled.
    """
    told = [one for one in resident_mib if one is not None]
    if not told:
        return {}
    middle = len(told) // 2
    sessions = max(len(told) - 1 - middle, 1)
    return {
        "rss_first_mib": told[0],
        "rss_last_mib": told[-1],
        "growth_mib": round((told[-1] - told[middle]) / sessions, 3),
    }
