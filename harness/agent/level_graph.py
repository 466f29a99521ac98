"""The graph that a level of graph optimization makes of a model, as onnxruntime writes it.

A job with a ``form`` asks for a graph besides its results. ``onnx`` is the CPU provider's graph of the model
at the job's level; ``ort`` is the graph of the model in ORT format, converted at that level.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from harness.agent.session_target import CPU, SessionTarget
from harness.agent.target_errors import UnfeedableError

_GRAPH_LIMIT = 256 << 20  # bytes of a graph without its weights, far below a message's limit


def graph_of(target: SessionTarget, job: dict[str, Any]) -> bytes:
    """Return the graph that a job asks for: a serialized model without its weights."""
    model = job["model"]
    with tempfile.TemporaryDirectory() as folder:
        if job["form"] == "ort":
            converted = os.path.join(folder, "model.ort")
            save(target, model, job, converted, "ORT")
            # It is optimized already; write it unchanged.
            model, job = converted, {**job, "graph_optimization": "disabled"}
        path = os.path.join(folder, "graph.onnx")
        save(target, model, job, path, "ONNX")
        if os.path.getsize(path) > _GRAPH_LIMIT:
            raise UnfeedableError("the graph alone takes more than %d MiB" % (_GRAPH_LIMIT >> 20))
        with open(path, "rb") as file:
            return file.read()


def save(
    target: SessionTarget,
    model: str | bytes,
    job: dict[str, Any],
    path: str,
    save_format: str,
    disabled: tuple[str, ...] = (),
) -> None:
    """Write a model as the CPU provider optimizes it, without the optimizers in ``disabled``.

    ``save_format`` is ``ONNX``, with the weights in another file, or ``ORT``.
    """
    settings = target.settings(job)
    settings.optimized_model_filepath = path
    settings.add_session_config_entry("session.save_model_format", save_format)
    if save_format == "ONNX":  # its weights are not needed, and may exceed a message
        for key, value in (("file_name", "weights"), ("min_size_in_bytes", "0")):
            settings.add_session_config_entry("session.optimized_model_external_initializers_" + key, value)
    arguments: dict[str, Any] = {"disabled_optimizers": list(disabled)} if disabled else {}
    if target.version >= (1, 23):
        arguments["enable_fallback"] = 0
    target.ort.InferenceSession(model, settings, providers=[(CPU, {})], **arguments)
