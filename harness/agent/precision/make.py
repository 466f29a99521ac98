"""A job that asks for a model at another precision, and what may come of it.

Converters are programs with faults of their own: they crash, hang, and write models that no runtime loads. So
they work in a process that may die, and what they make is looked at before anybody runs it.
"""

from __future__ import annotations

import importlib
import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.agent.errors import DoesNotApplyError
from harness.agent.precision.size import LARGEST, TOO_LARGE
from harness.agent.system import elapsed_ms
from harness.agent.target import CPU, Target
from harness.agent.text import clean
from harness.agent.wire import to_feed, to_wire

if TYPE_CHECKING:
    from harness.agent.job_run import JobRun

MODULES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8-static": "int8_static",
    "int8-dynamic": "int8_dynamic",
    "int4-weights": "int4_weights",
}
"""Precision -> the module beside this one that makes it.

Each has ``converted``, ``reduced_nodes`` and ``NOTHING``; those of floating types ``rounded``, too.
"""

OF_MACHINE = re.compile(
    r"bad_alloc|bad allocation|[Oo]ut of memory|[Cc]annot allocate memory|Failed to allocate memory"
    r"|No space left|not enough space|[Dd]isk quota|Too many open files"
)
"""What a library says when the machine is short of something."""


def play(job_run: JobRun) -> None:
    """Make the model of a job at the precision that it names.

    The result gets ``made``, the serialized model as a tensor of bytes, and ``rounded``, what the CPU EP is
    to compute in its place, where that is another; or ``declined``, the reason why there is no model.
    """
    started = time.perf_counter()
    try:
        models = made(job_run.target, job_run.job["model"], job_run.job["make"], job_run.job["data_sets"])
    except DoesNotApplyError as error:
        job_run.result["declined"] = clean(error)
    else:
        for name, content in zip(("made", "rounded"), models):
            job_run.result[name] = job_run.files.send(to_wire(np.frombuffer(content, np.uint8)))
    job_run.result["timings_ms"]["make"] = elapsed_ms(started)


def made(target: Target, path: str, precision: str, data_sets: list[Any]) -> list[bytes]:
    """The serialized model at a precision, and what the CPU EP is to compute where that is another.

    Args:
        target: Whose onnxruntime has to load what is made.
        path: The model.
        precision: A key of ``MODULES``.
        data_sets: Its inputs in wire form, for what is calibrated.

    Raises:
        DoesNotApplyError: There is no such model.
    """
    model = loaded(path)
    ports = signature(model)
    module = importlib.import_module("harness.agent.precision." + MODULES[precision])
    before = module.reduced_nodes(model)
    feeds = [{name: to_feed(wire) for name, wire in inputs} for inputs in data_sets]
    converted = attempted(lambda: module.converted(model, feeds), "the converter fails")
    if module.reduced_nodes(converted) <= before:
        raise DoesNotApplyError(module.NOTHING)
    if signature(converted) != ports:
        raise DoesNotApplyError("the converter changes its inputs or outputs")
    models = [converted]
    if hasattr(module, "rounded"):
        models.append(attempted(lambda: module.rounded(converted), "its roundings cannot be spelled out"))
    contents = attempted(
        lambda: [model.SerializeToString() for model in models], "the converter's model cannot be written"
    )
    for content in contents:
        prove(target, content)
    return list(contents)


def loaded(path: str) -> Any:
    """The model with its weights.

    Raises:
        DoesNotApplyError: It is too large.
    """
    import onnx

    check_size([path])
    model = onnx.load(path, load_external_data=False)
    folder = os.path.dirname(path)
    outside = {
        os.path.join(folder, entry.value)
        for tensor in model.graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    check_size([path, *outside])
    onnx.load_external_data_for_model(model, folder)
    return model


def check_size(paths: list[str]) -> None:
    """Refuse files that are too large together.

    Raises:
        DoesNotApplyError: They are.
    """
    if sum(map(os.path.getsize, paths)) > LARGEST:
        raise DoesNotApplyError(TOO_LARGE)


def signature(model: Any) -> tuple[Any, ...]:
    """Names and types of what is fed to a model and of what it gives."""
    weights = {tensor.name for tensor in model.graph.initializer}
    fed = sorted((port.name, kind(port.type)) for port in model.graph.input if port.name not in weights)
    return fed, [(port.name, kind(port.type)) for port in model.graph.output]


def kind(declared: Any) -> tuple[Any, ...]:
    """A ``TypeProto`` without its shapes, of which converters find out more."""
    name = declared.WhichOneof("value")
    inner: Any = getattr(declared, name) if name else None
    if name in ("sequence_type", "optional_type"):
        return (name, kind(inner.elem_type))
    if name == "map_type":
        return (name, inner.key_type, kind(inner.value_type))
    return (name, getattr(inner, "elem_type", 0))


def prove(target: Target, content: bytes) -> None:
    """Have onnxruntime load what was made, before an execution provider is blamed for it.

    Raises:
        DoesNotApplyError: It does not. That the CPU EP has no kernel for a type is no fault of a model.
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
        if OF_MACHINE.search(str(error)):
            raise
        if type(error).__name__ != "NotImplemented":
            raise DoesNotApplyError(
                "onnxruntime does not load what the converter makes: %s" % one_line(error)
            ) from error


def attempted(work: Callable[[], Any], what: str) -> Any:
    """The result of a converter's work.

    Raises:
        DoesNotApplyError: The converter raised whatever it did.
        Exception: What the machine is to blame for, such as a full disk; it is no answer.
    """
    try:
        return work()
    except (DoesNotApplyError, MemoryError, OSError):
        raise
    except Exception as error:
        if OF_MACHINE.search(str(error)):
            raise
        raise DoesNotApplyError("%s: %s: %s" % (what, type(error).__name__, one_line(error))) from error


def one_line(error: object) -> str:
    """The text of an error in a single line."""
    return " ".join(clean(error, 300).split())
