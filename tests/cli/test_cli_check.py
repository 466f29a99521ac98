"""`ep-harness check`: a table and a report from a few arguments."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.cli import main

CPU = "CPUExecutionProvider"
SIX = ["--model", "*/test_ab*"]


def verdicts(folder: Path) -> dict[str, str]:
    rows = map(json.loads, (folder / "records.jsonl").read_text("utf-8").splitlines())
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


def test_its_matrix_is_kept_and_runs(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    main(["check", CPU, "--out", str(out), "--suite", "onnx-simple", "--no-report"])
    assert not (out / "report").exists()
    before = verdicts(out)
    assert main(["run", str(out / "matrix.toml"), "--out", str(tmp_path / "again"), "--no-report"]) == 0
    assert verdicts(tmp_path / "again") == before


def test_what_is_not_available_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", "AcmeExecutionProvider", "--plugin", "./libacme.so", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--option", "a.b=c=d", "--option", "empty=", "--device", "type=NPU", *SIX]) == 3
    assert set(verdicts(tmp_path / "out").values()) == {"unavailable"}
    # From the command's folder, not from the matrix's.
    assert f"no plugin library at {Path.cwd() / 'libacme.so'}" in capsys.readouterr().out
    text = (tmp_path / "out" / "matrix.toml").read_text("utf-8")
    assert 'options  = { "a.b" = "c=d", empty = "" }' in text
    assert 'device   = { type = "NPU" }' in text


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
        ([CPU, "--model", "nothing*"], "nothing*"),
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
    assert main(["check", CPU, "--out", str(tmp_path)]) == 2
    assert "choose another folder: --out" in capsys.readouterr().err
    assert (tmp_path / "matrix.toml").read_text("utf-8") == "mine"


@pytest.mark.skipif(os.name != "posix", reason="interrupts by a POSIX signal")
def test_the_line_to_resume_with_works(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    check = ["check", CPU, "--out", str(out), "--no-report", "--model", "*/test_[a-c]*"]
    command = [sys.executable, "-m", "harness", *check]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (out / "records.jsonl").exists() or not (out / "records.jsonl").stat().st_size:
            assert time.monotonic() < deadline
            time.sleep(0.005)
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
