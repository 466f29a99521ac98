"""`ep-harness verify --rerun` on a submission of the CPU provider."""

import json
from pathlib import Path

import pytest

from harness.cli.main import main

CPU = "CPUExecutionProvider"


def test_a_share_of_a_submission_is_run_once_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "run"
    main(["conform", "--profile", "qdq@1", "--target", CPU, "--out", str(home)])
    (submission,) = (path for path in home.iterdir() if (path / "statement.json").exists())
    capsys.readouterr()
    rerun = ["verify", str(submission), "--json", "--rerun", "1%", "--seed", "3"]
    main([*rerun, "--target", CPU])
    (done,) = json.loads(capsys.readouterr().out)
    found = {one["name"]: one["what"] for one in done["findings"]}
    assert "1 of 1 cases drawn with seed 3 give the same here, in the environment" in found["rerun-same"]
    assert "rerun" not in found
    main([*rerun, "--target", "OpenVINOExecutionProvider", "--option", "device_type=CPU"])
    (done,) = json.loads(capsys.readouterr().out)
    found = {one["name"]: one["what"] for one in done["findings"]}
    assert "nothing was run" in found["rerun-elsewhere"]


@pytest.mark.parametrize("more", [["--rerun", "5%"], ["--target", CPU]])
def test_a_rerun_needs_a_target(more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path), *more]) == 2
    assert "--rerun 5% --target PROVIDER" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["5", "0%", "101%", "x%", "nan%"])
def test_a_share_is_a_percentage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["verify", "none", "--rerun", text, "--target", CPU])
    assert end.value.code == 2
    assert "is not a share" in capsys.readouterr().err
