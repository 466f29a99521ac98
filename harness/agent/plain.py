"""The steps of a plain run, which most scenarios share."""

from __future__ import annotations

from typing import Any

from harness.agent.input_devices import device_proof
from harness.agent.job_run import JobRun
from harness.agent.other_inputs import reversed_inputs
from harness.agent.placement import placement
from harness.agent.repeat import repeat
from harness.agent.safe_text import clean, sendable
from harness.agent.session_profile import SessionProfile
from harness.agent.target_errors import UnfeedableError


def run_plain(job_run: JobRun) -> None:
    """Run a model unchanged, and record which provider ran each node."""
    if not job_run.target.records_every_node() and job_run.stopwatch is None:  # a profile costs time
        job_run.profile = SessionProfile()
    try:
        job_run.create()
        run_data_sets(job_run)
        conclude(job_run)
    finally:
        if job_run.profile is not None:
            job_run.profile.discard()


def run_data_sets(job_run: JobRun) -> None:
    """Run every data set in the judged session; repeat and time the first one if the job asks for it.

    The first data set runs again after other inputs, if the job asks for both. These runs reveal a provider
    that keeps its first results or mixes up its buffers. Time never decides their number.
    """
    job, result = job_run.job, job_run.result
    result["outputs"] = []
    for inputs in job["data_sets"]:
        feeds, outputs = job_run.run(inputs)
        result["outputs"].append(job_run.send(outputs))
        if len(result["outputs"]) == 1:
            first_feeds, first = feeds, outputs
            if job_run.profile is not None:
                job_run.profile.end(job_run.session)
    if job.get("other"):
        _run_others(job_run, first_feeds)
    if "repeat" in job:
        repeat(job_run, first)
    if job_run.stopwatch is not None:
        job_run.stopwatch.time_plain(job_run)
        if job_run.stopwatch.settings.get("nodes"):
            from harness.agent.profiled_runs import node_times

            result["node_times"] = node_times(job_run, job_run.stopwatch.settings, first_feeds)


def _run_others(job_run: JobRun, feeds: dict[str, Any]) -> None:
    """Run other inputs, if some can be made from these; an error is reported: the model may refuse them."""
    try:
        other = reversed_inputs(feeds)
        if other is not None:
            job_run.further()
            job_run.result["other"] = job_run.send(job_run.runner(other))
    except (MemoryError, UnfeedableError):
        return  # not the provider's fault
    except Exception as error:  # noqa: BLE001 - any error of the provider; the other runs go on
        job_run.result["other_error"] = "%s: %s" % (clean(type(error).__name__), clean(error))


def conclude(job_run: JobRun, placed: dict[str, Any] | None = None) -> None:
    """Report the session's providers, and which of them ran each node, unless that is known: ``placed``."""
    job_run.result["providers_after"] = sendable(job_run.session.get_providers())
    job_run.result["placement"] = sendable(placement(job_run) if placed is None else placed)
    found = device_proof(job_run.target, job_run.session)
    if found is not None:
        job_run.result["device"] = found
