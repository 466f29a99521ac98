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
import time
from concurrent.futures import ThreadPoolExecutor

from repro_scenarios import (
    adapter_runs,
    behind_another,
    beside_others,
    buffer_runs,
    compiled_runs,
    weight_runs,
)
from repro_session import CPU, Target, run, start
from repro_values import compare, read

GONE, THERE, CANNOT = 0, 1, 2
CROSS_TALK = 0.05  # distance of a result among others from that alone, beyond what rounding explains
SESSIONS = 3  # of the scenario interleaved
ROUNDS = 3  # of the scenario lifecycle
IN_FLIGHT = 4  # runs of the scenario async_runs
SHOWN = 40  # runs up to which right results are printed, too
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
    if axes["scenario"] == "free_dimensions":
        target.fix("model.onnx", sets[0][0])
    try:
        held = [target.session("model.onnx", axes["scenario"])]
        providers = held[0].get_providers()
        results = list(runs(ort, held, target, sets, manifest))
    except Exception as error:
        return raised(ort, manifest, error)
    nodes = target.nodes(held[0])
    print(f"nodes on {target.chain[0]}: {nodes}")
    changed = held[0].get_providers() != providers
    if not nodes["EP"]:
        return tell(CANNOT, "no node ran on the EP, so nothing is said about it")
    if verdict == "fallback_at_run":
        return tell(THERE if changed else GONE, f"providers after the run: {held[0].get_providers()}")
    if verdict == "nondeterministic":
        same = [outputs for _, number, outputs in results if number == 0]
        bad = [
            line
            for outputs in same
            for name in same[0]
            for wrong, line in compare(name, same[0][name], outputs[name], 0.0)
            if wrong
        ]
        return tell(THERE if bad else GONE, bad[0] if bad else f"{len(same)} runs are equal")
    wrong = False
    for label, number, outputs in results:
        for name, value in sets[number][1].items():
            for bad, line in compare(name, value, outputs.get(name), limits.get(name)):
                wrong = wrong or bad
                if bad or len(results) <= SHOWN:
                    print("{}  {}, {}".format("WRONG" if bad else "ok   ", label, line))
    if verdict in VALUES:
        return tell(THERE if wrong else GONE, "wrong values" if wrong else "all values are right")
    return tell(GONE, "it ran to its end" + (", with wrong values, which is another fault" if wrong else ""))


def raised(ort, manifest, error):
    """Judge an exception: the same words, and a model that the CPU EP takes, make it the same fault."""
    fault, text = manifest["fault"], f"{type(error).__name__}: {error}"  # as a verdict's message has it
    print(f"raised {text[:2000]}")
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


def runs(ort, held, target, sets, manifest):
    """Yield the label, the number of the data set and the outputs of each run that the scenario asks for."""
    axes, again = manifest["axes"], manifest.get("runs", 2)
    scenario = axes["scenario"]
    if scenario == "concurrent":
        yield from concurrent_runs(ort, held[0], sets, manifest)
        return
    if scenario in OTHER_RUNS:
        yield from OTHER_RUNS[scenario](ort, held, target, sets)
        return
    sessions = int(axes.get("repeat.sessions", 1))
    if scenario == "sessions":
        sessions, again = int(axes.get("scenario.count", again)), 1
    order = [*range(len(sets)), *[0] * (again - 1)]
    count = 0
    for session in range(sessions):
        if session:
            held.clear()  # it ends before the next one is made
            held.append(target.session("model.onnx", scenario))
        for number in order:
            count += 1
            outputs = run(ort, held[0], sets[number][0], bound=scenario == "io_binding")
            yield f"run {count}", number, outputs


def concurrent_runs(ort, session, sets, manifest):
    """Run all data sets alone, then in threads at once, as often as the axes say.

    A result of the first one is judged as any run's is. Another one that differs from that alone is an error.
    """
    axes, raises = manifest["axes"], manifest["fault"]["verdict"] == "error"
    threads, times = int(axes.get("scenario.threads", 4)), int(axes.get("scenario.runs", 8))
    until = time.monotonic() + int(axes.get("scenario.budget_s", 20))
    alone = [run(ort, session, inputs) for inputs, _ in sets]

    def work(_):
        done = []
        for turn in range(times):
            if not turn or time.monotonic() < until:
                done += [(number, run(ort, session, inputs)) for number, (inputs, _) in enumerate(sets)]
        return done

    with ThreadPoolExecutor(threads) as pool:
        done = [one for of_thread in list(pool.map(work, range(threads))) for one in of_thread]
    for number, outputs in done:
        pairs = [(name, value, outputs[name]) for name, value in alone[number].items()] if raises else []
        if number and any(wrong for pair in pairs for wrong, _ in compare(*pair, CROSS_TALK)):
            raise RuntimeError(
                f"among concurrent runs a result is off by more than {CROSS_TALK} of its largest value, "
                "which it is not alone"
            )
        yield f"a run in {threads} threads", number, outputs


def interleaved_runs(ort, held, target, sets):
    """Open three sessions, run all in turns, and close them one by one; then run beside other models."""
    yield from behind_another(ort, held, target, sets)
    while len(held) < SESSIONS:
        held.append(target.session("model.onnx"))
    while True:
        for at, session in enumerate(held):
            for number, (inputs, _) in enumerate(sets):
                yield f"session {at + 1} of {len(held)}", number, run(ort, session, inputs)
        if len(held) == 1:
            break
        session = None  # the last name of the one that is closed
        held.pop(1 if len(held) == SESSIONS else 0)
    session = None
    yield from beside_others(ort, held, target, sets)


def separate_runs(ort, held, _, sets):
    """Request each output alone."""
    for number, (inputs, _) in enumerate(sets):
        names = [port.name for port in held[0].get_outputs()]
        alone = [run(ort, held[0], inputs, only=name) for name in names]
        yield "each output alone", number, {name: value for one in alone for name, value in one.items()}


def runs_in_flight(ort, held, _, sets):
    """Start several runs of each data set before the first result is awaited."""
    for number, (inputs, _) in enumerate(sets):
        ended = [start(ort, held[0], inputs) for _ in range(IN_FLIGHT)]
        for one in ended:
            yield "a run in flight", number, one.result()


def lifecycle_runs(ort, held, target, sets):
    """Unregister the library and register it again; at last, register it twice, which onnxruntime refuses."""
    for turn in range(1, ROUNDS + 1):
        for number, (inputs, _) in enumerate(sets):
            yield f"round {turn}", number, run(ort, held[0], inputs)
        held.clear()
        if turn < ROUNDS:
            print(f"unregister {turn}", flush=True)
            target.unregister()
            target.register()
        else:
            with contextlib.suppress(Exception):
                ort.register_execution_provider_library(target.chain[0], target.library)
        held.append(target.session("model.onnx"))
    for number, (inputs, _) in enumerate(sets):
        yield "registered twice", number, run(ort, held[0], inputs)


OTHER_RUNS = {
    "lifecycle": lifecycle_runs,
    "interleaved": interleaved_runs,
    "separate_outputs": separate_runs,
    "async_runs": runs_in_flight,
    "buffers": buffer_runs,
    "initializers": weight_runs,
    "adapters": adapter_runs,
    "compile": compiled_runs,
}


def tell(code, why):
    """Print the result, and return its exit code."""
    print("{}: {}".format(("FAULT GONE", "FAULT THERE", "CANNOT BE JUDGED HERE")[code], why), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
