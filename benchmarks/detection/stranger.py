"""Runs models in another interpreter, on another execution provider; imports nothing of the harness.

``python stranger.py REQUEST.json``: the request names a provider and the jobs, each with a model, inputs and
where its outputs go (numpy's .npz). What cannot be run leaves a text of the same name with ``.error`` behind.
"""

import importlib
import json
import os
import sys

import numpy as np
import onnxruntime as ort

UNUSABLE = 3


def settings_of(request):
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = request.get("threads", 1)
    settings.inter_op_num_threads = 1
    for key, value in request.get("session", {}).items():
        settings.add_session_config_entry(key, value)
    return settings


def unusable(why):
    sys.stderr.write(why)
    sys.exit(UNUSABLE)


def share_of(session, name):
    """Which part of the nodes the provider has computed itself, by the profile of the run."""
    path = session.end_profiling()
    with open(path, encoding="utf-8", errors="replace") as stream:
        events = json.load(stream)
    os.remove(path)
    nodes = {}
    for event in events:
        arguments = event.get("args") or {}
        if event.get("cat") == "Node" and arguments.get("provider"):
            if not arguments.get("op_name", "").startswith("Memcpy"):
                nodes[event["name"]] = arguments["provider"].lower() == name.lower()
    return sum(nodes.values()) / len(nodes) if nodes else 0.0


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        request = json.load(stream)
    name, plugin, devices = request["provider"], request.get("plugin"), []
    if plugin:
        ort.register_execution_provider_library(name, importlib.import_module(plugin).get_library_path())
        wanted = request.get("device", "")
        found = [device for device in ort.get_ep_devices() if device.ep_name == name]
        devices = [one for one in found if not wanted or str(one.device.type).endswith("." + wanted)][:1]
        if not devices:
            unusable("%s offers no device" % name)
    elif name not in ort.get_available_providers():
        unusable("%s is not in this onnxruntime" % name)
    for job in request["jobs"]:
        try:
            settings = settings_of(request)
            if name != "CPUExecutionProvider":
                settings.enable_profiling = True
                settings.profile_file_prefix = job["outputs"]
            if devices:
                settings.add_provider_for_devices(devices, request.get("options", {}))
                session = ort.InferenceSession(job["model"], settings)
            else:
                session = ort.InferenceSession(
                    job["model"], settings, providers=[(name, request.get("options", {}))]
                )
            if name not in session.get_providers():
                raise RuntimeError("the session is without the provider")
            with np.load(job["inputs"]) as inputs:
                feeds = {key: inputs[key] for key in inputs.files}
            names = [output.name for output in session.get_outputs()]
            results = session.run(names, feeds)
            share = 1.0 if name == "CPUExecutionProvider" else share_of(session, name)
            arrays = {str(index): result for index, result in enumerate(results)}
            np.savez(job["outputs"] + ".part.npz", share=share, **arrays)
            os.replace(job["outputs"] + ".part.npz", job["outputs"])
        except Exception as error:  # noqa: BLE001 - the text is the result
            with open(job["outputs"] + ".error", "w", encoding="utf-8") as stream:
                stream.write(str(error)[:2000])


if __name__ == "__main__":
    main()
