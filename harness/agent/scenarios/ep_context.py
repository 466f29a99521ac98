"""Scenario ``ep_context``: the provider compiles the model and writes the result; a fresh process runs that.

Applications do so to avoid compiling on each start. The result is a model with ``EPContext`` nodes, as
onnxruntime's EP context design describes it. A provider that compiles nothing writes none.
"""

from __future__ import annotations

import os
from typing import Any

from harness.agent.compiled_model import contexts_in, nothing_compiled
from harness.agent.difference import difference
from harness.agent.fresh_process import serve_afresh
from harness.agent.job_run import JobRun
from harness.agent.safe_text import clean
from harness.agent.system import scratch_folder
from harness.agent.target_errors import UnsupportedError


def play(job_run: JobRun) -> None:
    """Compile, write and run here; load and run in a fresh process; compare.

    Raises:
        UnsupportedError: The provider refuses, or compiles nothing.
    """
    with scratch_folder() as folder:
        path = os.path.join(folder, "context.onnx")
        compiled = _compile_to(job_run, path)
        files = [os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)]
        job_run.facts.update(
            create_cold_ms=job_run.result["timings_ms"]["create"],
            context_bytes=sum(files),
            embedded=len(files) == 1,
        )
        job = {key: value for key, value in job_run.job.items() if not key.startswith("scenario")}
        job_run.enter("create")
        result = serve_afresh(job_run.target, {**job, "model": path}, job_run.enter)
    job_run.result.update(result)
    if result["status"] != "ok":
        job_run.result["message"] = "in a fresh process: " + result["message"]
        return
    job_run.facts["create_warm_ms"] = result["timings_ms"]["create"]
    apart = max(map(difference, compiled, result["outputs"]))
    job_run.facts["equal_to_compiled"] = apart == 0
    if apart:
        job_run.facts["difference"] = apart
    job_run.result["outputs"] = list(map(job_run.send, result["outputs"]))
    if "second" in result:
        job_run.result["second"] = job_run.send(result["second"])


def _compile_to(job_run: JobRun, path: str) -> list[list[Any]]:
    """Compile the model in a session of this process, run and close it; return all outputs."""

    def adjust(settings: Any) -> None:
        for key, value in (("enable", "1"), ("embed_mode", "1"), ("file_path", path)):
            settings.add_session_config_entry("ep.context_" + key, value)

    job_run.adjust = adjust
    try:
        job_run.create()
    except Exception as error:
        job_run.adjust = lambda _: None
        job_run.open()  # if this fails too, the model or the provider is the cause
        raise UnsupportedError("the provider compiles no EP context: %s" % clean(error)) from error
    outputs = [job_run.run(inputs)[1] for inputs in job_run.job["data_sets"]]
    job_run.adjust = lambda _: None
    if not contexts_in(path):
        raise nothing_compiled(job_run)
    job_run.enter("teardown")
    job_run.close()
    return outputs
