"""Jobs of the JavaScript agent on a stand-in of onnxruntime: errors, scenarios, graph capture."""

import json
from collections.abc import Callable
from typing import Any

import pytest

MARK = "[V:onnxruntime:, session_state.cc:1383 VerifyEachNodeIsAssignedToAnEp]"
LOG = f"{MARK} Node placements\n{MARK}  All nodes placed on [WebGpuExecutionProvider]. Number of nodes: 1\n"
PLAY = f"""
import {{ Job }} from 'agent:job.mjs';
import {{ Target }} from 'agent:target.mjs';
class Tensor {{
  constructor(type, data, dims) {{
    Object.assign(this, {{ type, data, dims, location: 'cpu', size: data.length }});
  }}
  async getData() {{ return this.data; }}
  dispose() {{}}
}}
let sessions = 0;
const made = [];
const ort = {{
  Tensor,
  InferenceSession: {{
    async create(source, settings) {{
      made.push(settings);
      const number = (sessions += 1);
      let runs = 0;
      let kept = null;
      return {{
        inputNames: ['x'], outputNames: ['y'], outputMetadata: [{{ type: 'float32' }}],
        async run({{ x }}) {{
          if (number > 1 && value.error) throw new Error(value.error);
          runs += 1;
          if (runs === 1 && value.slowMs) await new Promise((done) => setTimeout(done, value.slowMs));
          const more = (value.drift ?? 0) * number + (value.flaky?.includes(runs) ? 1 : 0);
          if (value.keeps && kept) return {{ y: new Tensor('float32', kept, x.dims) }};
          const data = x.data.map((each) => Math.max(each, 0) + more);
          kept = data;
          return {{ y: new Tensor('float32', data, x.dims) }};
        }},
        async release() {{}},
      }};
    }},
  }},
}};
const host = {{
  refuses: () => '', printed: () => '', beginLog() {{}}, endLog: () => {json.dumps(LOG)},
  unlessLost: (promise) => promise, lost: async () => value.lost ?? '', device: async () => null,
  exhausted: (message) => (/bad_alloc/.test(message) ? 'no memory' : ''),
  residentMib: async () => 10 * sessions,
}};
const config = {{ providers: ['WebGpuExecutionProvider'], options: value.options ?? {{}}, session: {{}} }};
const target = new Target(ort, config, ['webgpu'], {{}});
await target.checkOptions(host);
if (value.lost) target.held.run = async () => {{ throw new Error('the device is gone'); }};
const x = {{ dtype: 'float32', shape: [2], data: new Uint8Array(new Float32Array([-1, 2]).buffer) }};
const job = {{ model: '', data_sets: [[['x', x]]], ...value.job }};
const played = new Job(target, host, job, {{ bytes: new Uint8Array(), path: 'm.onnx' }}, async () => {{}});
const result = await played.play();
const {{ status, kind, message, scenario, placement, repeats }} = result;
const floats = (outputs) => outputs && Array.from(new Float32Array(outputs[0].data.slice().buffer));
const [second, other] = [floats(result.second), floats(result.other)];
const all = {{ status, kind, message, scenario, placement, repeats, second, other }};
give({{ ...all, sick: played.sick, made: made.slice(1) }});
"""


def test_a_lost_device_is_an_error_of_its_own_kind(evaluate: Callable[..., Any]) -> None:
    found = evaluate(
        PLAY, {"error": "mapAsync failed", "lost": "the WebGPU device is lost: destroyed: by a test"}
    )
    assert (found["status"], found["kind"]) == ("error", "DeviceLost")
    assert found["message"] == "the WebGPU device is lost: destroyed: by a test; mapAsync failed"
    assert found["sick"] == "the device is gone"


def test_an_operator_without_a_kernel_is_told_in_the_word_of_python(evaluate: Callable[..., Any]) -> None:
    message = "Could not find an implementation for ImageDecoder(20) node with name ''"
    assert evaluate(PLAY, {"error": message})["kind"] == "NotImplemented"


def test_an_error_that_leaves_the_device_well_does_not_end_the_process(evaluate: Callable[..., Any]) -> None:
    found = evaluate(PLAY, {"error": "no such kernel"})
    assert (found["kind"], found["message"], found["sick"]) == ("Error", "no such kernel", "")


def test_where_memory_ran_out_no_further_job_runs(evaluate: Callable[..., Any]) -> None:
    found = evaluate(PLAY, {"error": "std::bad_alloc"})
    assert (found["message"], found["sick"]) == ("std::bad_alloc (out of memory)", "no memory")


def test_many_sessions_are_compared_and_weighed(evaluate: Callable[..., Any]) -> None:
    job = {"scenario": "sessions", "scenario_settings": {"count": 5, "budget_s": 60}}
    found = evaluate(PLAY, {"drift": 0.5, "job": job})
    assert found["status"] == "ok", found
    facts = found["scenario"]
    assert (facts["count"], facts["differing_sessions"]) == (5, 4)
    assert facts["difference"] == pytest.approx(2 / 3)  # of the fifth session, 2 for an output of 3
    assert (facts["rss_first_mib"], facts["rss_last_mib"], facts["growth_mib"]) == (20, 50, 10)


def test_facts_come_with_a_failed_job_too(evaluate: Callable[..., Any]) -> None:
    job = {"scenario": "sessions", "scenario_settings": {"count": 5, "budget_s": 60}}
    found = evaluate(PLAY, {"error": "no such kernel", "job": job})
    assert (found["status"], found["scenario"]["count"]) == ("error", 1)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"scenario": "concurrent"}, "no scenario concurrent"),
        ({"surprise": 1}, "does not know the key surprise"),
        ({"latency": {}}, "measures no latency"),
    ],
)
def test_what_it_does_not_do_is_unsupported(
    evaluate: Callable[..., Any], job: dict[str, Any], words: str
) -> None:
    found = evaluate(PLAY, {"job": job})
    assert found["status"] == "unsupported"
    assert words in found["message"]


def test_graph_capture_is_an_option_of_the_session_and_needs_bound_values(
    evaluate: Callable[..., Any],
) -> None:
    options = {"enableGraphCapture": "1", "preferredLayout": "NCHW"}
    plain = evaluate(PLAY, {"options": options})
    assert plain["status"] == "unsupported"
    assert "io_binding" in plain["message"]
    bound = evaluate(PLAY, {"options": options, "job": {"scenario": "io_binding"}})
    assert bound["status"] == "ok", bound
    [settings] = bound["made"]
    assert settings["enableGraphCapture"] is True
    assert settings["executionProviders"] == [{"name": "webgpu", "preferredLayout": "NCHW"}]
    assert settings["preferredOutputLocation"] == "gpu-buffer"


def test_graph_capture_is_on_or_off(evaluate: Callable[..., Any]) -> None:
    script = PLAY.replace(
        "await target.checkOptions(host);",
        "try { await target.checkOptions(host); } catch (error) { give(error.key); process.exit(0); }",
    )
    assert evaluate(script, {"options": {"enableGraphCapture": "yes"}}) == "enableGraphCapture"
    assert evaluate(script, {"options": {"enableGraphCapture": "0"}})["status"] == "ok"


TEN = {"repeat": {"runs": 10, "sessions": 1, "bit_equal": False}, "other": True}


@pytest.mark.parametrize("slow_ms", [0, 600])
def test_how_often_it_runs_is_no_matter_of_time(evaluate: Callable[..., Any], slow_ms: int) -> None:
    found = evaluate(PLAY, {"job": TEN, "slowMs": slow_ms, "keeps": True})
    assert found["repeats"] == {"runs": 10, "sessions": 1, "distinct": 1, "differing": 0, "max_abs": 0}
    assert found["other"] == [0, 2]  # the output for the inputs before


@pytest.mark.parametrize("slow_ms", [0, 600])
def test_runs_that_differ_are_counted(evaluate: Callable[..., Any], slow_ms: int) -> None:
    found = evaluate(
        PLAY, {"job": TEN, "slowMs": slow_ms, "flaky": [5, 8]}
    )  # the second run is that of `other`
    assert found["repeats"] == {"runs": 10, "sessions": 1, "distinct": 2, "differing": 2, "max_abs": 1}
    assert found["second"] == [1, 3]
    assert found["other"] == [2, 0]


def test_without_being_told_it_runs_once(evaluate: Callable[..., Any]) -> None:
    found = evaluate(PLAY, {"flaky": [2]})
    assert not {"repeats", "second", "other"} & found.keys()


@pytest.mark.parametrize(("runs", "again"), [(2, 2), (1, 0)])
def test_shapes_are_run_again_as_it_is_told(evaluate: Callable[..., Any], runs: int, again: int) -> None:
    repeat = {"runs": runs, "sessions": 1, "bit_equal": False}
    program = PLAY.replace("data_sets: [[['x', x]]]", "data_sets: [[['x', x]], [['x', x]]]")
    found = evaluate(program, {"job": {"scenario": "dynamic_shapes", "repeat": repeat}, "slowMs": 600})
    assert len(found["scenario"]["run_ms"]) == 2
    assert sum(took > 0 for took in found["scenario"]["again_ms"]) == again
    assert ("repeats" in found) is (runs > 1)
