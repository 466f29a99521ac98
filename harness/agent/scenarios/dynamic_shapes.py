"""Scenarios ``dynamic_shapes`` and ``zero_size``: one session, other shapes from run to run.

A provider that compiles for a shape shows it: the first run at a new one takes longer than the next.
"""

from __future__ import annotations

import functools
import time

from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.run import REPEAT_LIMIT_MS, call
from harness.agent.system import elapsed_ms
from harness.agent.text import sendable
from harness.agent.wire import to_feed

NOT_REPEATED_MS = -1.0


def play(job_run: JobRun) -> None:
    """Run each data set, the quick ones twice, and tell the time of each run."""
    session = job_run.create()
    names = [output.name for output in session.get_outputs()]
    types = [output.type.lower() for output in session.get_outputs()]
    run = functools.partial(call, session, names, types)
    outputs: list[list[object]] = []
    first_ms: list[float] = []
    again_ms: list[float] = []
    differing = 0
    job_run.result.update(names=sendable(names), outputs=outputs)
    for index, inputs in enumerate(job_run.job["data_sets"]):
        feeds = {name: to_feed(wire) for name, wire in inputs}
        job_run.enter("run")
        started = time.perf_counter()
        values = run(feeds)
        first_ms.append(elapsed_ms(started))
        outputs.append([job_run.files.send(wire) for wire in values])
        again_ms.append(NOT_REPEATED_MS)
        if first_ms[-1] < REPEAT_LIMIT_MS:
            started = time.perf_counter()
            again = run(feeds)
            again_ms[-1] = elapsed_ms(started)
            if again != values:
                differing += 1
                if index == 0:
                    job_run.result["second"] = [job_run.files.send(wire) for wire in again]
        job_run.facts.update(run_ms=first_ms, again_ms=again_ms, differing_again=differing)
    job_run.result["timings_ms"]["first_run"] = first_ms[0]
    conclude(job_run)
