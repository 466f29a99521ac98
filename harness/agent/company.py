"""Other models of the same shapes beside a model: sessions whose kernels or constants a provider may mix up.

The companions are made from the model itself: other weights, other activation functions. Each is compared
with itself on the CPU EP of the same runtime, roughly; the model's own results are judged by the harness.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from harness.agent.difference import difference
from harness.agent.faded import CROSS_TALK
from harness.agent.fresh_process import serve_afresh
from harness.agent.job_run import Feeds, JobRun, RawOutputs
from harness.agent.onnx_bytes import companions
from harness.agent.session_run import Runner
from harness.agent.session_target import CPU, FOLDER_KEY
from harness.agent.system import scratch_folder
from harness.agent.wire import to_feed

BEHIND = "behind"
"""Setting of the scenario in a fresh process: the companion that is made and run before the model."""

_LARGEST = 256 << 20  # bytes of a model's file up to which companions are made


class Companion:
    """A model made from the model of a job.

    ``what`` says how it differs; ``expected`` is what the CPU EP computes with the inputs of the first data
    set.
    """

    def __init__(self, what: str, model: bytes, expected: RawOutputs) -> None:
        self.what, self.model, self.expected = what, model, expected


def companions_of(job_run: JobRun, feeds: Feeds) -> list[Companion]:
    """Return the companions of a job's model that the CPU EP runs."""
    found = []
    for what, model in _models(job_run).items():
        try:
            expected = Runner(_on_cpu(job_run, model))(feeds)
        except Exception:  # noqa: BLE001, S112 - such as an activation of integers: it is no companion then
            continue
        found.append(Companion(what, model, expected))
    return found


def opened(job_run: JobRun, model: bytes, job: dict[str, Any] | None = None) -> Runner:
    """Return a session of a companion on the job's target; ``job`` has other settings for it."""
    job_run.enter("create")
    adjust = _finding_weights(job_run)
    return Runner(job_run.target.session(model, job_run.job if job is None else job, adjust=adjust))


def run_behind(job_run: JobRun, what: str) -> Runner:
    """Make and run a companion before the session of the model; return its session, which stays open."""
    feeds = {name: to_feed(wire) for name, wire in job_run.job["data_sets"][0]}
    runner = opened(job_run, _models(job_run)[what])
    job_run.begin_run()
    runner(feeds)
    return runner


def afresh(job_run: JobRun, model: str | bytes, **fields: Any) -> dict[str, Any]:
    """Return the result of such a job in a fresh process, without its scenario; ``fields`` differ."""
    job = {key: value for key, value in job_run.job.items() if not key.startswith("scenario")}
    with scratch_folder() as folder:
        if isinstance(model, bytes):
            content, model = model, os.path.join(folder, "model.onnx")
            with open(model, "wb") as file:
                file.write(content)
        job_run.enter("create")
        return serve_afresh(job_run.target, {**job, "model": model, **fields}, job_run.enter)


def disturbed(job_run: JobRun, companion: Companion, found: RawOutputs) -> bool:
    """Return whether a companion's result is wrong here, and right in a process of its own.

    A provider that computes the companion itself wrongly is not accused of mixing things up.
    """
    if difference(companion.expected, found) <= CROSS_TALK:
        return False
    alone = afresh(job_run, companion.model, data_sets=job_run.job["data_sets"][:1])
    return alone["status"] == "ok" and difference(companion.expected, alone["outputs"][0]) <= CROSS_TALK


def _models(job_run: JobRun) -> dict[str, bytes]:
    model = job_run.model
    if isinstance(model, str):
        if os.path.getsize(model) > _LARGEST:
            return {}
        with open(model, "rb") as file:
            model = file.read()
    return companions(model)


def _on_cpu(job_run: JobRun, model: bytes) -> Any:
    settings = job_run.target.settings(job_run.job)
    _finding_weights(job_run)(settings)
    return job_run.target.ort.InferenceSession(model, settings, providers=[CPU])


def _finding_weights(job_run: JobRun) -> Callable[[Any], None]:
    """Return a function that names the folder of the model's external data, as a model in memory needs."""

    def adjust(settings: Any) -> None:
        if isinstance(job_run.model, str):
            folder = os.path.dirname(os.path.abspath(job_run.model))
            settings.add_session_config_entry(FOLDER_KEY, folder)

    return adjust
