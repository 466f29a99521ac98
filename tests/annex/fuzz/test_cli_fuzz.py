"""The command: a run folder that any other command reads, resuming, and errors of two lines."""

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest

import harness.annex.fuzz.work_folder
from harness.annex.fuzz.fuzz_state import read_state
from harness.cli import main
from tests.kit import read_rows

CPU = "CPUExecutionProvider"


def test_a_campaign_on_the_cpu_and_its_continuation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Relative, as people write it: agents have another working folder.
    monkeypatch.chdir(tmp_path)
    folder = Path("runs", "night")
    words = ["fuzz", CPU, "--models", "25", "--seed", "5", "--no-report"]
    assert main([*words, "--out", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "25 of 25 cells (100.00 %)" in text
    info = json.loads((folder / "run.json").read_text())
    assert info["complete"]
    assert info["matrix"]["models"]["suites"] == ["fuzz:5:25"]
    records = (folder / "records.jsonl").read_text().splitlines()
    assert len(records) == info["cells"] <= 25
    assert not (folder / "work").exists()
    state = read_state(folder)
    assert (state.next, state.models, state.cells) == (25, 25, 25)

    assert main(["fuzz", CPU, "--models", "40", "--no-report", "--resume", str(folder)]) == 0
    state = read_state(folder)
    assert (state.seed, state.models, state.cells) == (5, 40, 40)
    cells = [row["cell"] for row in read_rows(folder)]
    assert len(cells) >= len(records)
    assert len(set(cells)) == len(cells)
    assert json.loads((folder / "run.json").read_text())["complete"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["CPUExecutionProvider", "--ops", "Konv"], "did you mean 'Conv'"),
        (["NoSuchProvider"], "NoSuchProvider"),
        (["CPUExecutionProvider", "CPUExecutionProvider"], "two targets have this name"),
        (["missing.toml"], "missing.toml"),
        (["CPUExecutionProvider", "--seed", "-1"], "whole number"),
        (["CPUExecutionProvider", "--for", "ten"], "not a duration"),
        (["CPUExecutionProvider", "--resume", "nowhere"], "nowhere"),
    ],
)
def test_errors_say_what_to_do(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["fuzz", *words, *([] if "--resume" in words else ["--out", str(tmp_path / "x")])]
    try:
        code = main(arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert code == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "x" / "records.jsonl").exists()


def test_a_target_that_cannot_be_used_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fuzz", "MIGraphXExecutionProvider", "--for", "60s", "--no-report", "--out", str(tmp_path / "x")]
    assert main(words) == 3
    assert "cannot be used: " in capsys.readouterr().out
    assert read_state(tmp_path / "x").cells == 0


def test_that_nothing_fails_means_nothing_if_no_model_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = NoSuchOperator(x) }'
    )

    def maker(*_: object) -> Callable[[str, Path], None]:
        return lambda _, folder: onnx.save(model, folder / "model.onnx")

    monkeypatch.setattr(harness.annex.fuzz.work_folder, "fuzz_maker", maker)
    assert main(["fuzz", CPU, "--models", "3", "--no-report", "--out", str(tmp_path / "x")]) == 3
    assert "cannot be used: none of 3 models is valid; the last one: " in capsys.readouterr().out
