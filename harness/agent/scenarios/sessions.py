"""Scenario ``sessions``: open, run and close many sessions in one process, one after the other.

Memory that a session does not free adds up, and damage by a teardown appears in the next session. Finally one
session runs as often as there were sessions: this shows memory that a run keeps.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from harness.agent.device_memory import device_mib
from harness.agent.furthest import FurthestFromFirst
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.process_figures import descriptors, figure
from harness.agent.system import elapsed_ms, resident_mib
from harness.agent.wire import to_feed

POINTS = 64
"""Largest number of points of a series; the harness accepts no more."""


def play(job_run: JobRun) -> None:
    """Open, run and close; the outputs furthest from the first session's are judged.

    The last session stays open for the result, and ends like that of a plain run.
    """
    settings = job_run.job["scenario_settings"]
    stats = _SessionStats()
    try:
        began = time.perf_counter()
        for number in range(1, settings["count"] + 1):
            job_run.enter("create")
            job_run.create()
            stats.create_ms.append(job_run.result["timings_ms"]["create"])
            stats.results.compare([job_run.run(inputs)[1] for inputs in job_run.job["data_sets"]])
            # A limit for safety: the harness notes missing sessions in the record.
            over = number > 1 and time.perf_counter() - began > settings["budget_s"]
            if over or number == settings["count"]:
                break
            job_run.enter("teardown")
            started = time.perf_counter()
            job_run.close()
            stats.close_ms.append(elapsed_ms(started))
            stats.resident_mib.append(resident_mib())
            stats.device_mib.append(device_mib())
            stats.threads.append(figure("Threads"))
            stats.descriptors.append(descriptors())
        if not over:
            _run_on(job_run, len(stats.create_ms), stats)
    finally:
        job_run.facts.update(stats.facts())
    job_run.result["timings_ms"]["create"] = stats.create_ms[0]
    job_run.result["outputs"] = [job_run.send(outputs) for _, outputs in stats.results.worst]
    conclude(job_run)


def _run_on(job_run: JobRun, runs: int, stats: _SessionStats) -> None:
    """Run the first data set as often as there were sessions, and note the memory after each run."""
    feeds = {name: to_feed(wire) for name, wire in job_run.job["data_sets"][0]}
    step = job_run.runner.step(feeds)
    for _ in range(runs):
        job_run.further()
        step()
        stats.of_runs_mib.append(resident_mib())


class _SessionStats:
    """Times, memory and differences of the sessions so far."""

    def __init__(self) -> None:
        self.create_ms: list[float] = []
        self.close_ms: list[float] = []
        self.resident_mib: list[float | None] = []
        self.device_mib: list[float | None] = []
        self.of_runs_mib: list[float | None] = []
        self.threads: list[int | None] = []
        self.descriptors: list[int | None] = []
        self.results = FurthestFromFirst()

    def facts(self) -> dict[str, Any]:
        """Return the facts about all sessions."""
        if not self.create_ms:
            return {"count": 0}
        return {
            "count": len(self.create_ms),
            "create_first_ms": self.create_ms[0],
            "create_median_ms": round(statistics.median(self.create_ms), 4),
            "create_max_ms": max(self.create_ms),
            "teardown_max_ms": max(self.close_ms, default=0.0),
            "differing_sessions": self.results.differing,
            "difference": self.results.apart,
            **_growth([one for one in self.resident_mib if one is not None]),
            **_series("rss_mib", self.resident_mib),
            **_series("device_mib", self.device_mib),
            **_series("run_rss_mib", self.of_runs_mib),
            **_series("threads", self.threads),
            **_series("descriptors", self.descriptors),
        }


def _series(name: str, values: Sequence[float | None]) -> dict[str, list[float]]:
    """Return the values after each session or run, of many an evenly spaced selection; empty if unknown."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or len(known) < 2:  # noqa: PLR2004 - two points make a slope
        return {}
    if len(known) > POINTS:
        known = [known[round(at * (len(known) - 1) / (POINTS - 1))] for at in range(POINTS)]
    return {name: known}


def _growth(resident_mib: list[float]) -> dict[str, float]:
    """Return how the process's memory grew, from MiB after each session; empty if the system reports none.

    Growth is measured over the sessions of the second half, when pools and caches are filled.
    """
    if not resident_mib:
        return {}
    middle = len(resident_mib) // 2
    sessions = max(len(resident_mib) - 1 - middle, 1)
    return {
        "rss_first_mib": resident_mib[0],
        "rss_last_mib": resident_mib[-1],
        "growth_mib": round((resident_mib[-1] - resident_mib[middle]) / sessions, 3),
    }
