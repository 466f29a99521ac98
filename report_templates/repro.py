#!/usr/bin/env python3
"""Runs model.onnx as manifest.json says, and tells whether the fault is there.

    python repro.py [KEY=VALUE ...]

Needs onnxruntime, numpy and the execution provider (EP). KEY=VALUE replaces a provider option, and
plugin=PATH the library of the EP. Exit code 0: the fault is gone, 1: it is there, 2: it cannot be judged.
"""

import json
import os
import signal
import subprocess
import sys

from repro_result import CANNOT, CHILD, GONE, THERE, tell

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    """Try as often as the manifest says, each time in a fresh process, until the fault shows."""
    with open(os.path.join(HERE, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    if "--child" in sys.argv:
        from repro_judge import child  # it imports numpy, which this process has no use for

        return child(manifest, dict(one.split("=", 1) for one in sys.argv[1:] if "=" in one))
    fault, environment = manifest["fault"], dict(os.environ)
    print("{}\nThe verdict was: {} {}".format(fault["sentence"], fault["verdict"], fault.get("cause", "")))
    for name, value in manifest["target"].get("env", {}).items():
        if "<path>" not in value:
            environment[name] = value
        elif name not in environment:
            return tell(CANNOT, f"set the environment variable {name}; it was {value}")
    code = CANNOT
    for _ in range(manifest.get("trials", 1)):
        code = trial(manifest, environment)
        if code != GONE:
            break
    return code


def trial(manifest, environment):
    """Run one child, and judge how it ends."""
    verdict, limit = manifest["fault"]["verdict"], manifest.get("time_limit_s", 600)
    command = [sys.executable, os.path.abspath(__file__), "--child", *sys.argv[1:]]
    try:
        code = subprocess.run(command, env=environment, timeout=limit, check=False).returncode
    except subprocess.TimeoutExpired:
        return tell(THERE if verdict == "hang" else CANNOT, f"no end after {limit:g} seconds")
    if code - CHILD in (GONE, THERE, CANNOT):
        return code - CHILD
    how = signal.Signals(-code).name if code < 0 else f"exit code 0x{code:X}"
    return tell(THERE if verdict in ("crash", "out_of_memory") else CANNOT, f"the process died: {how}")


if __name__ == "__main__":
    sys.exit(main())
