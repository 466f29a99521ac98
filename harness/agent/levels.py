"""What a level of graph optimization makes of a model, as onnxruntime itself writes it down.

A job that has a ``form`` asks for a graph besides its results: that which the CPU provider makes of the model
at the job's level (``onnx``), or that of the model in ORT format, converted at that level (``ort``).
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from harness.agent.errors import UnfeedableError
from harness.agent.target import CPU, Target

GRAPH_LIMIT = (
    256 << 20
)  # bytes of a graph without its weights: far beyond any, and far below what a message holds
WEIGHTS = "weights"  # the file that takes them


def graph_of(target: Target, job: dict[str, Any]) -> bytes:
    """The graph that a job asks for: a serialized model whose weights are elsewhere."""
    model = job["model"]
    with tempfile.TemporaryDirectory() as folder:
        if job["form"] == "ort":
            converted = os.path.join(folder, "model.ort")
            save(target, model, job, converted, "ORT")
            # It has been optimized, and is to be written down as it is.
            model, job = converted, {**job, "graph_optimization": "disabled"}
        path = os.path.join(folder, "graph.onnx")
        save(target, model, job, path, "ONNX")
        if os.path.getsize(path) > GRAPH_LIMIT:
            raise UnfeedableError("the graph alone takes more than %d MiB" % (GRAPH_LIMIT >> 20))
        with open(path, "rb") as file:
            return file.read()


def save(
    target: Target,
    model: str | bytes,
    job: dict[str, Any],
    path: str,
    save_format: str,
    left_out: tuple[str, ...] = (),
) -> None:
    """Have onnxruntime write down what a session of the CPU provider makes of a model.

    Args:
        target: Whose onnxruntime.
        model: Path or bytes of the model.
        job: Says the level of optimization.
        path: Of the file to be.
        save_format: ``ONNX``, with the weights in another file, or ``ORT``.
        left_out: Names of optimizers that are not to run.
    """
    settings = target.settings(job)
    settings.optimized_model_filepath = path
    settings.add_session_config_entry("session.save_model_format", save_format)
    if save_format == "ONNX":  # whose weights are of no interest here, and may be more than a message holds
        for key, value in (("file_name", WEIGHTS), ("min_size_in_bytes", "0")):
            settings.add_session_config_entry("session.optimized_model_external_initializers_" + key, value)
    arguments: dict[str, Any] = {"disabled_optimizers": list(left_out)} if left_out else {}
    if target.version >= (1, 23):
        arguments["enable_fallback"] = 0
    target.ort.InferenceSession(model, settings, providers=[(CPU, {})], **arguments)
