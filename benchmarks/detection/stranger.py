"""Runs models in another interpreter, on another execution provider; imports nothing of the harness.

``python stranger.py REQUEST.json``: the request names a provider and the jobs, each with a model, inputs and
where its outputs go (numpy's .npz). What cannot be run leaves a text of the same name with ``.error`` behind.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

ort: Any = onnxruntime
UNUSABLE = 3
CPU = "CPUExecutionProvider"


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    devices = find_devices(request)
    for job in request["jobs"]:
        outputs = Path(job["outputs"])
        try:
            arrays = run(request, job, devices)
        except Exception as error:  # noqa: BLE001 - the text is the result
            Path(job["outputs"] + ".error").write_text(str(error)[:2000], encoding="utf-8")
            continue
        # Whole or not at all: the next run may be the one that the process dies of.
        unfinished = outputs.with_suffix(".part.npz")
        np.savez(unfinished, **arrays)
        unfinished.replace(outputs)


def find_devices(request: dict[str, Any]) -> list[Any]:
    """The device of a plugin; none for a provider of the build."""
    name, plugin = request["provider"], request.get("plugin")
    if plugin:
        ort.register_execution_provider_library(name, importlib.import_module(plugin).get_library_path())
        found = [device for device in ort.get_ep_devices() if device.ep_name == name]
        if not found:
            unusable(f"{name} offers no device")
        return found[:1]
    if name not in ort.get_available_providers():
        unusable(f"{name} is not in this onnxruntime")
    return []


def run(request: dict[str, Any], job: dict[str, str], devices: list[Any]) -> dict[str, Any]:
    """Outputs by their places, and the share of the nodes that the provider has computed itself."""
    name, options = request["provider"], request.get("options", {})
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    for key, value in request.get("session", {}).items():
        settings.add_session_config_entry(key, value)
    if name != CPU:
        settings.enable_profiling = True
        settings.profile_file_prefix = job["outputs"]
    if devices:
        settings.add_provider_for_devices(devices, options)
        session = ort.InferenceSession(job["model"], settings)
    else:
        session = ort.InferenceSession(job["model"], settings, providers=[(name, options)])
    with np.load(job["inputs"]) as inputs:
        feeds = {key: inputs[key] for key in inputs.files}
    results = session.run([output.name for output in session.get_outputs()], feeds)
    arrays = {str(index): result for index, result in enumerate(results)}
    return {**arrays, "share": 1.0 if name == CPU else share_of(session, name)}


def share_of(session: Any, name: str) -> float:
    """Which part of the nodes the provider has computed itself, by the profile of the run."""
    profile = Path(session.end_profiling())
    events = json.loads(profile.read_text(encoding="utf-8", errors="replace"))
    profile.unlink()
    nodes = {}
    for event in events:
        arguments = event.get("args") or {}
        # Copies between devices are no nodes.
        if arguments.get("provider") and not arguments.get("op_name", "").startswith("Memcpy"):
            nodes[event["name"]] = arguments["provider"].lower() == name.lower()
    return sum(nodes.values()) / len(nodes) if nodes else 0.0


def unusable(why: str) -> None:
    sys.stderr.write(why)
    sys.exit(UNUSABLE)


if __name__ == "__main__":
    main()
