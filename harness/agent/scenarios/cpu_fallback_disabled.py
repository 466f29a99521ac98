"""Scenario ``cpu_fallback_disabled``: a session that may leave no node to the CPU provider."""

from __future__ import annotations

import re

from harness.agent.job_run import JobRun
from harness.agent.plain import conclude, run_data_sets
from harness.agent.safe_text import clean
from harness.agent.session_target import CPU
from harness.agent.target_errors import UnsupportedError

KEY = "session.disable_cpu_ep_fallback"
_REFUSAL = re.compile(r"fallback to (?:the )?(?:default )?CPU EP")


def play(job_run: JobRun) -> None:
    """Make a session without fallback to the CPU provider, and run it.

    Raises:
        UnsupportedError: Some node would fall back to the CPU provider, or the target is that provider.
    """
    if CPU in job_run.target.chain:
        raise UnsupportedError("the target names %s itself" % CPU)
    job_run.adjust = lambda settings: settings.add_session_config_entry(KEY, "1")
    try:
        job_run.create()
    except Exception as error:
        if _REFUSAL.search(clean(error)):
            raise UnsupportedError(clean(error)) from error
        raise
    job_run.facts["refused"] = False
    run_data_sets(job_run)
    conclude(job_run)
