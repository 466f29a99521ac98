"""Scenario ``ort_format``: the model is converted to ORT format, as a minimal build needs it, then loaded."""

from __future__ import annotations

import os
import time

from harness.agent.errors import UnsupportedError
from harness.agent.job_run import JobRun
from harness.agent.levels import save
from harness.agent.plain import conclude, run_data_sets
from harness.agent.system import elapsed_ms, scratch_folder
from harness.agent.target import CPU
from harness.agent.text import clean

LAYOUT_OPTIMIZER = "NchwcTransformer"
"""Puts in operators that no provider but the CPU's has; onnxruntime's own converter leaves it out, too, for a
machine other than its own."""


def play(job_run: JobRun) -> None:
    """Convert with the CPU provider at the cell's level of optimization, load with the target, run.

    Providers that compile their nodes cannot be there when a model is written, so none is.

    Raises:
        UnsupportedError: onnxruntime cannot write this model in ORT format.
    """
    left_out = () if job_run.target.chain == [CPU] else (LAYOUT_OPTIMIZER,)
    with scratch_folder() as folder:
        path = os.path.join(folder, "model.ort")
        started = time.perf_counter()
        try:
            save(job_run.target, job_run.model, job_run.job, path, "ORT", left_out)
        except Exception as error:
            job_run.open()  # where this fails, too, it is not for the format
            reason = "onnxruntime does not write this model in ORT format: %s" % clean(error)
            raise UnsupportedError(reason) from error
        model = job_run.job["model"]
        job_run.facts.update(
            converted_with=CPU,
            level=job_run.job.get("graph_optimization", "all"),
            convert_ms=elapsed_ms(started),
            model_bytes=os.path.getsize(model) if isinstance(model, str) else len(model),
            ort_bytes=os.path.getsize(path),
            disabled_optimizers=list(left_out),
        )
        job_run.model = path
        job_run.create()
        run_data_sets(job_run)
        conclude(job_run)
