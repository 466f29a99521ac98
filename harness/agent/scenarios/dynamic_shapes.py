"""Scenarios ``dynamic_shapes`` and ``zero_size``: one session, with another shape in each run.

If a provider compiles for each shape, the first run of a shape takes longer than the next one.
"""

from __future__ import annotations

import time

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
    conclude(job_run)
