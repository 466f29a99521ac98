"""`report` and `history show` of a folder of runs over time."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.core.records.verdict import Verdict
from harness.report.runs.side_by_side import SIDE_BY_SIDE
from tests.annex.store.store_nights import record
from tests.kit import Capture

WriteRun = Callable[..., Path]


@pytest.fixture
def months(night: WriteRun, runs: Path) -> Path:
    """More runs than are shown side by side; `neg` fails since the last but one."""
    for number in range(1, SIDE_BY_SIDE + 2):
        verdict = Verdict.MISMATCH if number >= SIDE_BY_SIDE else Verdict.PASS
        night(number, record("abs"), record("neg", verdict))
    return runs


def test_the_newest_run_in_full_and_the_trends_of_all(
    months: Path, place: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "site"
    arguments = ["report", str(months), "--out", str(out), "--format", "html,json", "--store", str(place)]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert [Path(line) for line in shown.out.splitlines()] == [
        out / "index.html",
        out / "report.json",
        out / "history" / "index.html",
    ]
    assert "17 runs over time: night-17 in full" in shown.err
    cells = json.loads((out / "report.json").read_text("utf-8"))["cells"]
    assert [cell["model"] for cell in cells] == ["abs", "neg"]
    assert "17 runs" in (out / "history" / "index.html").read_text("utf-8")
    nights = (out / "nights.html").read_text("utf-8")
    assert 'href="history/index.html"' in nights
    # `neg` fails since the last but one of 17 nights.
    assert "onnx-node/neg[npu]" in nights
    assert "2 nights" in nights
    assert "onnx-node/abs[npu]" not in nights
    # The run before the newest has the same results.
    assert (out / "changes.html").is_file()


def test_few_runs_are_side_by_side_unless_told_otherwise(
    night: WriteRun, runs: Path, place: Path, tmp_path: Path, capsys: Capture
) -> None:
    night(1, record("abs"))
    night(2, record("abs", Verdict.CRASH))
    out = tmp_path / "site"
    assert main(["report", str(runs), "--out", str(out), "--format", "json"]) == 0
    verdicts = [cell["verdict"] for cell in json.loads((out / "report.json").read_text("utf-8"))["cells"]]
    assert sorted(verdicts) == ["crash", "pass"]
    options = ["--format", "json", "--over-time", "--store", str(place)]
    assert main(["report", str(runs), "--out", str(out), *options]) == 0
    verdicts = [cell["verdict"] for cell in json.loads((out / "report.json").read_text("utf-8"))["cells"]]
    assert verdicts == ["crash"]
    assert "2 runs over time" in capsys.readouterr().err


def test_history_of_a_folder(months: Path, place: Path, capsys: Capture) -> None:
    options = ["--store", str(place)]
    assert main(["history", "show", str(months), *options]) == 0
    shown = capsys.readouterr().out
    assert "17 runs, 2026-11-01T02:00:00Z to 2026-11-17T02:00:00Z" in shown
    assert "mismatch since 2026-11-16T02:00:00Z, 2 runs" in shown
    assert main(["history", "show", str(months), "--cell", record("neg").cell, "--json", *options]) == 0
    points = json.loads(capsys.readouterr().out)["local.toml"]
    assert [point["verdict"] for point in points[-3:]] == ["pass", "mismatch", "mismatch"]
    assert main(["history", "show", str(months), "--cell", "onnx-node/neg[gpu]", *options]) == 2
    assert "did you mean 'onnx-node/neg[npu]'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--over-time", "--baseline", "x"), "drop --baseline, --history and --beside"),
        (("--over-time", "--templates", "none"), "none"),
    ],
)
def test_wrong_arguments(
    months: Path, tmp_path: Path, place: Path, capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    out = str(tmp_path / "out")
    assert main(["report", str(months), "--out", out, "--store", str(place), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_no_run_can_be_read(
    night: WriteRun, runs: Path, place: Path, tmp_path: Path, capsys: Capture
) -> None:
    (night(1, record("abs")) / "run.json").write_bytes(b"{")
    arguments = ["report", str(runs), "--out", str(tmp_path / "out"), "--over-time", "--store", str(place)]
    assert main(arguments) == 2
    assert "no run can be read" in capsys.readouterr().err
