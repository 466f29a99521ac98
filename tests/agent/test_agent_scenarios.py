"""Each scenario, played by the agent on the real CPU provider."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.agent.scenarios.terminate import _cancelled
from harness.core.values.value import Sequence, Tensor, Value, from_wire, tensor
from tests.kit import parse

Serve = Callable[..., dict[str, Any]]

ADD = "g (float[M,N] x) => (float[M,N] y) { a = Neg(x) b = Relu(x) y = Add(a, b) }"
WIDE = {"x": tensor(np.arange(-3, 3, dtype=np.float32).reshape(2, 3))}
TALL = {"x": tensor(np.arange(-4, 4, dtype=np.float32).reshape(4, 2))}
SCENARIOS: dict[str, dict[str, int]] = {
    "io_binding": {},
    "dynamic_shapes": {},
    "concurrent": {"threads": 3, "runs": 4, "budget_s": 60},
    "sessions": {"count": 4, "budget_s": 60},
    "interleaved": {},
    "async_runs": {},
    "separate_outputs": {},
    "ort_format": {},
    "from_bytes": {},
}


def model_file(folder: Path, content: bytes) -> str:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return str(path)


def array_of(value: Value) -> Any:
    assert isinstance(value, Tensor)
    return value.array


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_gives_what_a_plain_run_gives(serve: Serve, tmp_path: Path, scenario: str) -> None:
    path: Any = model_file(tmp_path, parse(ADD))
    result = serve(path, WIDE, TALL, scenario=scenario, scenario_settings=SCENARIOS[scenario])
    assert result["status"] == "ok", result
    assert result["scenario"]
    assert result["names"] == ["y"]
    for given, (wire,) in zip((WIDE, TALL), result["outputs"], strict=True):
        x = array_of(given["x"])
        assert np.array_equal(array_of(from_wire(wire)), np.maximum(x, 0) - x)
    assert "second" not in result
    assert result["providers"] == result["providers_after"] == ["CPUExecutionProvider"]
    assert sum(result["placement"]["ep_ops"].values()) == result["placement"]["ep_nodes"] == 3
    assert {"create", "first_run"} <= result["timings_ms"].keys()


def facts(result: dict[str, Any]) -> dict[str, Any]:
    assert result["status"] == "ok", result
    found: dict[str, Any] = result["scenario"]
    return found


def test_a_provider_that_is_no_library_has_no_life_of_its_own(serve: Serve) -> None:
    result = serve(parse(ADD), WIDE, scenario="lifecycle", scenario_settings={"rounds": 5})
    assert result["status"] == "unsupported"
    assert result["message"] == "the provider is a part of onnxruntime, not a library that is registered"


def test_binding_reports_where_values_lay(serve: Serve) -> None:
    found = facts(serve(parse(ADD), WIDE, scenario="io_binding"))
    assert (found["inputs_on"], found["outputs_on"]) == (["x: cpu"], ["y: cpu"])
    assert found["on_device"] is False
    assert found["reason"] == "the session wants its inputs and outputs in the CPU's memory"
    assert found["copies_to_device"] == found["copies_from_device"] == found["bytes_to_device"] == 0
    assert found["equal_to_plain"] is True


def test_a_session_that_returns_only_what_is_bound(start_agent: Callable[..., Serve], tmp_path: Path) -> None:
    """As CUDA's does with ``enable_cuda_graph``: the run succeeds."""
    customized = "import onnxruntime\nonnxruntime.InferenceSession.run = lambda *_: []\n"
    (tmp_path / "sitecustomize.py").write_text(customized, encoding="utf-8")
    serve = start_agent(env={"PYTHONPATH": str(tmp_path)})
    plain = serve(parse(ADD), WIDE)
    assert (plain["status"], plain["kind"]) == ("error", "MissingOutputsError")
    assert "returned 0 of its 1 outputs" in plain["message"]
    bound = facts(serve(parse(ADD), WIDE, scenario="io_binding"))
    assert "equal_to_plain" not in bound
    assert "returned 0 of its 1 outputs" in bound["plain"]


@pytest.mark.parametrize(
    ("graph", "value"),
    [
        ("g (bfloat16[N] x) => (bfloat16[N] y) { y = Identity(x) }", np.arange(6).astype("bfloat16")),
        ("g (float[N] x) => (float[N] y) { y = Relu(x) }", np.zeros(0, np.float32)),
        ("g (float x) => (float y) { y = Relu(x) }", np.array(2, np.float32)),
    ],
    ids=["bfloat16", "empty", "scalar"],
)
def test_what_can_be_bound(serve: Serve, graph: str, value: Any) -> None:
    result = serve(parse(graph), {"x": tensor(value)}, scenario="io_binding")
    assert facts(result)["equal_to_plain"] is True
    assert np.array_equal(array_of(from_wire(result["outputs"][0][0])), value)


@pytest.mark.parametrize(
    ("graph", "value", "message"),
    [
        (
            "g (seq(float[2]) x, int64 i) => (float[2] y) { y = SequenceAt(x, i) }",
            Sequence(items=(tensor(np.ones(2, np.float32)),)),
            "onnxruntime's Python API binds no sequence (input x)",
        ),
        (
            "g (float[2] x) => (seq(float[2]) y) { y = SequenceConstruct(x) }",
            tensor(np.ones(2, np.float32)),
            "onnxruntime's Python API binds no seq(tensor(float)) (output y)",
        ),
        (
            "g (string[N] x) => (int64[1] y) { y = Shape(x) }",
            tensor(np.array(["a", "b"], dtype=object)),
            "onnxruntime's Python API binds no tensor of texts (input x)",
        ),
        (
            "g (float[2] x) => (string[2] y) { y = Cast<to=8>(x) }",
            tensor(np.ones(2, np.float32)),
            "onnxruntime's Python API binds no tensor(string) (output y)",
        ),
    ],
    ids=["sequence", "sequence out", "texts", "texts out"],
)
def test_what_cannot_be_bound_is_unsupported(serve: Serve, graph: str, value: Value, message: str) -> None:
    feeds = {"x": value, **({"i": tensor(np.array(0))} if " i)" in graph else {})}
    result = serve(parse(graph, 17, 9), feeds, scenario="io_binding")
    assert (result["status"], result["message"]) == ("unsupported", message)


def test_shapes_have_a_time_for_each(serve: Serve) -> None:
    twice = {"runs": 2, "sessions": 1, "bit_equal": False}
    found = facts(serve(parse(ADD), WIDE, TALL, WIDE, scenario="dynamic_shapes", repeat=twice))
    assert len(found["run_ms"]) == len(found["again_ms"]) == 3
    assert min(found["run_ms"] + found["again_ms"]) > 0
    assert found["differing_again"] == 0
    once = facts(serve(parse(ADD), WIDE, TALL, scenario="dynamic_shapes"))
    assert once["again_ms"] == [-1, -1]


def test_threads_are_counted_and_compared(serve: Serve) -> None:
    settings = {"threads": 4, "runs": 6, "budget_s": 60}
    found = facts(serve(parse(ADD), WIDE, scenario="concurrent", scenario_settings=settings))
    assert (found["threads"], found["runs"], found["other_runs"]) == (4, 24, 24)
    assert 1 <= found["at_once"] <= 4
    assert found["differing_runs"] == found["differing_other_runs"] == found["difference"] == 0


def test_a_result_that_differs_among_threads_is_the_one_that_is_sent(serve: Serve) -> None:
    model = parse("g () => (float[8] y) { y = RandomNormal<shape = [8]>() }", 17, 9)
    settings = {"threads": 2, "runs": 3, "budget_s": 60}
    found = facts(serve(model, scenario="concurrent", scenario_settings=settings))
    assert found["differing_runs"] == found["runs"] == 6
    assert found["difference"] > 0
    assert found["other_runs"] == 0


def test_an_error_in_a_thread_is_the_job_s(serve: Serve) -> None:
    wrong = {"x": tensor(np.zeros(3, np.float32))}
    settings = {"threads": 2, "runs": 3, "budget_s": 60}
    result = serve(parse(ADD), wrong, scenario="concurrent", scenario_settings=settings)
    assert (result["status"], result["phase"]) == ("error", "run")


def test_sessions_are_counted_and_compared(serve: Serve) -> None:
    settings = {"count": 5, "budget_s": 60}
    found = facts(serve(parse(ADD), WIDE, scenario="sessions", scenario_settings=settings))
    assert found["count"] == 5
    assert found["differing_sessions"] == found["difference"] == 0
    assert 0 < found["create_median_ms"] <= found["create_max_ms"]
    if Path("/proc/self/statm").exists():
        assert found["rss_first_mib"] > 1
        assert {"rss_last_mib", "growth_mib"} <= found.keys()


def test_a_budget_ends_what_would_go_on_for_long(serve: Serve) -> None:
    settings = {"count": 100_000, "budget_s": 1}
    assert facts(serve(parse(ADD), WIDE, scenario="sessions", scenario_settings=settings))["count"] >= 2
    settings = {"threads": 2, "runs": 100_000_000, "budget_s": 1}
    assert facts(serve(parse(ADD), WIDE, scenario="concurrent", scenario_settings=settings))["runs"] >= 2


@pytest.mark.parametrize("level", ["disabled", "basic", "all"])
def test_ort_format_is_made_at_the_level_of_the_job(serve: Serve, tmp_path: Path, level: str) -> None:
    model = parse("g (float[N] x) => (float[N] y) { a = Identity(x) b = Relu(a) y = Identity(b) }")
    path: Any = model_file(tmp_path, model)
    result = serve(
        path, {"x": tensor(np.ones(3, np.float32))}, scenario="ort_format", graph_optimization=level
    )
    found = facts(result)
    assert found["model_bytes"] == len(model)
    assert found["ort_bytes"] > len(model)
    assert (found["level"], found["disabled_optimizers"]) == (level, [])
    assert result["placement"]["ep_nodes"] == (3 if level == "disabled" else 1)


@pytest.mark.parametrize(
    "scenario", ["from_bytes", "ort_format", "ep_context", "io_binding", "dynamic_shapes"]
)
def test_a_broken_model_is_no_question_of_the_scenario(serve: Serve, scenario: str) -> None:
    result = serve(b"no model", WIDE, scenario=scenario)
    assert (result["status"], result["phase"]) == ("error", "create")


def test_weights_beside_a_model_are_found_without_its_path(serve: Serve, tmp_path: Path) -> None:
    weights = np.arange(300, dtype=np.float32)
    port = {name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [300]) for name in "xy"}
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [port["x"]],
        [port["y"]],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path: Any = str(tmp_path / "model.onnx")
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    result = serve(path, {"x": tensor(weights)}, scenario="from_bytes")
    assert facts(result)["model_bytes"] == Path(path).stat().st_size
    assert np.array_equal(array_of(from_wire(result["outputs"][0][0])), 2 * weights)


def test_the_cpu_provider_compiles_nothing(serve: Serve, tmp_path: Path) -> None:
    path: Any = model_file(tmp_path, parse(ADD))
    result = serve(path, WIDE, scenario="ep_context")
    assert (result["status"], result["message"]) == (
        "unsupported",
        "no EPContext node was written: the provider runs 3 of 3 nodes, and compiles none",
    )


def test_the_cpu_provider_cannot_do_without_itself(serve: Serve) -> None:
    result = serve(parse(ADD), WIDE, scenario="cpu_fallback_disabled")
    assert (result["status"], result["message"]) == (
        "unsupported",
        "the target names CPUExecutionProvider itself",
    )


def test_a_scenario_leaves_nothing_to_the_next_job(serve: Serve) -> None:
    assert serve(parse(ADD), WIDE, scenario="cpu_fallback_disabled")["status"] == "unsupported"
    result = serve(parse(ADD), WIDE)
    assert result["status"] == "ok"
    assert "scenario" not in result


TWO = "g (float[M,N] x) => (float[M,N] y, float[M,N] z) { y = Relu(x) z = Neg(x) }"
PLANTED = {
    "interleaved": """
import weakref
opened = weakref.WeakSet()
def run(self, names, feeds, *more):
    opened.add(self)
    return [value + (len(opened) > 1) for value in right(self, names, feeds, *more)]
ort.InferenceSession.run = run
""",
    "separate_outputs": """
def run(self, names, feeds, *more):
    return right(self, names if len(names) > 1 else ["y"], feeds, *more)
ort.InferenceSession.run = run
""",
    "async_runs": """
def run_async(self, names, feeds, callback, data, *more):
    callback([value + data // 2 for value in right(self, names, feeds)], data, "")
ort.InferenceSession.run_async = run_async
""",
}
"""Scenario -> what only it finds: sessions that disturb each other, one output for another, mixed up runs."""


@pytest.mark.parametrize("scenario", PLANTED)
def test_what_only_one_scenario_finds(
    start_agent: Callable[..., Serve], tmp_path: Path, scenario: str
) -> None:
    customized = "import onnxruntime as ort\nright = ort.InferenceSession.run\n" + PLANTED[scenario]
    (tmp_path / "sitecustomize.py").write_text(customized, encoding="utf-8")
    serve = start_agent(env={"PYTHONPATH": str(tmp_path)})
    right = [np.maximum(WIDE["x"].array, 0), -WIDE["x"].array]
    for played in ("plain", *PLANTED):
        asked = {} if played == "plain" else {"scenario": played, "scenario_settings": {}}
        result = serve(parse(TWO), WIDE, **asked)
        outputs = [array_of(from_wire(wire)) for wire in result["outputs"][0]]
        assert all(map(np.array_equal, outputs, right)) is (played != scenario), played
        if played != "plain":
            assert ("difference" in facts(result)) is (played == scenario), played


def test_an_error_of_a_run_in_flight_is_the_result(start_agent: Callable[..., Serve], tmp_path: Path) -> None:
    planted = "lambda self, names, feeds, callback, data, *_: callback([], data, 'the device is lost')"
    customized = f"import onnxruntime\nonnxruntime.InferenceSession.run_async = {planted}\n"
    (tmp_path / "sitecustomize.py").write_text(customized, encoding="utf-8")
    serve = start_agent(env={"PYTHONPATH": str(tmp_path)})
    result = serve(parse(ADD), WIDE, scenario="async_runs", scenario_settings={})
    assert (result["status"], result["kind"]) == ("error", "AsynchronousRunError")
    assert result["message"] == "the device is lost"


LOOPED = """g (float[M,N] x, int64 ep_harness_iterations) => (float[M,N] y) {
    none = Constant<value = float[0] {}>()
    y = Loop<body = body (int64 n, bool on, float[] before) => (bool go_on, float[] after) {
        go_on = Identity(on) a = Neg(x) b = Relu(x) after = Add(a, b)
    }>(ep_harness_iterations, , none)
}"""
ONCE = {**WIDE, "ep_harness_iterations": tensor(np.array(1))}


def test_a_run_that_is_told_to_end_ends(serve: Serve) -> None:
    result = serve(parse(LOOPED), ONCE, scenario="terminate", scenario_settings={})
    found = facts(result)
    assert found["told_after_ms"] <= found["ended_after_ms"]
    assert "terminate" in found["message"]
    assert found["equal_to_before"] is True
    assert np.array_equal(
        array_of(from_wire(result["outputs"][0][0])), np.maximum(WIDE["x"].array, 0) - WIDE["x"].array
    )
    if hasattr(pytest.importorskip("onnxruntime").SessionOptions, "set_load_cancellation_flag"):
        assert found["load"] == "cancelled"


ENDED = {
    "goes_on": (
        "lambda self, names, feeds, *_: right(self, names, feeds)",
        ("error", "TerminateIgnoredError"),
        "the run went on to its end",
    ),
    "other_error": (
        "lambda self, names, feeds, *more: right(self, names, feeds) if not more else 1 / 0",
        ("error", "ZeroDivisionError"),
        "division by zero",
    ),
}
"""What a provider does with a run that is told to end -> status and kind, and words of the message."""


@pytest.mark.parametrize("how", ENDED)
def test_a_run_that_ends_otherwise_is_an_error(
    start_agent: Callable[..., Serve], tmp_path: Path, how: str
) -> None:
    planted, (status, kind), words = ENDED[how]
    customized = (
        f"import onnxruntime as ort\nright = ort.InferenceSession.run\nort.InferenceSession.run = {planted}\n"
    )
    (tmp_path / "sitecustomize.py").write_text(customized, encoding="utf-8")
    result = start_agent(env={"PYTHONPATH": str(tmp_path)})(
        parse(LOOPED), ONCE, scenario="terminate", scenario_settings={}
    )
    assert (result["status"], result["kind"]) == (status, kind)
    assert words in result["message"]


def test_a_load_that_is_not_cancelled_is_an_error(start_agent: Callable[..., Serve], tmp_path: Path) -> None:
    customized = (
        "import onnxruntime as ort\nort.SessionOptions.set_load_cancellation_flag = lambda *_: None\n"
    )
    (tmp_path / "sitecustomize.py").write_text(customized, encoding="utf-8")
    result = start_agent(env={"PYTHONPATH": str(tmp_path)})(
        parse(LOOPED), ONCE, scenario="terminate", scenario_settings={}
    )
    assert (result["status"], result["kind"]) == ("error", "LoadNotCancelledError")


def test_a_load_that_is_tried_twice_is_cancelled_each_time() -> None:
    """With an entry that onnxruntime refuses, or that a cancelled load seems to refuse."""
    flags = list[bool]()

    def load() -> None:
        for _ in range(2):
            load_run.adjust(SimpleNamespace(set_load_cancellation_flag=flags.append))
        while len(flags) < 2:
            time.sleep(0.001)
        raise RuntimeError("the load was cancelled")

    load_run = SimpleNamespace(enter=lambda _: None, open=load)
    assert isinstance(_cancelled(load_run, 0.001), RuntimeError)  # type: ignore[arg-type]
    assert flags == [True, True]


HINT = {"options": [["hint", ["off", "on"]]], "documented": True, "unknown": "refused"}
SETTER = """
import onnxruntime as ort
right = ort.InferenceSession.run
def set_option(self, options):
    ((key, value),) = options.items()
    if key != "hint" or value == REFUSED:
        raise RuntimeError("no such option")
    self.hint = value
def run(self, names, feeds, *more):
    return [value + (getattr(self, "hint", "off") == WRONG) for value in right(self, names, feeds, *more)]
ort.InferenceSession.set_ep_dynamic_options, ort.InferenceSession.run = set_option, run
"""


@pytest.mark.parametrize(("wrong", "refused"), [("", ""), ("on", ""), ("", "on")])
def test_options_change_in_an_open_session(
    start_agent: Callable[..., Serve], tmp_path: Path, wrong: str, refused: str
) -> None:
    customized = f"WRONG, REFUSED = {wrong!r}, {refused!r}\n{SETTER}"
    (tmp_path / "sitecustomize.py").write_text(customized, encoding="utf-8")
    serve = start_agent(env={"PYTHONPATH": str(tmp_path)})
    result = serve(parse(ADD), WIDE, scenario="dynamic_options", scenario_settings=HINT)
    if refused:
        assert (result["status"], result["kind"]) == ("error", "DynamicOptionRefusedError")
        assert result["message"] == "hint=on is refused: no such option"
        undocumented = {**HINT, "documented": False}
        result = serve(parse(ADD), WIDE, scenario="dynamic_options", scenario_settings=undocumented)
        assert result["status"] == "unsupported"
        return
    found = facts(result)
    assert (found["set"], found["unknown"]) == (["hint=on", "hint=off"], "refused")
    assert found.get("differs_after", "") == ("hint=on" if wrong else "")
    assert found["equal_to_before"] is not bool(wrong)


@pytest.mark.parametrize("documented", ["refused", "ignored"])
def test_an_unknown_option_that_is_taken(serve: Serve, documented: str) -> None:
    """The CPU provider takes every option of this kind."""
    settings = {**HINT, "unknown": documented}
    result = serve(parse(ADD), WIDE, scenario="dynamic_options", scenario_settings=settings)
    if documented == "refused":
        assert (result["status"], result["kind"]) == ("error", "UnknownOptionTakenError")
    else:
        assert facts(result)["unknown"] == "taken"


def test_without_documented_options_there_is_nothing_to_set(serve: Serve) -> None:
    settings = {**HINT, "options": []}
    result = serve(parse(ADD), WIDE, scenario="dynamic_options", scenario_settings=settings)
    assert result["status"] == "unsupported"


PROFILED = {
    "negative": ("events[-2]['dur'] = -5", "has the time"),
    "beyond": (
        "[event for event in events if event.get('cat') == 'Node'][0]['dur'] += 10_000_000",
        "lies in none of the session's runs",
    ),
    "long": (
        "[event for event in events if event['name'] == 'model_run'][0]['dur'] += 10_000_000",
        "the profile's runs took",
    ),
    "mixed up": (
        "events += [event for event in events if event.get('cat') == 'Node'][:2]",
        "of two sessions, the one with",
    ),
    "run of another": (
        "events += [event for event in events if event['name'] == 'model_run'][:1]",
        "the profile of a session that ran",
    ),
    "no profile": ("events = 'text'", "the profile of a session that ran"),
}
"""What is wrong with a profile -> the change to its events, and words of the message."""


@pytest.mark.parametrize("wrong", [None, *PROFILED])
def test_profiles_are_those_of_their_sessions(
    start_agent: Callable[..., Serve], tmp_path: Path, wrong: str | None
) -> None:
    change, words = ("", "") if wrong is None else PROFILED[wrong]
    customized = f"""import json
import onnxruntime as ort
right = ort.InferenceSession.end_profiling
def end_profiling(self):
    path = right(self)
    with open(path) as file:
        events = json.load(file)
    {change}
    with open(path, "w") as file:
        json.dump(events, file)
    return path
ort.InferenceSession.end_profiling = end_profiling
"""
    (tmp_path / "sitecustomize.py").write_text(customized, encoding="utf-8")
    result = start_agent(env={"PYTHONPATH": str(tmp_path)})(
        parse(ADD), WIDE, scenario="profiling", scenario_settings={}
    )
    if wrong is not None:
        assert (result["status"], result["kind"]) == ("error", "ProfileError")
        assert words in result["message"]
        return
    found = facts(result)
    assert (found["runs"], found["kernel_events"]) == ([2, 3], [0, 0])
    assert found["node_events"][0] * 3 == found["node_events"][1] * 2 > 0
    assert found["equal_to_unprofiled"] is True


CAPTURING = {"option": ["captures", "1"]}
REPLAYS = {
    "other inputs": ("key in seen", "with other values in its buffers"),
    "another capture": ("key == '2' and '1' in seen", "beside another capture"),
}
"""What is replayed wrongly -> when a replay leaves the outputs as they are, and words of the message."""


@pytest.mark.parametrize("wrong", [None, *REPLAYS])
def test_replays_follow_what_is_bound(
    start_agent: Callable[..., Serve], tmp_path: Path, wrong: str | None
) -> None:
    """The CPU provider captures nothing, and each of its runs follows the buffers."""
    when, words = REPLAYS[wrong] if wrong else ("False", "")
    customized = f"""import onnxruntime as ort
right = ort.InferenceSession.run_with_iobinding
seen = set()
def replay(self, binding, options=None):
    key = options.get_run_config_entry("gpu_graph_id")
    if not ({when}):
        right(self, binding, options)
    seen.add(key)
ort.InferenceSession.run_with_iobinding = replay
"""
    (tmp_path / "sitecustomize.py").write_text(customized, encoding="utf-8")
    serve = start_agent(env={"PYTHONPATH": str(tmp_path)})
    result = serve(parse(ADD), WIDE, scenario="graph_capture", scenario_settings=CAPTURING)
    if wrong is not None:
        assert (result["status"], result["kind"]) == ("error", "ReplayError"), result
        assert words in result["message"]
        return
    found = facts(result)
    assert (found["option"], found["captures"], found["equal_to_plain"]) == ("captures=1", 1, True)
    x = array_of(WIDE["x"])
    assert np.array_equal(array_of(from_wire(result["outputs"][0][0])), np.maximum(x, 0) - x)


def test_who_captures_no_graphs_says_so(serve: Serve) -> None:
    result = serve(parse(ADD), WIDE, scenario="graph_capture", scenario_settings={})
    assert (result["status"], result["message"]) == (
        "unsupported",
        "no option of this provider captures graphs",
    )
