"""The steps of a plain run; scenarios use them, too."""

from __future__ import annotations

from harness.agent.job_run import JobRun
from harness.agent.placement import placement
from harness.agent.profile import Profile
from harness.agent.run import run
from harness.agent.text import sendable


def plain(job_run: JobRun) -> None:
    """Run a model as it came, and find out where its nodes went."""
    if job_run.target.records_assignment() or job_run.watch is not None:  # a profile may cost time
        _plain(job_run)
        return
    job_run.profile = Profile()
    try:
        _plain(job_run)
    finally:
        job_run.profile.discard()


def _plain(job_run: JobRun) -> None:
    job_run.create()
    run_data_sets(job_run)
    conclude(job_run)


def run_data_sets(job_run: JobRun) -> None:
    """Run every data set with the session that is judged; repeat and time it where that is asked for."""
    job, result = job_run.job, job_run.result
    first = run(job_run.session, job, result, job_run.enter, job_run.files, job_run.end_profile)
    if "repeat" in job:
        from harness.agent.repeat import repeat

        repeat(job_run, first)
    if job_run.watch is not None:
        job_run.watch.time_plain(job_run.session, job, result, job_run.enter, job_run.files)


def conclude(job_run: JobRun) -> None:
    """Report the providers of the session, and where the nodes went."""
    job_run.result["providers_after"] = sendable(job_run.session.get_providers())
    job_run.result["placement"] = sendable(placement(job_run))
