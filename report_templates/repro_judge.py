"""What the process of one trial does: make the session, run the model, and judge the result."""

import contextlib
import json
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from repro_result import CANNOT, CHILD, GONE, THERE, tell
from repro_scenarios import (
    adapter_runs,
    behind_another,
    beside_others,
    buffer_runs,
    compiled_runs,
    weight_runs,
)
from repro_session import CPU, HERE, Target, run, start
from repro_values import Tensor, compare, feeds, read

CROSS_TALK = 0.05  # distance of a result among others from that alone, beyond what rounding explains
SESSIONS = 3  # of the scenario interleaved
ROUNDS = 3  # of the scenario lifecycle
IN_FLIGHT = 4  # runs of the scenario async_runs
LENGTH = "ep_harness_iterations"  # the input that says how often the model of the scenario terminate computes
SHORTEST, LEAST_S = 4, 0.05  # iterations and seconds of a run that shows the pace of a loop
SHOWN = 40  # runs up to which right results are printed, too
VALUES = {"mismatch", "nan_mismatch", "shape_mismatch", "dtype_mismatch"}
RAISES = {"error", "option_rejected", "out_of_memory", "unsupported"}


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


def cut_runs(ort, held, _, sets):
    """Tell a long run to end in its middle, then run each data set again."""
    if LENGTH in sets[0][0]:
        cut(ort, held[0], {name: feeds(value, ort) for name, value in sets[0][0].items()})
    for number, (inputs, _) in enumerate(sets):
        yield "after a run that was ended early", number, run(ort, held[0], inputs)


def cut(ort, session, fed):
    """Measure the pace of the loop, and tell a run eight times as long to end; an error if it does not."""
    names, count, took = [port.name for port in session.get_outputs()], 1, 0.0
    while count < SHORTEST or took < LEAST_S:
        count *= 2
        begun = time.monotonic()
        session.run(names, {**fed, LENGTH: np.array(count)})
        took = time.monotonic() - begun
    options, begun = ort.RunOptions(), time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        long_run = pool.submit(session.run, names, {**fed, LENGTH: np.array(8 * count)}, options)
        time.sleep(took / 2)
        options.terminate, told = True, time.monotonic() - begun
        error = long_run.exception()
    ended = time.monotonic() - begun
    print(
        f"told to end after {told:.3g} s, a run of {8 * count} iterations ended after {ended:.3g} s: {error}"
    )
    if error is None:
        raise RuntimeError(
            f"TerminateIgnoredError: told to end after {told:.3g} s, the run went on to its end, "
            f"after {ended:.3g} s and {8 * count} iterations"
        )
    if "terminat" not in str(error).lower():
        raise error


def option_runs(ort, held, target, sets):
    """Set, change and reset each option of an open session, and run after each."""
    for key, values in target.dynamic_options:
        for value in (*values[1:3], values[0]):
            held[0].set_ep_dynamic_options({key: value})
            for number, (inputs, _) in enumerate(sets):
                yield f"after {key}={value}", number, run(ort, held[0], inputs)
    for number, (inputs, _) in enumerate(sets):
        yield "at last", number, run(ort, held[0], inputs)


def profiled_runs(ort, held, target, sets):
    """Run two sessions with a profile in turns, and compare their events with their runs."""
    target.profiles, plain = True, target.profiles
    held += [target.session("model.onnx") for _ in range(2)]
    target.profiles = plain
    times = [0, 0]
    for which in (0, 1, 0, 1, 1):
        times[which] += 1
        for number, (inputs, _) in enumerate(sets):
            yield f"profiled session {which + 1}", number, run(ort, held[1 + which], inputs)
    counts = []
    for session, count in zip(held[1:], times):
        with open(session.end_profiling(), encoding="utf-8") as file:
            events = [event for event in json.load(file) if event.get("ph") == "X"]
        whole = [event for event in events if event["name"] == "model_run"]
        inner = [event for event in events if event.get("cat") in ("Node", "Kernel")]
        counts.append(len([event for event in inner if event["cat"] == "Node"]) / count)
        print(f"{count} turns: {len(whole)} runs, {len(inner)} events of nodes and kernels")
        said = "ProfileError: the profile"
        if len(whole) != count * len(sets):
            raise RuntimeError(
                f"{said} of a session that ran {count * len(sets)} times has {len(whole)} runs"
            )
        for event in inner:
            start, long = event["ts"], event["dur"]
            said = "ProfileError: the profile's event {}".format(event["name"])
            if long < 0 or start < 0:
                raise RuntimeError(f"{said} has the time {start:g} us and the duration {long:g} us")
            if not any(lies_in(start, start + long, one) for one in whole):
                where = "lies in none of the session's runs"
                raise RuntimeError(f"{said}, of {long:g} us at {start:g} us, {where}")
    if counts[0] != counts[1]:
        raise RuntimeError(
            f"ProfileError: of two sessions, each run of the one has {counts[0]:g} node events, "
            f"each of the other has {counts[1]:g}"
        )
    del held[1:]


def lies_in(start, end, whole):
    """Whether an event lies in a run, but for a twentieth of it or 100 us."""
    slack = max(100, whole["dur"] / 20)
    return whole["ts"] - slack <= start and end <= whole["ts"] + whole["dur"] + slack


def captured_runs(ort, held, target, sets):
    """Capture a graph of each data set, and replay it, also with other values in the same buffers."""
    if not target.graph_capture:
        for number, (inputs, _) in enumerate(sets):
            yield "a run", number, run(ort, held[0], inputs)
        return
    option, device = target.graph_capture
    plain, names = held[0], [port.name for port in held[0].get_outputs()]
    target.options[option] = "1"
    held[0] = target.session("model.onnx")
    for number, (inputs, _) in enumerate(sets):
        fed = {name: feeds(value, ort) for name, value in inputs.items()}
        other = {name: faded(value) for name, value in fed.items()}
        given, expected = plain.run(names, fed), plain.run(names, other)
        buffers = {name: ort.OrtValue.ortvalue_from_numpy(value, device, 0) for name, value in fed.items()}
        binding, options = held[0].io_binding(), ort.RunOptions()
        options.add_run_config_entry("gpu_graph_id", str(number + 1))
        for name, value in buffers.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in zip(names, given):
            shape = list(value.shape)
            place = ort.OrtValue.ortvalue_from_shape_and_type(shape, value.dtype.type, device, 0)
            binding.bind_ortvalue_output(name, place)
        for values, label in ((fed, "captured"), (other, "other values"), (fed, "given values again")):
            for name, value in values.items():
                buffers[name].update_inplace(np.ascontiguousarray(value))
            for _ in range(3):
                held[0].run_with_iobinding(binding, options)
                binding.synchronize_outputs()
            found = binding.copy_outputs_to_cpu()
            if values is fed:
                yield label, number, dict(zip(names, map(tensor, found)))
                continue
            for name, right, value in zip(names, expected, found):
                if any(wrong for wrong, _ in compare(name, tensor(right), tensor(value), CROSS_TALK)):
                    raise RuntimeError(
                        f"ReplayError: with other values in its buffers, a replay is off in {name} "
                        "by more than a twentieth of the largest value"
                    )


def tensor(array):
    """Return an array as values are compared."""
    return Tensor(str(array.dtype), array.shape, np.ascontiguousarray(array).tobytes())


def faded(value):
    """Return other values of the same shape."""
    return value * value.dtype.type(0.875) if value.dtype.kind == "f" and value.ndim > 1 else value


OTHER_RUNS = {
    "lifecycle": lifecycle_runs,
    "capture": captured_runs,
    "profiling": profiled_runs,
    "terminate": cut_runs,
    "dynamic_options": option_runs,
    "interleaved": interleaved_runs,
    "separate_outputs": separate_runs,
    "async_runs": runs_in_flight,
    "buffers": buffer_runs,
    "initializers": weight_runs,
    "adapters": adapter_runs,
    "compile": compiled_runs,
}
