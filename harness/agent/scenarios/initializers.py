"""Scenario ``initializers``: weights come from memory, as in an application that has its own files.

The model's weights lie in a file beside it. The session gets them as values, or as the content of the file,
while the file is absent or has other contents; and several sessions share one copy of them. This shows a
provider that reads the file instead, or that takes a weight's address for its content.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.furthest import Furthest
from harness.agent.job_run import JobRun
from harness.agent.onnx_bytes import StoredWeight, stored_weights
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.session_run import Runner
from harness.agent.system import resident_mib, scratch_folder
from harness.agent.target_errors import UnsupportedError

_NUMPY = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
}
"""ONNX's number of an element type -> numpy's name, as far as numpy has it."""

_SHARING = 2
"""Sessions that share one copy of the weights."""

_MODEL = "model.onnx"

Adjust = Callable[[Any], None]


class WeightsFromMemoryError(Exception):
    """A session that gets its weights from memory cannot be made, or does not run."""


def play(job_run: JobRun) -> None:
    """Run with the weights' file, then with weights from memory; judge the furthest result.

    Raises:
        UnsupportedError: onnxruntime takes no such weights from memory.
        WeightsFromMemoryError: The provider refuses them.
    """
    path = job_run.job["model"]
    with open(path, "rb") as file:
        weights = stored_weights(file.read())
    source = os.path.dirname(os.path.abspath(path))
    before = resident_mib()
    job_run.create()
    furthest = Furthest(job_run, [job_run.run(inputs) for inputs in job_run.job["data_sets"]])
    job_run.facts.update(weights=len(weights), file_mib=_grown(before))
    files = {name: _content(source, name) for name in sorted({weight.file for weight in weights})}
    values = _values(job_run, weights, files)
    not_tried: list[str] = []
    tried = 0
    with scratch_folder() as folder:
        copied = os.path.join(folder, _MODEL)
        shutil.copyfile(path, copied)
        for circumstances, adjust in _ways(job_run, files, values, not_tried):
            for state in ("the file absent", "other contents in the file"):
                if state != "the file absent":
                    _write_others(folder, files)
                _try(job_run, furthest, copied, adjust, "%s, %s" % (circumstances, state))
                tried += 1
            for name in files:
                os.remove(os.path.join(folder, *name.split("/")))
    if values:
        _share(job_run, furthest, path, values)
        tried += 1
    if not tried:
        raise UnsupportedError("; ".join(not_tried))
    job_run.facts["ways"] = tried
    if not_tried:
        job_run.facts["not_tried"] = not_tried
    furthest.conclude(job_run, "equal_to_file")
    conclude(job_run)


def _ways(
    job_run: JobRun, files: dict[str, bytes], values: dict[str, Any], not_tried: list[str]
) -> list[tuple[str, Adjust]]:
    """Return how a session gets all weights from memory, and what changes its options so."""
    options, version = job_run.target.ort.SessionOptions, clean(job_run.target.ort.__version__)
    ways: list[tuple[str, Adjust]] = []
    if not values:
        not_tried.append("weights as values: numpy lacks the element type of a weight")
    elif not hasattr(options, "add_external_initializers"):
        not_tried.append("onnxruntime %s has no add_external_initializers" % version)
    else:
        names, held = list(values), list(values.values())
        ways.append(("with weights as values", lambda it: it.add_external_initializers(names, held)))
    if not hasattr(options, "add_external_initializers_from_files_in_memory"):
        not_tried.append("onnxruntime %s has no add_external_initializers_from_files_in_memory" % version)
    else:
        of_files = list(files), list(files.values()), [len(content) for content in files.values()]
        add = "add_external_initializers_from_files_in_memory"
        ways.append(("with the weights' file in memory", lambda it: getattr(it, add)(*of_files)))
    return ways


def _try(job_run: JobRun, furthest: Furthest, model: str, adjust: Adjust, circumstances: str) -> None:
    """Run a session that gets its weights from memory."""
    job_run.enter("create")
    try:
        runner = Runner(job_run.target.session(model, job_run.job, adjust=adjust))
        _run_all(job_run, furthest, runner, circumstances)
    except (MemoryError, UnsupportedError):
        raise
    except Exception as error:
        raise WeightsFromMemoryError("%s: %s" % (circumstances, clean(error))) from error


def _share(job_run: JobRun, furthest: Furthest, model: str, values: dict[str, Any]) -> None:
    """Run sessions that share one copy of the weights, all open, and then the last one alone."""

    def adjust(settings: Any) -> None:
        for name, value in values.items():
            settings.add_initializer(name, value)

    grown = []
    runners: list[Runner] = []
    try:
        for _ in range(_SHARING):
            before = resident_mib()
            job_run.enter("create")
            runners.append(Runner(job_run.target.session(model, job_run.job, adjust=adjust)))
            grown.append(_grown(before))
            for runner in runners:
                _run_all(job_run, furthest, runner, "with weights that sessions share")
        job_run.enter("teardown")
        del runners[0], runner
        _run_all(job_run, furthest, runners[0], "with weights shared with a session that is closed")
    except Exception as error:
        raise WeightsFromMemoryError("with weights that sessions share: %s" % clean(error)) from error
    job_run.facts["shared_mib"] = grown


def _run_all(job_run: JobRun, furthest: Furthest, runner: Runner, circumstances: str) -> None:
    for index, (feeds, _) in enumerate(furthest.pairs):
        job_run.begin_run()
        furthest.compare(index, runner(feeds), circumstances)


def _values(job_run: JobRun, weights: list[StoredWeight], files: dict[str, bytes]) -> dict[str, Any]:
    """Return each weight as an OrtValue; none if numpy lacks the element type of one."""
    made = {}
    for weight in weights:
        if weight.data_type not in _NUMPY:
            return {}
        content = files[weight.file][weight.offset :]
        content = content[: weight.nbytes] if weight.nbytes else content
        array = np.frombuffer(content, _NUMPY[weight.data_type]).reshape(weight.shape).copy()
        made[weight.name] = job_run.target.ort.OrtValue.ortvalue_from_numpy(array)
    return made


def _content(folder: str, name: str) -> bytes:
    with open(os.path.join(folder, *name.split("/")), "rb") as file:
        return file.read()


def _write_others(folder: str, files: dict[str, bytes]) -> None:
    """Write files of the same sizes with other contents: the same numbers in reverse order, or zeros."""
    for name, content in files.items():
        path = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        whole = len(content) // 8 * 8
        others = np.frombuffer(content[:whole], np.uint64)[::-1].tobytes() + content[whole:]
        with open(path, "wb") as file:
            file.write(others if others != content else bytes(len(content)))


def _grown(before: float | None) -> float:
    """Return by how many MiB this process has grown; 0 where the system does not tell."""
    now = resident_mib()
    return 0.0 if now is None or before is None else round(max(0.0, now - before), 2)
