"""`ep-harness check`: a table and a report from a few arguments."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.annex.made.decoders.roster import write_decoder
from harness.cli import main
from harness.core.records.scenario import SCENARIOS
from harness.core.records.selection_study import decode_selection
from harness.studies.usable_providers import DoctorRow
from tests.kit import read_rows, wait_for

CPU = "CPUExecutionProvider"
SIX = ["--quick", "--model", "*/test_ab*"]


def verdicts(folder: Path) -> dict[str, str]:
    rows = read_rows(folder)
    return {row["cell"]: row["verdict"] for row in rows}


def test_a_provider_of_the_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    assert main(["check", CPU, "--out", str(out), *SIX]) == 0
    found = verdicts(out)
    assert found["onnx-node/test_abs[cpu]"] == "pass"
    assert (out / "report" / "index.html").is_file()
    printed = capsys.readouterr().out
    assert "target" in printed
    assert "every verdict is as the matrix expects" in printed


def test_by_default_each_kind_of_model_is_run_and_whole_ones_open_many_sessions(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    models = ("onnx-node/test_abs", "corners/abs_*", "fuzz-0/000000-*", "zoo/mnist-small-op12")
    chosen = [word for model in models for word in ("--model", model)]
    assert main(["check", CPU, "--env", "ACME=1", "--out", str(out), "--no-report", *chosen]) == 0
    found = verdicts(out)
    assert {cell.partition("/")[0] for cell in found} == {"onnx-node", "corners", "fuzz-0", "zoo"}
    many = [cell for cell in found if "scenario=sessions" in cell]
    assert many == ["zoo/mnist-small-op12[cpu,scenario=sessions]"]
    assert 'env      = { ACME = "1" }' in (out / "matrix.toml").read_text("utf-8")


def test_a_folder_of_files_that_are_no_models_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "pointer.onnx").write_text("version https://git-lfs.github.com/spec/v1\n", "utf-8")
    assert main(["check", str(tmp_path / "models"), CPU, "--out", str(tmp_path / "out"), "--no-report"]) == 3
    printed = capsys.readouterr().out
    assert "no evidence  cpu: no cell was judged: 1 invalid_model" in printed
    assert "NO EVIDENCE  no cell of cpu was judged" in printed


def test_its_matrix_is_kept_and_runs(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    main(["check", CPU, "--out", str(out), "--suite", "onnx-simple", "--no-report"])
    assert not (out / "report").exists()
    before = verdicts(out)
    assert main(["run", str(out / "matrix.toml"), "--out", str(tmp_path / "again"), "--no-report"]) == 0
    assert verdicts(tmp_path / "again") == before


def test_the_api_is_one_line_for_each_surface(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    chosen = ["--model", "zoo/mnist-*", "--model", "zoo/trees-small-op17", "--no-report"]
    assert main(["check", CPU, "--api", "--out", str(out), *chosen]) == 0
    printed = capsys.readouterr().out.splitlines()
    surfaces = printed[: printed.index("selection policies with no plugin")]
    found = [line.split() for line in surfaces if line.startswith(("ok ", "refused "))]
    words = {name: word for word, name, *_ in found}
    assert words.keys() == SCENARIOS.keys() - {"adapters", "generate", "package", "separate_outputs"}
    # It compiles and captures nothing, falls back to nobody, is no library, has no option of an open session.
    refused = {"capture", "compile", "cpu_fallback_disabled", "dynamic_options", "ep_context", "lifecycle"}
    assert {name for name, word in words.items() if word == "refused"} == refused
    assert any(line.startswith("not tried separate_outputs") for line in printed)
    (alone, *_) = decode_selection((out / "policies.json").read_bytes())
    assert alone.libraries == {}
    assert {answer.choice.rpartition(" by ")[2] for answer in alone.answers} == {CPU}
    assert any(line.startswith("ok        PREFER_NPU") for line in printed)


def test_policies_are_not_tried_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    agent.chmod(0o755)
    out = tmp_path / "out"
    arguments = ["check", CPU, "--api", "--agent", str(agent), "--model", "zoo/mnist-*", "--out", str(out)]
    assert main([*arguments, "--no-report"]) == 3
    (study,) = decode_selection((out / "policies.json").read_bytes())
    assert study.declined == "they are tried in a Python of this machine alone"
    printed = capsys.readouterr().out
    assert study.declined in " ".join(printed.split())
    assert printed.count("not tried") == printed.count("not tried every surface") == 1


def test_what_is_not_available_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", "AcmeExecutionProvider", "--plugin", "./libacme.so", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--option", "a.b=c=d", "--option", "empty=", "--device", "type=NPU", *SIX]) == 3
    assert set(verdicts(tmp_path / "out").values()) == {"unavailable"}
    # From the command's folder, not from the matrix's.
    assert f"no plugin library at {Path.cwd() / 'libacme.so'}" in capsys.readouterr().out
    text = (tmp_path / "out" / "matrix.toml").read_text("utf-8")
    assert 'options  = { "a.b" = "c=d", empty = "" }' in text
    assert 'device   = { type = "NPU" }' in text


@pytest.mark.real_ep
def test_a_plugin_that_is_installed_is_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "QNNExecutionProvider", "--out", str(tmp_path / "out"), *SIX]) == 3
    if find_spec("onnxruntime_qnn") is None and not os.environ.get("CI"):
        pytest.skip("onnxruntime_qnn is not installed here")
    assert "QNNExecutionProvider is a plugin here: add --plugin onnxruntime_qnn" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["QNNExecutionProvder"], "PROVIDER: unknown execution provider 'QNNExecutionProvder'"),
        (["QNNExecutionProvder"], "did you mean 'QNNExecutionProvider'?"),
        (["openvino"], "did you mean 'OpenVINOExecutionProvider'?"),
        ([CPU, "--option", "novalue"], "--option: expected KEY=VALUE, got 'novalue'"),
        ([CPU, "--device", "=x"], "--device: expected KEY=VALUE, got '=x'"),
        (["XExecutionProvider", "--plugin", "x", "--option", "a=1", "--option", "a=2"], "a: given twice"),
        (["QNNExecutionProvider", "--plugin", "onnxruntime_qnn", "--option", "backend_typ=htp"], "--option"),
        (["X", "--plugin", ""], "--plugin: expected non-empty text"),
        ([CPU, "--suite", "onnx-nod"], "did you mean 'onnx-node'?"),
        ([CPU, "--suite", "onnx-simple", "--suite", "onnx-simple"], "is listed twice"),
        ([CPU, "--quick", "--model", "nothing*"], "nothing*"),
        ([CPU, "--quick", "--suite", "corners"], "--quick: is about a provider without --suite and FOLDER"),
        ([CPU, "--api", "--suite", "corners"], "--api: is about a provider without --suite and FOLDER"),
        ([CPU, "--thorough", "--model", "*/test_abs"], "--thorough: fuzzes, which goes with none of --model"),
        (["X", "--plugin", "./x.so", "--env", "A"], "--env: expected KEY=VALUE, got 'A'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    out = tmp_path / "out"
    assert main(["check", *arguments, "--out", str(out)]) == 2
    assert message in (printed := capsys.readouterr().err)
    assert "matrix.toml" not in printed
    assert not out.exists()


def test_a_folder_with_a_run_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "matrix.toml").write_text("mine", encoding="utf-8")
    assert main(["check", CPU, "--quick", "--out", str(tmp_path)]) == 2
    assert "choose another folder: --out" in capsys.readouterr().err
    assert (tmp_path / "matrix.toml").read_text("utf-8") == "mine"


def test_models_of_a_folder_that_generate_text_do_so(tmp_path: Path, project: Callable[[], Path]) -> None:
    pytest.importorskip("onnxruntime")
    models = project().parent / "models"
    llm = models / "llm[1]"
    llm.mkdir()
    write_decoder("gqa-h64", llm)
    shutil.rmtree(llm / "test_data_set_0")  # Model Builder writes none
    out = tmp_path / "out"
    assert main(["check", str(models), CPU, "--out", str(out)]) == 0
    assert verdicts(out) == {
        "models/llm%5B1%5D/model.onnx[cpu,scenario=generate]": "pass",
        "models/abs.onnx[cpu]": "pass",
        "models/neg.onnx[cpu]": "pass",
        "models/relu.onnx[cpu]": "pass",
    }
    assert "Generation" in (out / "report" / "generation.html").read_text("utf-8")
    matrix = (out / "matrix.toml").read_text("utf-8")
    assert f'folders = ["{tmp_path / "models"}"]' in matrix
    assert "noise    = {}" in matrix


def test_a_folder_without_a_decoder_is_run_plainly(tmp_path: Path, project: Callable[[], Path]) -> None:
    pytest.importorskip("onnxruntime")
    models = project().parent / "models"
    arguments = [str(models), CPU, "--out", str(tmp_path / "out"), "--no-report", "--model", "abs*"]
    assert main(["check", *arguments]) == 0
    assert verdicts(tmp_path / "out") == {"models/abs.onnx[cpu]": "pass"}
    assert "scenario" not in (tmp_path / "out" / "matrix.toml").read_text("utf-8")


def test_the_suite_of_decoders_generates_text_beside_another_suite(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    suites = ["--suite", "generate", "--suite", "onnx-simple"]
    main(["check", CPU, *suites, "--out", str(out), "--no-report", "--model", "*/*h64-int4"])
    assert verdicts(out) == {"generate/gqa-h64-int4[cpu,scenario=generate]": "pass"} | {
        "generate/moe-h64-int4[cpu,scenario=generate]": "pass"
    }
    plan = [
        line.split("[")[1]
        for line in (out / "matrix.toml").read_text("utf-8").splitlines()
        if "model " in line
    ]
    assert plan == ['"onnx-simple/*"]', '"generate/*"]']


def test_a_folder_alone_is_tested_with_every_provider_that_works(
    tmp_path: Path, project: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    models = project().parent / "models"
    rows = (DoctorRow(provider=CPU, state="usable", nodes=1), DoctorRow(provider="X", state="unavailable"))
    monkeypatch.setattr("harness.cli.check.examine_here", lambda _where: rows)
    assert main(["check", str(models), "--out", str(tmp_path / "out"), "--no-report"]) == 0
    assert set(verdicts(tmp_path / "out")) == {f"models/{name}.onnx[cpu]" for name in ("abs", "neg", "relu")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent/models"], "absent/models: there is no such folder of models"),
        (["absent", CPU], "absent: there is no such folder of models"),
        (["model.onnx"], "model.onnx: there is no such folder of models"),
        (["FOLDER", "--option", "a=b"], "need a provider, and none is named"),
        (["FOLDER", "QNNExecutionProvder"], "did you mean 'QNNExecutionProvider'?"),
        (["EMPTY", CPU], "EMPTY"),
        (["BROKEN", CPU], "genai_config.json: no JSON"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said_in_two_lines(
    tmp_path: Path,
    project: Callable[[], Path],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    (project().parent / "models").rename(tmp_path / "FOLDER")
    (tmp_path / "EMPTY").mkdir()
    (tmp_path / "BROKEN").mkdir()
    write_decoder("gqa-h64", tmp_path / "BROKEN")
    (tmp_path / "BROKEN" / "genai_config.json").write_text("{", encoding="utf-8")
    places = [str(tmp_path / one) if one.isupper() else one for one in arguments]
    assert main(["check", *places, "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert len(printed.splitlines()) <= 2
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name != "posix", reason="interrupts by a POSIX signal")
def test_the_line_to_resume_with_works(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    check = ["check", CPU, "--out", str(out), "--no-report", "--quick", "--model", "*/test_[ab]*"]
    command = [sys.executable, "-m", "harness", *check]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        wait_for(lambda: (out / "records.jsonl").exists() and (out / "records.jsonl").stat().st_size)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    (line,) = (line for line in printed.splitlines() if line.startswith("resume "))
    _, _, *arguments = line.replace("'", "").split()
    assert arguments[:2] == ["run", str(out / "matrix.toml")]
    some = verdicts(out)
    main([*arguments, "--no-report"])
    assert json.loads((out / "run.json").read_text("utf-8"))["complete"]
    assert some.items() < verdicts(out).items()
