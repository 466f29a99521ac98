"""A build is a Python, packages, or a table of a matrix; the rest of the matrix stays."""

from pathlib import Path

import pytest

from harness.annex.speed.build_plans import TIMED, build_table, plan_of_build
from harness.core.text.errors import UsageError

MATRIX = """schema = 1
models = { suites = ["zoo"] }
axes = { scenario = ["plain", "terminate"] }
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
places = [{ name = "board", ssh = "board" }]
[[expect]]
model = "zoo/vit-small-op17"
verdict = "crash"
reason = "a reason"
"""


def write(folder: Path, more: str = "") -> Path:
    path = folder / "matrix.toml"
    path.write_text(MATRIX + more, encoding="utf-8")
    return path


def python(folder: Path) -> Path:
    path = folder / "env" / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_a_python_or_its_environment(tmp_path: Path) -> None:
    path = python(tmp_path)
    wanted = {"runtime": {"python": str(path)}}
    assert build_table(str(path), "--new") == build_table(str(tmp_path / "env"), "--new") == wanted


def test_packages_and_tables() -> None:
    packages = ["onnxruntime==1.31.1", "numpy<3"]
    assert build_table(" ".join(packages), "--new") == {"runtime": {"packages": packages}}
    assert build_table('{ ssh = "board" }', "--new") == {"runtime": {"ssh": "board"}}
    assert build_table('{ plugin = "lib.so" }', "--new") == {"plugin": "lib.so"}
    both = build_table('{ plugin = "lib.so", python = "python3" }', "--new")
    assert both == {"plugin": "lib.so", "runtime": {"python": "python3"}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is empty"),
        ("{ python = }", "not an inline table of TOML"),
        ("no/such/python", "there is no no/such/python"),
    ],
)
def test_what_is_no_build(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as error:
        build_table(text, "--new")
    assert str(error.value).startswith("--new")


def test_a_folder_without_a_python(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no Python in"):
        build_table(str(tmp_path), "--base")


def test_a_wrong_key_names_the_argument(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--new: .*runtime"):
        plan_of_build(write(tmp_path), "--new", '{ pyton = "python3" }')


def test_cells_that_can_be_timed_each_in_a_fresh_process(tmp_path: Path) -> None:
    build = f"{{ python = '{python(tmp_path)}' }}"
    plan = plan_of_build(write(tmp_path), "--base", build, models=["zoo/vit-small-op17"])
    (cell,) = plan.cells
    assert (cell.id, plan.latency(cell)) == ("zoo/vit-small-op17[cpu]", TIMED)
    (target,) = plan.matrix.targets
    assert (target.renew_after.sessions, target.places, target.runtime.python) == (
        1,
        None,
        str(tmp_path / "env" / "bin" / "python"),
    )


def test_the_latency_entries_of_a_matrix_choose(tmp_path: Path) -> None:
    matrix = write(tmp_path, '[[latency]]\nmodel = "zoo/gpt-small*"\n')
    plan = plan_of_build(matrix, "--base", "onnxruntime==1.31.1")
    assert {cell.model.startswith("gpt-small") for cell in plan.cells} == {True}
    with pytest.raises(UsageError, match="no cell has runs that can be timed"):
        plan_of_build(matrix, "--base", "onnxruntime==1.31.1", models=["zoo/vit-small-op17"])
