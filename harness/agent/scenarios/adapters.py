"""Scenario ``adapters``: LoRA adapters change from run to run in one session.

The model has inputs for the matrices of adapters, with zeros as defaults. Each data set has the values of the
adapters of its run; they are written into files of onnxruntime's adapter format and loaded from there. This
shows a provider that keeps the adapter of an earlier run, that ignores one, or that lacks such inputs.
"""

from __future__ import annotations

import os
from typing import Any

from harness.agent.adapter_names import adapter_of
from harness.agent.input_guard import Fed
from harness.agent.job_run import Feeds, JobRun, RawOutputs
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.system import scratch_folder
from harness.agent.target_errors import ApiMissingError, UnsupportedError
from harness.agent.wire import to_feed

_VERSION = 1  # of an adapter, and of the model it is for; onnxruntime compares neither


def play(job_run: JobRun) -> None:
    """Run each data set with its adapters active; all outputs are judged.

    Raises:
        UnsupportedError: This onnxruntime has no adapters, or an output is of a type that numpy lacks.
    """
    ort = job_run.target.ort
    if not hasattr(ort, "LoraAdapter"):
        raise ApiMissingError("onnxruntime %s has no adapters, 1.20 is the first" % clean(ort.__version__))
    job_run.create()
    if job_run.runner.has_narrow:
        raise UnsupportedError("a run with adapters gives arrays, and numpy lacks the type of an output")
    counts, sizes = [], []
    job_run.result["outputs"] = []
    with scratch_folder() as folder:
        for inputs in job_run.job["data_sets"]:
            feeds = {name: to_feed(wire) for name, wire in inputs}
            values: dict[str, Feeds] = {}
            for name in list(feeds):
                if number := adapter_of(name):
                    values.setdefault(number, {})[name] = feeds.pop(name)
            paths = [_write(ort, folder, number, own) for number, own in sorted(values.items())]
            counts.append(len(paths))
            sizes.append(sum(map(os.path.getsize, paths)))
            job_run.result["outputs"].append(job_run.send(_run(job_run, feeds, paths)))
    job_run.facts.update(adapters=counts, adapter_bytes=sizes)
    conclude(job_run)


def _write(ort: Any, folder: str, number: str, values: Feeds) -> str:
    """Return the path of an adapter with these values."""
    adapter, path = ort.AdapterFormat(), os.path.join(folder, number + ".onnx_adapter")
    adapter.set_adapter_version(_VERSION)
    adapter.set_model_version(_VERSION)
    adapter.set_parameters({name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in values.items()})
    adapter.export_adapter(path)
    return path


def _run(job_run: JobRun, feeds: Feeds, paths: list[str]) -> RawOutputs:
    """Run once with the adapters of these files, which are loaded for this run alone."""
    ort, options = job_run.target.ort, job_run.target.ort.RunOptions()
    adapters = []
    for path in paths:
        adapters.append(ort.LoraAdapter())
        adapters[-1].Load(path)
        options.add_active_adapter(adapters[-1])
    job_run.begin_run()
    fed = Fed(feeds)
    outputs: RawOutputs = job_run.runner.in_wire_form(
        list(job_run.session.run(job_run.runner.names, feeds, options))
    )
    job_run.look_at(fed)
    return outputs
