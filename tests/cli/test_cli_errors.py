import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from tests.kit import Capture

Project = Callable[..., Path]


def refused(capsys: Capture, *arguments: str) -> str:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) <= 2
    return shown.err


def test_a_matrix_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "local.toml").write_text("", "utf-8")
    shown = refused(capsys, "run", str(tmp_path / "locl.toml"))
    assert "no such file" in shown
    assert "did you mean" in shown


def test_a_folder_instead_of_a_matrix(tmp_path: Path, capsys: Capture) -> None:
    assert str(tmp_path) in refused(capsys, "run", str(tmp_path))


def test_broken_toml_has_its_place(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "m.toml").write_text('schema = 1\n[models\nsuites = ["onnx-node"]\n', "utf-8")
    assert "line 2" in refused(capsys, "list", str(tmp_path / "m.toml"))


def test_a_typo_in_a_key(project: Project, capsys: Capture) -> None:
    shown = refused(capsys, "run", str(project(target='optoins = { a = "1" }')))
    assert "target[0].optoins: unknown key" in shown
    assert "did you mean 'options'?" in shown


def test_an_unknown_suite(project: Project, capsys: Capture) -> None:
    matrix = project()
    text = matrix.read_text("utf-8").replace('folders = ["models"]', 'suites = ["onnx-nod"]')
    matrix.write_text(text, "utf-8")
    assert "did you mean 'onnx-node'?" in refused(capsys, "run", str(matrix))


def test_an_empty_folder(project: Project, tmp_path: Path, capsys: Capture) -> None:
    matrix = project()
    for model in (tmp_path / "models").iterdir():
        model.unlink()
    assert "models" in refused(capsys, "run", str(matrix))


def test_all_problems_of_the_models_are_reported_at_once(project: Project, capsys: Capture) -> None:
    matrix = project()
    text = matrix.read_text("utf-8").replace(
        'folders = ["models"]', 'suites = ["onnx-nod", "onnx-lite"]\nfolders = ["modles"]'
    )
    matrix.write_text(text, "utf-8")
    assert main(["run", str(matrix)]) == 2
    shown = capsys.readouterr().err
    assert all(word in shown for word in ("onnx-nod", "onnx-lite", "modles"))


def test_a_glob_that_matches_nothing(project: Project, capsys: Capture) -> None:
    assert "'gpu'" in refused(capsys, "run", str(project()), "--target", "gpu")


def test_durations_without_a_shard(project: Project, tmp_path: Path, capsys: Capture) -> None:
    shown = refused(capsys, "run", str(project()), "--durations", str(tmp_path))
    assert "has no effect without --shard" in shown


def test_a_folder_that_holds_no_run(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "runs").mkdir()
    assert "runs" in refused(capsys, "report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"))


def test_list_without_a_matrix(capsys: Capture) -> None:
    assert "ep-harness list MATRIX" in refused(capsys, "list")


def test_a_misspelt_command(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as error:
        main(["rnu"])
    assert error.value.code == 2
    assert "choose from" in capsys.readouterr().err


def test_no_command_shows_them_all(capsys: Capture) -> None:
    assert main([]) == 2
    shown = capsys.readouterr()
    assert "doctor" in shown.err
    assert "advise" in shown.err
    assert not shown.out


def test_help_begins_with_what_a_command_does(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["gate", "--help"])
    shown = capsys.readouterr().out
    assert "\n\nCompare two runs for CI: exit code 1 if a policy is violated.\n\n" in shown


def test_a_flag_that_takes_one_value_is_not_overruled_by_the_next(project: Project, capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["list", str(project()), "--shard", "1/2", "--shard", "2/2"])
    assert "--shard: given twice" in capsys.readouterr().err


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf"])
def test_a_budget_that_is_none(capsys: Capture, budget: str) -> None:
    assert "--budget: got" in refused(capsys, "advise", "zoo/mnist-small-op12", f"--budget={budget}")


def test_a_file_in_place_of_a_run_folder(project: Project, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "taken").touch()
    shown = refused(capsys, "run", str(project()), "--out", str(tmp_path / "taken"))
    assert "choose another folder" in shown
    assert "--resume" not in shown


def test_declaring_the_commands_takes_no_numpy() -> None:
    """So `--help` is quick, and Ctrl-C is heeded from the beginning."""
    code = "import sys, harness.cli; sys.exit(str({'numpy', 'onnx'} & {*sys.modules} or '') or None)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("error", [RuntimeError("broken\nin two lines"), RecursionError(), MemoryError()])
def test_an_exception_of_our_own_is_never_a_verdict(
    error: Exception, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("harness.annex.triage.command_replay.read_bundle", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["replay", str(tmp_path)]) == 3
    shown = capsys.readouterr()
    assert (shown.out, "Traceback" in shown.err, len(shown.err.splitlines())) == ("", False, 2)
    assert "please report it" in shown.err
    (kept,) = tmp_path.glob("ep-harness-*.txt")
    assert f"{type(error).__name__}" in kept.read_text("utf-8")


def test_an_exception_on_a_full_disk_is_told_without_a_file(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.annex.triage.command_replay.read_bundle", fail)
    monkeypatch.setattr("tempfile.mkstemp", fail)
    assert main(["replay", str(tmp_path)]) == 3
    assert "No space left on device; please report it" in capsys.readouterr().err
