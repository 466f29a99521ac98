"""The model of a job in float64, node by node, in place of a session."""

from __future__ import annotations

import time

import numpy as np

from harness.agent.evaluate import as_array, in_wire_form
from harness.agent.float64.array_budget import ArrayBudget
from harness.agent.job_run import JobRun
from harness.agent.safe_text import clean, sendable
from harness.agent.system import elapsed_ms
from harness.agent.target_errors import UnsupportedError

EVALUATOR = "float64"  # takes the place of a session's providers


def play(job_run: JobRun) -> None:
    """Run every data set of a job; the result has the same form as a session's."""
    try:
        import onnx

        from harness.agent.float64.float64_model import Model
    except Exception as error:
        raise UnsupportedError("onnx cannot be imported here: %s" % clean(error)) from error
    started = time.perf_counter()
    given, asked = job_run.model, job_run.job["evaluate"]
    proto = onnx.load(given) if isinstance(given, str) else onnx.load_from_string(given)
    model = Model(proto, frozenset(asked["trusted"]), job_run.target)
    result = job_run.result
    result["timings_ms"]["create"] = elapsed_ms(started)
    result["names"] = sendable(model.outputs)
    result["outputs"] = []
    for inputs in job_run.job["data_sets"]:
        job_run.enter("run")
        feeds = {name: as_array(wire) for name, wire in inputs}
        started = time.perf_counter()
        try:
            with np.errstate(all="ignore"):  # models overflow and divide by 0 on purpose
                outputs = model.run(feeds, ArrayBudget(asked["bytes"]))
        except MemoryError as error:
            raise UnsupportedError(clean(error) or "it takes more memory than there is") from error
        result["timings_ms"].setdefault("first_run", elapsed_ms(started))
        result["outputs"].append(job_run.send(list(map(in_wire_form, outputs))))
    result["providers"] = result["providers_after"] = [EVALUATOR]
    result["placement"] = sendable(
        {
            "ep_nodes": len(proto.graph.node),
            "cpu_nodes": 0,
            "ep_ops": model.counted(),
            "cpu_ops": {},
            "partitions": 1,
            "source": "profile",  # every node has run
        }
    )
