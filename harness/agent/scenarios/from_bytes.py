"""Scenario ``from_bytes``: load the model from memory, as from an archive or after decryption."""

from __future__ import annotations

import os

from harness.agent.job_run import JobRun
from harness.agent.plain import conclude, run_data_sets
from harness.agent.safe_text import clean
from harness.agent.session_target import FOLDER_KEY
from harness.agent.target_errors import ApiMissingError

_FOLDER_SINCE = (1, 21)
"""The first onnxruntime that reads this key."""


def play(job_run: JobRun) -> None:
    """Read the model's file, and give its bytes to onnxruntime.

    Raises:
        UnsupportedError: This onnxruntime finds no external weights for a model without a path.
    """
    path = job_run.job["model"]
    if isinstance(path, str):
        with open(path, "rb") as file:
            job_run.model = file.read()
        folder = os.path.dirname(os.path.abspath(path))
        job_run.adjust = lambda settings: settings.add_session_config_entry(FOLDER_KEY, folder)
    job_run.facts["model_bytes"] = len(job_run.model)
    try:
        job_run.create()
    except Exception as error:
        if job_run.target.version >= _FOLDER_SINCE:
            raise
        job_run.model = path
        job_run.open()  # if this fails too, the missing path is not the cause
        reason = "onnxruntime %s does not find the weights of a model without path, 1.21 is the first: %s"
        raise ApiMissingError(reason % (clean(job_run.target.ort.__version__), clean(error))) from error
    run_data_sets(job_run)
    conclude(job_run)
