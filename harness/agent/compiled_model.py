"""A compiled model: a file with ``EPContext`` nodes, as onnxruntime's EP context design describes it.

It is made by onnxruntime's ``ModelCompiler``, moved to another folder, and loaded there by a fresh process.
"""

from __future__ import annotations

import mmap
import os
import shutil
import time
from collections.abc import Callable
from typing import Any

from harness.agent.difference import difference
from harness.agent.fresh_process import FreshProcessError, serve_afresh
from harness.agent.furthest import TOLD, Furthest
from harness.agent.job_run import JobRun
from harness.agent.latency_runs import HostPeak
from harness.agent.onnx_bytes import stored_weights
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.system import elapsed_ms
from harness.agent.target_errors import UnsupportedError

COMPILED_NAME = "compiled.onnx"
"""The name of a compiled model in its folder."""

LOADS_SAME = "it loads, and computes the same"
"""What became of a changed compiled model whose change does not matter."""

_MODEL = "model.onnx"
_NODE = b"\x22\x09EPContext"  # the field op_type of a NodeProto, 9 bytes


class CompiledModelError(Exception):
    """A model is not compiled, its result does not load, or the description of the result is wrong."""


def contexts_in(path: str) -> int:
    """Return the number of EPContext nodes in a model; 0 if there is no such file."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            count, at = 0, content.find(_NODE)
            while at >= 0:
                count, at = count + 1, content.find(_NODE, at + len(_NODE))
            return count
    except (OSError, ValueError):  # ValueError: it is empty
        return 0


def nothing_compiled(job_run: JobRun) -> UnsupportedError:
    """Return the error for a provider that has compiled nothing, with its part of the judged session."""
    conclude(job_run)
    placed = job_run.result["placement"]
    return UnsupportedError(
        "no EPContext node was written: the provider runs %d of %d nodes, and compiles none"
        % (placed["ep_nodes"], placed["ep_nodes"] + placed["cpu_nodes"])
    )


def compile_copy(
    job_run: JobRun,
    folder: str,
    source: str,
    sink: str,
    *,
    embedded: bool,
    words: str,
    prepare: Callable[[Any], None] = lambda _: None,
) -> dict[str, Any]:
    """Compile a copy of the model beside ``folder``, move the result into it, and delete the copy.

    ``prepare`` changes the ``ModelCompiler`` last.

    Returns:
        How long it took, and its size, by the name of the fact.

    Raises:
        CompiledModelError: It is not compiled; the cause is onnxruntime's error.
    """
    work = os.path.join(os.path.dirname(folder), "build")
    os.makedirs(work)
    model = _copy(job_run, work)
    path = os.path.join(work, "out", COMPILED_NAME)
    os.makedirs(os.path.dirname(path))
    if source == "bytes" and has_files(model):
        source = "file"  # such a model has to know its folder
    given = whole_file(model) if source == "bytes" else model
    job_run.enter("create")
    peak, began, processor_s = HostPeak(), time.perf_counter(), time.process_time()
    try:
        settings = job_run.target.compiling(job_run.job)
        compiler = job_run.target.ort.ModelCompiler(settings, given, embed_compiled_data_into_model=embedded)
        prepare(compiler)
        _write(compiler, sink, path)
    except Exception as error:
        raise CompiledModelError("compiling %s: %s" % (words, clean(error))) from error
    finally:
        os.rename(os.path.dirname(path), folder)
        shutil.rmtree(work)
    figures = {
        "ways": words,
        "compile_ms": elapsed_ms(began),
        "processor_ms": round((time.process_time() - processor_s) * 1000, 2),
        "peak_mib": peak.mib() or 0.0,
    }
    files = (os.path.join(folder, name) for name in os.listdir(folder))
    return {**figures, "compiled_bytes": sum(map(os.path.getsize, files))}


def load_compiled(
    job_run: JobRun, furthest: Furthest, path: str, words: str, **fields: Any
) -> dict[str, Any]:
    """Load and run a compiled model in a fresh process, whose job has other ``fields``; return its result.

    Raises:
        CompiledModelError: It does not load, or does not run.
    """
    result = serve_afresh(job_run.target, compiled_job(job_run, path, **fields), job_run.enter)
    if result["status"] != "ok":
        job_run.enter(result["phase"])  # where it failed, and not where its process ended
        message = clean(result["message"])
        raise CompiledModelError("compiled %s, moved, loaded by a fresh process: %s" % (words, message))
    for index, outputs in enumerate(result["outputs"]):
        furthest.compare(index, outputs, "in a model compiled %s" % words)
    return result


def became(job_run: JobRun, furthest: Furthest, path: str, **fields: Any) -> str:
    """Return what a fresh process makes of a compiled model that is not as it was compiled."""
    job = compiled_job(job_run, path, **fields)
    try:
        result = serve_afresh(job_run.target, job, job_run.enter, dies_with_it=False)
    except FreshProcessError as error:
        return clean(error)
    if result["status"] != "ok":
        return "refused: " + clean(result["message"], 200)
    plain = [outputs for _, outputs in furthest.pairs]
    same = max(map(difference, plain, result["outputs"])) <= TOLD
    return LOADS_SAME if same else "it loads, and computes something else"


def compiled_job(job_run: JobRun, path: str, **fields: Any) -> dict[str, Any]:
    """Return the job of a fresh process for another model, without a scenario unless ``fields`` name one."""
    job = {key: value for key, value in job_run.job.items() if not key.startswith("scenario")}
    job_run.enter("create")
    return {**job, "model": path, **fields}


def has_files(model: str | bytes) -> bool:
    """Return whether a model has weights in other files."""
    return bool(stored_weights(whole_file(model) if isinstance(model, str) else model))


def whole_file(path: str) -> bytes:
    """Return the bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def _write(compiler: Any, sink: str, path: str) -> None:
    """Compile into a file, whatever the result goes to first."""
    if sink == "file":
        compiler.compile_to_file(path)
        return
    parts: list[bytes] = []
    if sink == "bytes" or not hasattr(compiler, "compile_to_stream"):
        parts.append(compiler.compile_to_bytes())
    else:
        compiler.compile_to_stream(lambda part: parts.append(bytes(part)))
    with open(path, "wb") as file:
        file.write(b"".join(parts))


def _copy(job_run: JobRun, folder: str) -> str:
    """Return the path of a copy of the model, with its external data."""
    path = os.path.join(folder, _MODEL)
    given = job_run.model
    if isinstance(given, bytes):
        with open(path, "wb") as file:
            file.write(given)
        return path
    shutil.copyfile(given, path)
    home = os.path.dirname(os.path.abspath(given))
    for name in {weight.file for weight in stored_weights(whole_file(given))}:
        target = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(os.path.join(home, *name.split("/")), target)
    return path
