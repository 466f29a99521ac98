"""Scenarios ``dynamic_shapes`` and ``zero_size``: one session, with another shape in each run.

If a provider compiles for each shape, the first run of a shape takes longer than the next one.
"""

from __future__ import annotations

import time

from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.run import REPEAT_LIMIT_MS
from harness.agent.system import elapsed_ms

_NOT_REPEATED_MS = -1.0


def play(job_run: JobRun) -> None:
    """Run each data set, twice if the first run was quick, and report the time of each run."""
    job_run.create()
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
        if first_ms[-1] < REPEAT_LIMIT_MS:
            started = time.perf_counter()
            again = job_run.runner(feeds)
            again_ms[-1] = elapsed_ms(started)
            if again != outputs:
                differing += 1
                if len(sent) == 1:
                    job_run.report_second(outputs, again)
        job_run.facts.update(run_ms=first_ms, again_ms=again_ms, differing_again=differing)
    conclude(job_run)
