"""Scenario ``ort_format``: convert the model to ORT format, as a minimal build needs it, then load it."""

from __future__ import annotations

import os
import time

from harness.agent.job_run import JobRun
from harness.agent.level_graph import save
from harness.agent.plain import conclude, run_data_sets
from harness.agent.safe_text import clean
from harness.agent.session_target import CPU
from harness.agent.system import elapsed_ms, scratch_folder
from harness.agent.target_errors import UnsupportedError

_LAYOUT_OPTIMIZER = "NchwcTransformer"
"""Inserts operators that only the CPU provider has; onnxruntime's own converter also leaves it out when it
converts for another machine."""


def play(job_run: JobRun) -> None:
    """Convert with the CPU provider at the cell's optimization level, load with the target, run.

    A provider that compiles its nodes cannot take part in writing a model, so only the CPU provider does.

    Raises:
        UnsupportedError: onnxruntime cannot write this model in ORT format.
    """
    disabled = () if job_run.target.chain == [CPU] else (_LAYOUT_OPTIMIZER,)
    with scratch_folder() as folder:
        path = os.path.join(folder, "model.ort")
        started = time.perf_counter()
        try:
            save(job_run.target, job_run.model, job_run.job, path, "ORT", disabled)
        except Exception as error:
            job_run.open()  # if this fails too, the format is not the cause
            reason = "onnxruntime does not write this model in ORT format: %s" % clean(error)
            raise UnsupportedError(reason) from error
        model = job_run.job["model"]
        job_run.facts.update(
            converted_with=CPU,
            level=job_run.job.get("graph_optimization", "all"),
            convert_ms=elapsed_ms(started),
            model_bytes=os.path.getsize(model) if isinstance(model, str) else len(model),
            ort_bytes=os.path.getsize(path),
            disabled_optimizers=list(disabled),
        )
        job_run.model = path
        job_run.create()
        run_data_sets(job_run)
        conclude(job_run)
