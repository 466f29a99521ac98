import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from tests.kit import Capture


@pytest.fixture(autouse=True)
def _built_by_a_fake(fake_uv: Path) -> None:
    """Every test of this file has a cache of its own."""


def test_nothing_is_there_at_first(capsys: Capture) -> None:
    assert main(["runtime", "list"]) == 0
    assert capsys.readouterr().out == "0 runtimes, 0 MiB\n"
    assert main(["runtime", "prune", "--all"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"


def test_requirements_make_one_runtime(capsys: Capture) -> None:
    assert main(["runtime", "build", "onnxruntime==1.0", "numpy<2"]) == 0
    assert re.fullmatch(r"built    onnxruntime==1\.0, numpy<2 in \d+ s\n", capsys.readouterr().out)
    assert main(["runtime", "build", "numpy<2", "onnxruntime==1.0"]) == 0
    assert capsys.readouterr().out == "cached   numpy<2, onnxruntime==1.0\n"
    assert main(["runtime", "list"]) == 0
    row, total = capsys.readouterr().out.splitlines()
    assert row.endswith("  numpy<2, onnxruntime==1.0")
    assert total == "1 runtime, 0 MiB"


def test_a_matrix_is_built_as_far_as_it_can_be(
    project: Callable[..., Path], fake_uv: Path, capsys: Capture
) -> None:
    matrix = project(
        "\n".join(
            f'[[target]]\nname = "t{number}"\nprovider = "CPUExecutionProvider"\nruntime = {{{runtime}}}'
            for number, runtime in enumerate(
                (
                    'packages = ["nosuch"]',
                    'packages = ["b"], python_version = "3.5"',
                    'packages = ["b"], python_version = "3.5"',
                    'packages = ["dist/ep.whl"]',
                    'python = "/some/python"',
                )
            )
        )
    )
    assert main(["runtime", "build", str(matrix), "extra", "--python", "3.5"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["failed", "nosuch:"],
        ["built", "b"],
        ["failed", f"{matrix.parent / 'dist/ep.whl'}:"],
        ["built", "extra"],
    ]
    assert "no version of nosuch==1" in lines[0]
    venvs = [line for line in fake_uv.read_text().splitlines() if line.startswith("venv")]
    assert len(venvs) == 3
    assert all("--python 3.5" in line for line in venvs[1:])


def test_a_wheel_is_named_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_uv: Path
) -> None:
    (tmp_path / "ep.whl").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["runtime", "build", "ep.whl"]) == 0
    assert f"-- {tmp_path / 'ep.whl'} numpy" in fake_uv.read_text()


def test_a_wrong_matrix_is_an_error_of_usage(tmp_path: Path, capsys: Capture) -> None:
    assert main(["runtime", "build", str(tmp_path / "gone.toml")]) == 2
    assert "gone.toml" in capsys.readouterr().err


def test_the_list_as_json(capsys: Capture) -> None:
    main(["runtime", "build", "a"])
    capsys.readouterr()
    assert main(["runtime", "list", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one["manifest"]["requirements"] == ["a"]
    assert one["manifest"]["packages"] == ["numpy==2.0", "onnxruntime==1.0"]


def test_prune_takes_what_is_old(tmp_path: Path, capsys: Capture) -> None:
    for name in ("a", "b"):
        main(["runtime", "build", name])
    for manifest in (tmp_path / "cache" / "runtimes").glob("*/manifest.json"):
        if '"a"' in manifest.read_text():
            os.utime(manifest, (0, 0))
    capsys.readouterr()
    assert main(["runtime", "prune"]) == 0
    row, total = capsys.readouterr().out.splitlines()
    assert row.startswith("removed  ")
    assert row.endswith("  a")
    assert total == "removed  1 runtime, 0 MiB"
    assert main(["runtime", "prune", "--older-than", "1"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"
    assert main(["runtime", "prune", "--all"]) == 0
    assert "1 runtime" in capsys.readouterr().out


def test_a_damaged_one_is_shown_and_can_be_removed(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "cache" / "runtimes" / "damaged").mkdir(parents=True)
    main(["runtime", "list"])
    assert "damaged  (its manifest cannot be read)" in capsys.readouterr().out
    main(["runtime", "prune"])
    assert not (tmp_path / "cache" / "runtimes" / "damaged").exists()


def test_a_run_tells_what_it_builds(project: Callable[..., Path], tmp_path: Path, capsys: Capture) -> None:
    matrix = project(
        '[[target]]\nname = "bad"\nprovider = "CPUExecutionProvider"\nruntime = {packages = ["nosuch"]}'
    )
    assert main(["run", str(matrix), "--out", str(tmp_path / "run"), "--no-report"]) == 0
    shown = capsys.readouterr().out
    assert "building runtime: nosuch\n" in shown
    assert "unavailable  bad: not_installed: No solution found when resolving dependencies" in shown


@pytest.mark.parametrize("command", ["runtime", "golden"])
@pytest.mark.parametrize("days", ["-1", "nan", "week"])
def test_an_age_is_a_number_of_days(capsys: Capture, command: str, days: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "prune", f"--older-than={days}"])
    assert stopped.value.code == 2
    assert f"{days!r} is not a number of days; expected 0 or more" in capsys.readouterr().err
