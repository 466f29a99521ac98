"""`ep-harness advise FOLDER`: one screen for a folder of models."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.annex.advise.command_advise_folder import details_of, screen
from harness.annex.advise.folder_search import FolderAdvice
from harness.cli import main
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.findings.shipping import ShippingChoice, what_to_ship
from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.verdict import Verdict
from harness.core.timing.latency import latency_of
from harness.plan.target import Target
from tests.kit import bare_record, told_latency, write_model

CPU = "CPUExecutionProvider"
MODEL = """<ir_version: 9, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y) { y = %s(x) }"""


def choice(
    model: str, target: str, ms: float | None = None, bits: float | None = None, **how: Any
) -> ShippingChoice:
    verdict = how.pop("verdict", Verdict.PASS)
    axes = AXIS_DEFAULTS | how.pop("axes", {})
    output = OutputMetrics(name="y", dtype="float32", shape=(1,), delivered_bits=bits)
    provider = CPU if target == "cpu" else "OpenVINOExecutionProvider"
    record = bare_record(
        model, verdict, target=target, provider=provider, axes=axes, outputs=(output,), **how
    )
    told = told_latency([int(ms * 1e6)], host_peak_mib=80.0) if ms else None
    return ShippingChoice(record=record, rounds=(latency_of(told),) * 2 if told else ())


def advice_of(choices: list[ShippingChoice], *targets: str, simulated: str) -> FolderAdvice:
    fingerprint: dict[str, object] = {"onnxruntime": "1.32.0", "processor": {"model": "Acme 9000"}}
    return FolderAdvice(
        models=what_to_ship(choices, targets, {simulated: "a simulator"}),
        targets={name: Target(name=name, provider=(CPU,)) for name in targets},
        fingerprints=dict.fromkeys(targets, fingerprint),
        simulated={simulated: "a simulator"},
        tried=31,
        not_tried=4,
        stopped_by="budget",
        elapsed_s=61.4,
    )


def test_ten_models_and_four_targets_are_one_screen() -> None:
    """However long names and reasons are, and whatever is wrong with each."""
    lost = "output 'y': the EP computes in bfloat16: 1.5 bits are left, fewer than 4"
    long = "a-detector-with-a-long-name-{}.onnx"
    choices = [
        *(choice(long.format(number), "cpu", 4.0 + number) for number in range(10)),
        *(choice(long.format(number), "openvino", 2.0 + number, 21.5) for number in range(3)),
        *(
            choice(long.format(number), "openvino", verdict=Verdict.PRECISION_LOSS, reason=lost)
            for number in range(3, 6)
        ),
        *(
            choice(long.format(number), "openvino", 1.0, 21.0, axes={"precision": "ep:f32"} | more)
            for number, more in ((3, {}), (4, {}), (5, {"graph_optimization": "extended"}))
        ),
        *(
            choice(long.format(number), "webgpu", verdict=Verdict.ERROR, reason=f"{letter * 9} is why")
            for number, letter in enumerate("abcdefghij")
        ),
        *(choice(long.format(number), "qnn", 0.1) for number in range(10)),
    ]
    found = advice_of(choices, "cpu", "openvino", "qnn", "webgpu", simulated="qnn")
    lines = list(screen(found))
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40
    best = [line.partition(" * ")[2].split() or line.split() for line in lines[3:14]]
    assert [words[:2] for words in best[:3]] == [["openvino", "21.5"]] * 3
    assert [words[:3] for words in best[3:5]] == [["openvino", "precision=ep:f32", "21.0"]] * 2
    assert best[5][:2] == ["openvino", "21.0"]
    assert best[6] == ["with", "graph_optimization=extended,", "precision=ep:f32"]
    assert [words[0] for words in best[7:]] == ["cpu"] * 4
    assert "may be shipped as well: cpu (6 models)" in lines
    assert any(line.startswith("  qnn: all models: right, but on a simulator") for line in lines)
    assert "do not ship, because" in lines
    assert "not known, because" in lines
    assert any(line.endswith(" more reasons, see --details") for line in lines)
    assert len(list(details_of(found))) > len(lines)


def test_details_have_every_target_that_may_be_shipped() -> None:
    lost = "output 'y': the EP computes in bfloat16: 1.5 bits are left, fewer than 4"
    choices = [
        *(choice(f"net{number}.onnx", "cpu", 4.0 + number) for number in range(9)),
        *(choice(f"net{number}.onnx", "openvino", 2.0 + number, 21.5) for number in range(8)),
        choice("net8.onnx", "openvino", verdict=Verdict.PRECISION_LOSS, reason=lost),
        choice("net8.onnx", "openvino", 3.0, 21.0, axes={"precision": "ep:f32"}),
        choice("net9.onnx", "cpu", verdict=Verdict.NO_INPUT, reason="no generated input runs"),
        choice("net9.onnx", "openvino", verdict=Verdict.NO_INPUT, reason="no generated input runs"),
        *(choice(f"net{number}.onnx", "npu", 0.1) for number in range(10)),
    ]
    found = advice_of(choices, "cpu", "openvino", "npu", simulated="npu")
    lines = list(details_of(found))
    page = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert "net9    nothing" in list(screen(found))
    assert lines[0] == "10 models on 3 targets: 31 configurations tried in 61 s"
    assert "net0    cpu      exact       -       4      1    80" in lines
    assert "      * openvino  21.5       -       2    0.5    80" in lines
    assert "net9    nothing, see below" in lines
    words = " ".join(page.split())
    assert f"with precision=ep:f32 (without it: precision loss: {lost})" in words
    assert "npu: all models: right, but on a simulator: try it on a device" in words
    assert "cpu, openvino: net9: no input: no generated input runs" in words
    assert "on cpu: onnxruntime 1.32.0, Acme 9000" in words
    assert "not tried: 4 further configurations (the time is used up; raise --budget)" in words


@pytest.mark.real_ep
def test_a_folder_is_judged_timed_and_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    folder = tmp_path / "models"
    folder.mkdir()
    for name, operator in (("one", "Tanh"), ("two", "Sigmoid")):
        write_model(folder / f"{name}.onnx", MODEL % operator)
    (folder / "broken.onnx").write_bytes(b"no model")
    assert main(["advise", str(folder), CPU, "--budget", "100", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    rows = {one["model"]: one["targets"][0] for one in found["models"]}
    assert {name: row["answer"] for name, row in rows.items()} == {
        "models/broken.onnx": "not known",
        "models/one.onnx": rows["models/one.onnx"]["answer"],
        "models/two.onnx": rows["models/two.onnx"]["answer"],
    }
    assert rows["models/broken.onnx"]["because"].startswith("invalid model")
    for name in ("one", "two"):
        row = rows[f"models/{name}.onnx"]
        assert row["answer"] in ("ship", "ship with")
        assert row["record"]["verdict"] == "pass"
    assert found["environments"]["cpu"]["onnxruntime"]


def test_a_folder_without_models_gets_two_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", str(tmp_path), CPU]) == 2
    assert "there is no .onnx file in this folder or below" in capsys.readouterr().err
