"""Scenarios in a real browser and in real Node.js: each plays, or is declined with a reason."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from tests.kit import records_of, run_matrix, write_model

pytestmark = [pytest.mark.real_ep, pytest.mark.browser]

CPU, WEBGPU, JSEP = "CPUExecutionProvider", "WebGpuExecutionProvider", "JsExecutionProvider"
NODE = {"node": "node", "packages": ["onnxruntime-node@1.30.0"]}
BROWSER = {
    "browser": "chromium",
    "packages": ["onnxruntime-web@1.30.0"],
    "flags": [
        "--enable-unsafe-webgpu",
        "--use-webgpu-adapter=swiftshader",
        "--enable-features=Vulkan",
        "--enable-unsafe-swiftshader",
    ],
}
MODELS = {
    "whole": """<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,4] x) => (float[N,4] y) { z = Neg(x) y = Relu(z) }""",
    # WebGPU has no kernel for NonZero.
    "partly": """<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,4] x) => (float[N,4] y, int64[2,M] k) { y = Relu(x) k = NonZero(y) }""",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model for the EP alone, and one with a node for the CPU."""
    folder = tmp_path_factory.mktemp("models")
    for name, text in MODELS.items():
        write_model(folder / f"{name}.onnx", text)
    return folder


@pytest.fixture
def played(models: Path) -> Callable[..., dict[tuple[str, str], Record]]:
    """``played(target, scenarios)``: (scenario, model) -> record."""

    def run(target: dict[str, Any], *scenarios: str) -> dict[tuple[str, str], Record]:
        matrix = {
            "models": {"folders": [str(models)]},
            "target": [{"name": "it", **target}],
            "axes": {"scenario": list(scenarios)},
            **({"scenarios": {"sessions": {"count": 4}}} if "sessions" in scenarios else {}),
        }
        ended = (record for record in records_of(run_matrix(models, matrix, 2)))
        return {(record.axes["scenario"], record.model.removesuffix(".onnx")): record for record in ended}

    return run


def test_tensors_stay_on_the_gpu_of_a_browser(built: Callable[..., Any], played: Callable[..., Any]) -> None:
    check_tensors_stay(played({"provider": JSEP, "runtime": built(BROWSER)}, "io_binding"))


def check_tensors_stay(found: dict[tuple[str, str], Record]) -> None:
    whole = found["io_binding", "whole"]
    assert whole.verdict is Verdict.PASS, whole.reason
    facts: Any = whole.scenario
    assert (list(facts["inputs_on"]), list(facts["outputs_on"])) == (["x: gpu-buffer"], ["y: gpu-buffer"])
    assert (facts["on_device"], facts["equal_to_plain"]) == (True, True)
    assert found["io_binding", "partly"].verdict is Verdict.PASS_PARTIAL, found["io_binding", "partly"].reason


def test_a_browser_replays_what_it_recorded(built: Callable[..., Any], played: Callable[..., Any]) -> None:
    captured = {"provider": WEBGPU, "runtime": built(BROWSER), "options": {"enableGraphCapture": "1"}}
    found = played(captured, "plain", "io_binding")
    assert found["io_binding", "whole"].verdict is Verdict.PASS, found["io_binding", "whole"].reason
    assert found["io_binding", "partly"].verdict is Verdict.UNSUPPORTED
    assert "graph capture" in found["io_binding", "partly"].reason
    assert "io_binding" in found["plain", "whole"].reason


def test_a_browser_plays_scenarios_or_says_why_not(
    built: Callable[..., Any], played: Callable[..., Any]
) -> None:
    scenarios = ("dynamic_shapes", "sessions", "cpu_fallback_disabled", "ort_format", "concurrent")
    found = played({"provider": WEBGPU, "runtime": built(BROWSER)}, *scenarios, "io_binding")
    check_tensors_stay(found)
    for scenario in scenarios[:3]:
        assert found[scenario, "whole"].verdict is Verdict.PASS, found[scenario, "whole"].reason
    assert found["sessions", "whole"].scenario["count"] == 4
    assert found["sessions", "whole"].scenario["rss_last_mib"] > 0
    assert "given" in found["dynamic_shapes", "whole"].scenario["shapes"]
    refused = found["cpu_fallback_disabled", "partly"]
    assert (refused.verdict, "fallback to CPU EP" in refused.reason) == (Verdict.UNSUPPORTED, True)
    for scenario, reason in (("ort_format", "the file that it writes"), ("concurrent", "one thread")):
        assert found[scenario, "whole"].verdict is Verdict.UNSUPPORTED
        assert reason in found[scenario, "whole"].reason


def test_nodejs_plays_scenarios_or_says_why_not(
    built: Callable[..., Any], played: Callable[..., Any]
) -> None:
    scenarios = (
        "dynamic_shapes",
        "sessions",
        "ort_format",
        "from_bytes",
        "io_binding",
        "cpu_fallback_disabled",
    )
    found = played({"provider": CPU, "runtime": built(NODE)}, *scenarios)
    for scenario in scenarios[:4]:
        assert found[scenario, "partly"].verdict is Verdict.PASS, found[scenario, "partly"].reason
    assert found["ort_format", "partly"].scenario["ort_bytes"] > 0
    for scenario, reason in (
        ("io_binding", "preferredOutputLocation"),
        ("cpu_fallback_disabled", "names CPU"),
    ):
        assert found[scenario, "whole"].verdict is Verdict.UNSUPPORTED
        assert reason in found[scenario, "whole"].reason


@pytest.mark.parametrize("arguments", [("webgpu", "--browser", "--software-gpu"), ("cpu", "--node")])
def test_a_provider_is_checked_without_a_matrix(
    built: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    built(NODE if "--node" in arguments else BROWSER)
    only = ("--suite", "onnx-simple", "--model", "*/test_single_relu*", "--no-report")
    assert main(["check", *arguments, *only, "--out", str(tmp_path / "out")]) == 0
    [line] = (tmp_path / "out" / "records.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["verdict"] == "pass"
