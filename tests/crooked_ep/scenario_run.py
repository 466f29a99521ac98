"""One run over the faults that a scenario alone shows, each with a plain run of the same model beside it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cli.main import main
from harness.core.records.record import Record
from tests.crooked_ep.faults import SHOWN_BY, Planted
from tests.crooked_ep.models import small_models, write_model
from tests.crooked_ep.planted_run import PROVIDER, toml
from tests.kit import read_records

ONLY = {
    "constants_of_newest": "only in the company of a model with other weights: ",
    "kernels_by_size": "only in the company of a model with other activations: ",
    "adds_to_output": "only in buffers filled with a pattern: ",
    "skips_last": "only in buffers filled with a pattern: ",
    "reads_file": "only with weights as values, other contents in the file: ",
    "shared_by_address": "only with weights that sessions share: ",
    "context_file_missing": "from file to file, embed_mode 0, moved, loaded by a fresh process: ",
    "context_absolute_path": "from file to file, embed_mode 0, moved, loaded by a fresh process: ",
    "stale_is_optimal": "the description of a damaged compiled model is called EP_SUPPORTED_OPTIMAL",
    "fresh_is_unsupported": "a model that was compiled here and loads is called EP_UNSUPPORTED",
    "stale_refused_later": "is called EP_SUPPORTED_PREFER_RECOMPILATION, and then: refused",
    "callback_ignored": "the provider also writes compiled.onnx_crooked_0.bin",
    "callback_error_lost": "the error of a callback that fails is lost",
    "callback_never_asked": "it loads, and the application is not asked for the data",
    "callback_data_unused": "it computes the same with every bit of the data inverted",
    "callback_read_error_lost": "the error of a callback that fails is lost when it is loaded",
    "shared_memory_wiped": "only after a session with other weights that shared its allocators was closed: ",
    "copy_beyond_end": "a copy of 4 bytes from the device: 4 bytes after its buffer were written",
    "writes_beyond": "bytes after its buffer were written",
    "writes_before": "bytes before its buffer were written",
}
"""Fault -> words of the reason."""

Records = dict[tuple[str, str], Record]
"""Target with its scenario, and fault -> the record."""


def has_own_target(fault: Planted) -> bool:
    """Return whether a fault is one of the library as a whole, which a session's graph cannot choose."""
    return fault.place in {"MODEL_COMPILER", "NPU_BUFFERS"}


def run_in_scenarios(
    folder: Path, library: Path, faults: Sequence[Planted], runtime: Mapping[str, Any] | None = None
) -> Records:
    """Run these faults, and their models without a fault; ``runtime`` is that of each target."""
    models = small_models()
    own = [fault.name for fault in faults if has_own_target(fault)]
    for fault in faults:
        write_model(folder / "models" / SHOWN_BY[fault.place] / fault.name, models[fault.model], fault.name)
    scenarios = sorted({SHOWN_BY[fault.place] for fault in faults})
    text = f"""schema = 1
models = {{ folders = [{", ".join(json.dumps(f"models/{name}") for name in scenarios)}] }}
axes = {{ scenario = ["plain", {", ".join(map(json.dumps, scenarios))}] }}
"""
    compiled = [fault.name for fault in faults if fault.place == "MODEL_COMPILER"]
    npu = [fault.name for fault in faults if fault.place == "NPU_BUFFERS"]
    for name, chosen in (("honest", "none"), ("crooked", "graph"), *((one, one) for one in own)):
        text += f"""[[target]]
name = "{name}"
provider = "{PROVIDER}"
plugin = "{library}"
runtime = {toml(dict(runtime or {}))}
options = {{ fault = "{chosen}" }}
"""
        text += 'device = { type = "NPU" }\n' if name in npu else ""
    if own:
        alone = json.dumps([f"*/{name}/*" for name in own])
        text += f'[[exclude]]\ntarget = "crooked"\nmodel = {alone}\n'
    for name in own:
        others = [f"*/{one.name}/*" for one in faults if one.name != name]
        text += f"[[exclude]]\ntarget = {json.dumps(name)}\nmodel = {json.dumps(others)}\n"
    if compiled[1:]:  # they share a model
        once = json.dumps([f"compile/{name}/*" for name in compiled[1:]])
        text += f'[[exclude]]\ntarget = "honest"\nmodel = {once}\n'
    for name in scenarios:
        others = [other for other in scenarios if other != name]
        text += (
            f"[[exclude]]\nscenario = {json.dumps(name)}\nsuite = {json.dumps(others)}\n" if others else ""
        )
    (folder / "matrix.toml").write_text(text, encoding="utf-8")
    main(["run", str(folder / "matrix.toml"), "--out", str(folder / "run"), "--no-report"])
    return {
        (f"{record.target} {record.axes.get('scenario', 'plain')}", record.model.partition("/")[0]): record
        for record in read_records(folder / "run")
    }
