"""From a job to the module that does it."""

from __future__ import annotations

import importlib

from harness.agent.job_run import JobRun
from harness.agent.plain import plain

SCENARIOS = {
    "concurrent": "concurrent",
    "cpu_fallback_disabled": "no_fallback",
    "dynamic_shapes": "shapes",
    "ep_context": "ep_context",
    "from_bytes": "from_bytes",
    "io_binding": "io_binding",
    "ort_format": "ort_format",
    "sessions": "sessions",
    "zero_size": "shapes",
}
"""Scenarios that are no plain run, and the module of ``harness.agent.scenarios`` that plays each."""


def play(job_run: JobRun) -> None:
    """Do with a model what its job asks for."""
    if job_run.job.get("evaluate"):
        importlib.import_module("harness.agent.evaluate").play(job_run)
        return
    if "make" in job_run.job:
        importlib.import_module("harness.agent.precision.make").play(job_run)
        return
    job_run.begin()
    module = SCENARIOS.get(job_run.job.get("scenario", ""))
    if module is None:
        plain(job_run)
    else:
        importlib.import_module("harness.agent.scenarios." + module).play(job_run)
