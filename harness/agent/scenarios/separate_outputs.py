"""Scenario ``separate_outputs``: each output is requested alone, as by an application that needs one of them.

This shows a provider that fills its outputs by position, or that writes one only because of another.
"""

from __future__ import annotations

from harness.agent.difference import difference
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude


def play(job_run: JobRun) -> None:
    """Run for all outputs, then for each alone; the outputs that were computed alone are judged."""
    job_run.create()
    job_run.result["outputs"] = []
    apart = [0.0] * len(job_run.runner.names)
    for inputs in job_run.job["data_sets"]:
        feeds, together = job_run.run(inputs)
        alone = []
        for index in range(len(together)):
            job_run.further()
            alone += job_run.runner.only(index)(feeds)
            apart[index] = max(apart[index], difference([together[index]], [alone[index]]))
        job_run.result["outputs"].append(job_run.send(alone))
    job_run.facts.update(outputs=len(apart), equal_to_together=not any(apart))
    if any(apart):
        job_run.facts["difference"] = max(apart)
    conclude(job_run)
