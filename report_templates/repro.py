#!/usr/bin/env python3
"""Runs model.onnx as manifest.json says, and tells whether the fault is there.

    python repro.py [KEY=VALUE ...]

Needs onnxruntime, numpy and the execution provider (EP). KEY=VALUE replaces a provider option, and
plugin=PATH the library of the EP. Exit code 0: the fault is gone, 1: it is there, 2: it cannot be judged.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from repro_session import CPU, Target, run
from repro_values import compare, read

GONE, THERE, CANNOT = 0, 1, 2
CHILD = 40  # added to the exit code of the child, so that a provider's own exit code is not taken for it
HERE = os.path.dirname(os.path.abspath(__file__))
VALUES = {"mismatch", "nan_mismatch", "shape_mismatch", "dtype_mismatch"}
RAISES = {"error", "option_rejected", "out_of_memory", "unsupported"}


def main():
    """Try as often as the manifest says, each time in a fresh process, until the fault shows."""
    with open(os.path.join(HERE, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    if "--child" in sys.argv:
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


def child(manifest, replaced):
    """Run the model in this process, and leave with CHILD + the result."""
    code = CANNOT
    try:
        import onnxruntime as ort

        code = judge(ort, manifest, replaced)
    except Exception as error:  # anything that is not the fault itself
        tell(CANNOT, f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    if manifest["fault"]["verdict"] not in ("crash", "hang"):
        os._exit(CHILD + code)  # without a teardown, which is not what is judged
    return CHILD + code


def judge(ort, manifest, replaced):
    """Make the session, run it, and compare."""
    verdict, axes = manifest["fault"]["verdict"], manifest["axes"]
    target = Target(ort, manifest, replaced)
    for before in manifest.get("preceding", []):
        with contextlib.suppress(Exception):  # only what it leaves behind matters
            before_inputs = {one["name"]: read(HERE, one) for one in before["inputs"]}
            run(ort, target.session(before["model"]), before_inputs)
    sets = [
        [{one["name"]: read(HERE, one) for one in data[role]} for role in ("inputs", "outputs")]
        for data in manifest["data_sets"]
    ]
    limits = {one["name"]: one.get("limit") for data in manifest["data_sets"] for one in data["outputs"]}
    try:
        session = target.session("model.onnx", axes["scenario"])
        providers = session.get_providers()
        results = list(runs(ort, session, target, sets, manifest))
    except Exception as error:
        return raised(ort, manifest, error)
    nodes = target.nodes(session)
    print(f"nodes on {target.chain[0]}: {nodes}")
    changed = session.get_providers() != providers
    if not nodes["EP"]:
        return tell(CANNOT, "no node ran on the EP, so nothing is said about it")
    if verdict == "fallback_at_run":
        return tell(THERE if changed else GONE, f"providers after the run: {session.get_providers()}")
    if verdict == "nondeterministic":
        first = results[0][1]
        bad = [
            line
            for _, outputs, _ in results
            for name in first
            for wrong, line in compare(name, first[name], outputs[name], 0.0)
            if wrong
        ]
        return tell(THERE if bad else GONE, bad[0] if bad else f"{len(results)} runs are equal")
    wrong = False
    for label, outputs, expected in results:
        for name, value in expected.items():
            for bad, line in compare(name, value, outputs.get(name), limits.get(name)):
                wrong = wrong or bad
                print("{}  {}, {}".format("WRONG" if bad else "ok   ", label, line))
    if verdict in VALUES:
        return tell(THERE if wrong else GONE, "wrong values" if wrong else "all values are right")
    return tell(GONE, "it ran to its end" + (", with wrong values, which is another fault" if wrong else ""))


def raised(ort, manifest, error):
    """Judge an exception: the same words, and a model that the CPU EP takes, make it the same fault."""
    fault, text = manifest["fault"], str(error)
    print(f"raised {type(error).__name__}: {text[:2000]}")
    words = set(re.findall("[a-z]{3,}", re.sub("<[^>]*>", " ", fault.get("message", "").lower())))
    same = [word for word in words if word in text.lower()]
    if fault["verdict"] not in RAISES:
        return tell(CANNOT, "it fails in another way")
    if len(same) < 0.8 * len(words):
        return tell(CANNOT, "another error; it was: {}".format(fault.get("message")))
    if manifest["target"]["provider"][0] != CPU:
        try:
            ort.InferenceSession(os.path.join(HERE, "model.onnx"), providers=[CPU])
        except Exception as other:
            return tell(CANNOT, f"the CPU EP refuses the model, too: {other}")
    return tell(THERE, "the error is there")


def runs(ort, session, target, sets, manifest):
    """Yield the label, outputs and expected outputs of each run that the scenario asks for."""
    scenario = manifest["axes"]["scenario"]
    inputs, expected = sets[0]
    bound = scenario == "io_binding"
    if scenario == "concurrent":
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda _: run(ort, session, inputs), range(32)))
        for number, outputs in enumerate(done, 1):
            yield f"run {number} in 4 threads", outputs, expected
        return
    for number, (inputs_now, expected_now) in enumerate(sets, 1):
        yield f"run {number}", run(ort, session, inputs_now, bound=bound), expected_now
    for number in range(len(sets) + 1, len(sets) + manifest.get("runs", 2)):
        if scenario == "sessions":
            session = target.session("model.onnx")
        yield f"run {number}", run(ort, session, inputs, bound=bound), expected


def tell(code, why):
    """Print the result, and return its exit code."""
    print("{}: {}".format(("FAULT GONE", "FAULT THERE", "CANNOT BE JUDGED HERE")[code], why), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
