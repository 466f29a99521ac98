from pathlib import Path

import pytest

from harness.core.text.errors import UsageError
from harness.report.runs.read import read_run, run_folders
from tests.kit import record, write_run


def test_a_run_is_itself_and_a_folder_of_runs_is_all_of_them(tmp_path: Path) -> None:
    two, one = write_run(tmp_path / "two", [record("b")]), write_run(tmp_path / "one", [record("a")])
    (one.parent / "other").mkdir()
    assert run_folders(one) == (one,)
    assert run_folders(one.parent) == (one, two)


def test_a_damaged_run_is_not_taken_for_a_folder_of_runs(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record("a")])
    (run / "run.json").unlink()
    assert run_folders(run) == (run,)


def test_an_empty_folder_and_none_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run: neither"):
        run_folders(tmp_path)
    with pytest.raises(UsageError, match="no such run folder"):
        run_folders(tmp_path / "none")


def test_the_plan_is_read_by_name(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record("a")], missing=["onnx-node/b[npu]"])
    assert read_run(run).planned == ("onnx-node/a[npu]", "onnx-node/b[npu]")
    assert read_run(write_run(tmp_path / "old", [record("a")])).planned is None


def test_a_plan_of_another_run_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record("a")], missing=["onnx-node/b[npu]"])
    (run / "plan.txt").write_text("onnx-node/a[npu]\n", "utf-8")
    with pytest.raises(UsageError, match=r"not the plan that run\.json names"):
        read_run(run)
