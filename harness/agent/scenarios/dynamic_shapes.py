"""Scenarios ``dynamic_shapes`` and ``zero_size``: one session, with another shape in each run.

If a provider compiles for each shape, the first run of a shape takes longer than the next one.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.repeat import RepeatTally
from harness.agent.system import elapsed_ms

_NOT_REPEATED_MS = -1.0


def play(job_run: JobRun) -> None:
    """Run each data set, twice if the job asks for it, and report the time of each run."""
    job_run.create()
    twice = job_run.job.get("repeat", {"runs": 1})["runs"] > 1
    sent: list[object] = []
    first_ms: list[float] = []
    again_ms: list[float] = []
    differing = 0
    job_run.result["outputs"] = sent
    timed = _settings(job_run)
    for inputs in job_run.job["data_sets"]:
        feeds, outputs = job_run.run(inputs)
        first_ms.append(job_run.run_ms)
        sent.append(job_run.send(outputs))
        again_ms.append(_NOT_REPEATED_MS)
        if twice:
            job_run.further()
            started = time.perf_counter()
            again = job_run.runner(feeds)
            again_ms[-1] = elapsed_ms(started)
            differing += again != outputs
            if len(sent) == 1:
                tally = RepeatTally(outputs)
                tally.add(again)
                tally.report(job_run)
        job_run.facts.update(run_ms=first_ms, again_ms=again_ms, differing_again=differing)
        if timed:
            job_run.result.setdefault("shape_times", []).append(_time(job_run, feeds, timed))
    conclude(job_run)


def _settings(job_run: JobRun) -> dict[str, Any]:
    """Return how each shape is timed, for its part of the budget; empty if none is."""
    stopwatch = job_run.stopwatch
    if stopwatch is None or not stopwatch.settings.get("grid"):
        return {}
    budget_s = stopwatch.settings["budget_s"] / len(job_run.job["data_sets"])
    return {**stopwatch.settings, "budget_s": budget_s}


def _time(job_run: JobRun, feeds: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Time runs of one shape, whose answer is known by now: the struct ``ShapeTime`` of the harness."""
    from harness.agent.latency_runs import time_runs

    facts, _ = time_runs(job_run.runner.step(feeds), settings, job_run.enter)
    samples_ms = np.asarray(facts["samples_ns"]) / 1e6
    low, middle, high = (round(float(at), 6) for at in np.percentile(samples_ms, (25, 50, 75)))
    told = {"runs": len(samples_ms), "p50_ms": middle, "low_ms": low, "high_ms": high}
    return {**told, "waiting_threads": facts["waiting_threads"]}
