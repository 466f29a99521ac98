"""A job that converts a model to another precision.

Converters have faults of their own: they crash, hang, and write models that no runtime loads. So they run in
a process that may crash, and their models are checked before any other use.
"""

from __future__ import annotations

import importlib
import os
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.job_run import JobRun
from harness.agent.precision.float16 import narrow_nodes, with_roundings
from harness.agent.precision.weights import LARGEST_WEIGHT, TOO_LARGE
from harness.agent.safe_text import clean
from harness.agent.session_target import CPU, SessionTarget
from harness.agent.system import elapsed_ms
from harness.agent.target_errors import DoesNotApplyError
from harness.agent.wire import output_to_wire, to_feed

MODULES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8-static": "int8_static",
    "int8-dynamic": "int8_dynamic",
    "int4-weights": "int4_weights",
}
"""Precision -> the module beside this one that converts to it.

Each has ``converted`` and ``NOTHING``, and either ``reduced_nodes`` or, for a floating type, ``NUMBER``, the
type's number in ``onnx.TensorProto.DataType``.
"""

_OF_MACHINE = re.compile(
    r"bad_alloc|bad allocation|[Oo]ut of memory|[Cc]annot allocate memory|Failed to allocate memory"
    r"|No space left|not enough space|[Dd]isk quota|Too many open files"
)
"""Messages of a library when the machine lacks memory, disk space or descriptors."""


def play(job_run: JobRun) -> None:
    """Convert the model of a job to the precision that the job names.

    The result gets ``made``, the serialized model as a tensor of bytes, and ``rounded``, the model that the
    CPU EP computes in its place, if it is another; or ``declined``, the reason why there is no model.
    """
    started = time.perf_counter()
    try:
        models = _made(job_run.target, job_run.job["model"], job_run.job["make"], job_run.job["data_sets"])
    except DoesNotApplyError as error:
        job_run.result["declined"] = clean(error)
    else:
        for name, content in zip(("made", "rounded"), models):
            job_run.result[name] = job_run.files.send(output_to_wire(np.frombuffer(content, np.uint8)))
    job_run.result["timings_ms"]["make"] = elapsed_ms(started)


def _made(target: SessionTarget, path: str, precision: str, data_sets: list[Any]) -> list[bytes]:
    """Return the serialized model at a precision, and the one that the CPU EP computes, if it differs."""
    model = _loaded(path)
    ports = _signature(model)
    module = importlib.import_module("harness.agent.precision." + MODULES[precision])
    number = getattr(module, "NUMBER", None)

    def reduced_nodes(model: Any) -> Any:
        return module.reduced_nodes(model) if number is None else narrow_nodes(model.graph, number)

    before = reduced_nodes(model)
    feeds = [{name: to_feed(wire) for name, wire in inputs} for inputs in data_sets]
    converted = attempted(lambda: module.converted(model, feeds), "the converter fails")
    if reduced_nodes(converted) <= before:
        raise DoesNotApplyError(module.NOTHING)
    if _signature(converted) != ports:
        raise DoesNotApplyError("the converter changes its inputs or outputs")
    models = [converted]
    if number is not None:
        rounded = attempted(lambda: with_roundings(converted, number), "its roundings cannot be spelled out")
        models.append(rounded)
    contents = attempted(
        lambda: [model.SerializeToString() for model in models], "the converter's model cannot be written"
    )
    for content in contents:
        _check_loads(target, content)
    return list(contents)


def _loaded(path: str) -> Any:
    """Return the model with its weights; raise DoesNotApplyError if it is too large."""
    import onnx

    _check_size([path])
    model = onnx.load(path, load_external_data=False)
    folder = os.path.dirname(path)
    outside = {
        os.path.join(folder, entry.value)
        for tensor in model.graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    _check_size([path, *outside])
    onnx.load_external_data_for_model(model, folder)
    return model


def _check_size(paths: list[str]) -> None:
    if sum(map(os.path.getsize, paths)) > LARGEST_WEIGHT:
        raise DoesNotApplyError(TOO_LARGE)


def _signature(model: Any) -> tuple[Any, ...]:
    """Return the names and types of a model's inputs and outputs."""
    weights = {tensor.name for tensor in model.graph.initializer}
    fed = sorted((port.name, _kind(port.type)) for port in model.graph.input if port.name not in weights)
    return fed, [(port.name, _kind(port.type)) for port in model.graph.output]


def _kind(declared: Any) -> tuple[Any, ...]:
    """Return a ``TypeProto`` without its shapes, which converters may add."""
    name = declared.WhichOneof("value")
    inner: Any = getattr(declared, name) if name else None
    if name in ("sequence_type", "optional_type"):
        return (name, _kind(inner.elem_type))
    if name == "map_type":
        return (name, inner.key_type, _kind(inner.value_type))
    return (name, getattr(inner, "elem_type", 0))


def _check_loads(target: SessionTarget, content: bytes) -> None:
    """Load a converted model, so that no execution provider is blamed for it.

    A missing CPU kernel for a type is not the model's fault.
    """
    ort = target.ort
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    try:
        ort.InferenceSession(content, settings, providers=[CPU])
    except MemoryError:
        raise
    except Exception as error:
        if _OF_MACHINE.search(str(error)):
            raise
        if type(error).__name__ != "NotImplemented":
            raise DoesNotApplyError(
                "onnxruntime does not load what the converter makes: %s" % _one_line(error)
            ) from error


def attempted(work: Callable[[], Any], what: str) -> Any:
    """Return the result of a converter's work.

    Raises:
        DoesNotApplyError: The converter raised an error.
        Exception: The machine caused the error, such as a full disk.
    """
    try:
        return work()
    except (DoesNotApplyError, MemoryError, OSError):
        raise
    except Exception as error:
        if _OF_MACHINE.search(str(error)):
            raise
        raise DoesNotApplyError("%s: %s: %s" % (what, type(error).__name__, _one_line(error))) from error


def _one_line(error: object) -> str:
    return " ".join(clean(error, 300).split())
