"""Callbacks for the data of a compiled model: the application takes what a provider would write beside it.

Such an application encrypts the data, or keeps them in a store of its own, and gives them back when the model
is loaded. A file in spite of the callback is readable for anybody.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np

from harness.agent.compiled_model import (
    COMPILED_NAME,
    LOADS_SAME,
    CompiledModelError,
    became,
    compile_copy,
    contexts_in,
    load_compiled,
    nothing_compiled,
    whole_file,
)
from harness.agent.furthest import Furthest
from harness.agent.job_run import JobRun
from harness.agent.plain import run_data_sets
from harness.agent.safe_text import clean

CONTEXT_DATA, _INVERTED = "context_data", "inverted"
"""Settings of the scenario in a fresh process: the folder of the data, and whether to give them inverted."""

_WORDS = "from file to file, embed_mode 0, data to a callback"
_UNSUPPORTED = "does not support the registered EPContext data"  # onnxruntime, for a provider without them
_FAILURE = "the application refuses"
_ASKED = "asked"


def play_callbacks(job_run: JobRun, furthest: Furthest, folder: str) -> dict[str, Any]:
    """Compile the model and load it by callbacks; what became of them is the fact ``callbacks``.

    Returns:
        The figures of the way as those of the others, by the name of the fact; none if it was not played.

    Raises:
        CompiledModelError: The provider takes the callbacks, and then does not use them, or loses errors.
    """
    if not hasattr(job_run.target.ort.ModelCompiler, "set_ep_context_data_write_func"):
        words = "onnxruntime %s has none in Python, 1.31 is the first"
        job_run.facts["callbacks"] = words % clean(job_run.target.ort.__version__)
        return {}
    data, installed = os.path.join(folder, "data"), os.path.join(folder, "installed")
    os.makedirs(data)

    def take(name: str, content: Any) -> None:
        with open(_file_of(data, name), "wb") as file:
            file.write(content.read())

    try:
        figures = _compile(job_run, installed, take)
    except CompiledModelError as error:
        if _UNSUPPORTED not in str(error):
            raise
        job_run.facts["callbacks"] = "refused: " + clean(error.__cause__, 200)
        return {}
    path = os.path.join(installed, COMPILED_NAME)
    _check_files(installed)
    if not contexts_in(path):
        raise nothing_compiled(job_run)
    written = len(os.listdir(data))
    if not written:
        job_run.facts["callbacks"] = "not used: the provider has no data beside the model"
        return {}
    result = load_compiled(job_run, furthest, path, _WORDS, **_asking(data))
    read = result["scenario"][_ASKED]
    if not read:
        raise _blame("it loads, and the application is not asked for the data")
    job_run.facts["callbacks"] = "%d written, %d read" % (written, read)
    inverted = became(job_run, furthest, path, **_asking(data, inverted=True))
    if inverted == LOADS_SAME:
        raise _blame("it computes the same with every bit of the data inverted")
    job_run.facts["callbacks_inverted"] = inverted
    _fail_to_write(job_run, os.path.join(folder, "failing", "installed"))
    _fail_to_read(job_run, path)
    return {**figures, "load_ms": float(result["timings_ms"]["create"])}


def run_from_callback(job_run: JobRun, settings: dict[str, Any]) -> None:
    """Load a compiled model with the data of a folder, and run it, in the fresh process."""
    asked: list[str] = []

    def give(name: str, buffer: Any) -> None:
        asked.append(name)
        content = whole_file(_file_of(settings[CONTEXT_DATA], name))
        if settings[_INVERTED]:
            content = (~np.frombuffer(content, np.uint8)).tobytes()
        buffer.allocate(len(content))
        buffer.write(content)

    sizes = [os.path.getsize(file.path) for file in os.scandir(settings[CONTEXT_DATA])]
    job_run.adjust = lambda it: it.set_ep_context_data_read_func(give, max(1, *sizes))
    job_run.create()
    run_data_sets(job_run)
    job_run.facts[_ASKED] = len(asked)


def _compile(job_run: JobRun, folder: str, take: Any) -> dict[str, Any]:
    return compile_copy(
        job_run,
        folder,
        "file",
        "file",
        embedded=False,
        words=_WORDS,
        prepare=lambda it: it.set_ep_context_data_write_func(take),
    )


def _asking(data: str, *, inverted: bool = False) -> dict[str, Any]:
    """Return the fields of a job that loads a compiled model with the data of a folder."""
    return {"scenario": "compile", "scenario_settings": {CONTEXT_DATA: data, _INVERTED: inverted}}


def _file_of(data: str, name: str) -> str:
    """Return where data lie: their name is the provider's, and need not be one of a file."""
    return os.path.join(data, hashlib.sha256(name.encode()).hexdigest())


def _blame(words: str) -> CompiledModelError:
    return CompiledModelError("compiled %s: %s" % (_WORDS, words))


def _check_files(folder: str) -> None:
    """Blame the provider for data beside a compiled model."""
    files = sorted(set(os.listdir(folder)) - {COMPILED_NAME})
    if files:
        raise _blame("the provider also writes %s" % clean(", ".join(files)))


def _fail(*_: Any) -> None:
    raise RuntimeError(_FAILURE)


def _fail_to_write(job_run: JobRun, folder: str) -> None:
    """Compile with a callback that fails: its error must not be lost, nor files be written instead."""
    try:
        _compile(job_run, folder, _fail)
    except CompiledModelError:
        _check_files(folder)
    else:
        raise _blame("the error of a callback that fails is lost")


def _fail_to_read(job_run: JobRun, path: str) -> None:
    """Load with a callback that fails: its error must not be lost."""
    job_run.enter("create")
    try:
        job_run.target.session(
            path, job_run.job, adjust=lambda it: it.set_ep_context_data_read_func(_fail, 1)
        )
    except Exception:  # noqa: BLE001 - as it has to be
        return
    raise _blame("the error of a callback that fails is lost when it is loaded")
