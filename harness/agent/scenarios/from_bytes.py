"""Scenario ``from_bytes``: the model comes from memory, as out of an archive or a decryption."""

from __future__ import annotations

import os
from typing import Any

from harness.agent.errors import UnsupportedError
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude, run_data_sets
from harness.agent.text import clean

FOLDER_KEY = "session.model_external_initializers_file_folder_path"
"""Says where external weights lie that a path would have led to."""

FOLDER_KNOWN = (1, 21)
"""The first onnxruntime that heeds it."""


def play(job_run: JobRun) -> None:
    """Read the model's file, and give onnxruntime what is in it.

    Raises:
        UnsupportedError: This onnxruntime does not find the weights that lie beside a model without its path.
    """
    path = job_run.job["model"]
    if isinstance(path, str):
        with open(path, "rb") as file:
            job_run.model = file.read()

        def adjust(settings: Any) -> None:
            settings.add_session_config_entry(FOLDER_KEY, os.path.dirname(os.path.abspath(path)))

        job_run.adjust = adjust
    job_run.facts["model_bytes"] = len(job_run.model)
    try:
        job_run.create()
    except Exception as error:
        if job_run.target.version >= FOLDER_KNOWN:
            raise
        job_run.model = path
        job_run.open()  # where this fails, too, it is not for want of the path
        reason = "onnxruntime %s does not find the weights of a model without path, 1.21 is the first: %s"
        raise UnsupportedError(reason % (clean(job_run.target.ort.__version__), clean(error))) from error
    run_data_sets(job_run)
    conclude(job_run)
