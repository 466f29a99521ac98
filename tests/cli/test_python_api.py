"""The public interface is the list here and the page about it; the front ends are written on it."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harness

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/python-api.md").read_text("utf-8")
HOW_TO = (ROOT / "docs/how-to/notebook.md").read_text("utf-8")
FUNCTIONS = (
    "read_matrix",
    "make_plan",
    "run_plan",
    "read_run",
    "as_row",
    "judge_run",
    "compare_runs",
    "write_report",
)
TYPES = (
    "Comparison",
    "Family",
    "HarnessError",
    "JudgedRun",
    "LiveRun",
    "Matrix",
    "Record",
    "RunData",
    "RunnablePlan",
    "UsageError",
    "Verdict",
)


def test_this_is_all_that_is_public() -> None:
    assert sorted(harness.__all__) == sorted([*FUNCTIONS, *TYPES, "__version__"])
    assert dir(harness) == sorted(harness.__all__)
    for name in harness.__all__:
        assert getattr(harness, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'read_matirx'"):
        harness.read_matirx  # type: ignore[attr-defined]  # noqa: B018 - that it cannot be had is the point


def test_importing_it_imports_nothing_else() -> None:
    script = "import sys; before = {*sys.modules}; import harness; print(*({*sys.modules} - before))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, encoding="utf-8", timeout=60
    )
    assert done.stdout.split() == ["harness"]


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(harness.__file__).read_text("utf-8"))
    told = {
        (str(node.module), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes: dict[str, tuple[str, ...]] = harness._HOMES  # noqa: SLF001 - the table of the module
    assert told == {(f"harness.{module}", name) for module, names in homes.items() for name in names}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_page_has_every_argument(name: str) -> None:
    signature = inspect.signature(getattr(harness, name))
    untyped = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    assert f"`{name}{inspect.Signature(untyped)}`" in PAGE


@pytest.mark.parametrize("name", TYPES)
def test_the_page_has_every_type(name: str) -> None:
    assert re.search(rf"`(harness\.)?{name}`", PAGE)


def test_the_page_names_nothing_else() -> None:
    for page in (PAGE, HOW_TO):
        assert {*re.findall(r"\bharness\.(\w+)", page)} <= {*harness.__all__, "record"}


def imported(package: str) -> Iterator[tuple[str, str]]:
    """Each name that a module of a front end imports, with the module."""
    for path in sorted((ROOT / "harness" / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    yield path.relative_to(ROOT / "harness").as_posix(), f"{node.module}.{alias.name}"


def test_the_front_ends_are_written_on_it() -> None:
    homes: dict[str, tuple[str, ...]] = harness._HOMES  # noqa: SLF001 - the table of the module
    public = {f"harness.{module}.{name}" for module, names in homes.items() for name in names}
    of_command = {name for _, name in imported("cli")}
    calls = {name for name in public if name.rpartition(".")[2] in FUNCTIONS}
    assert calls - of_command == {"harness.report.formats.rows.as_row"}  # the formats have rows of whole runs
    assert {"harness.engine.prepare.make_plan", "harness.plan.matrix.read_matrix"} <= {
        name for _, name in imported("pytest_plugin")
    }


def test_no_command_has_an_engine_of_its_own() -> None:
    assert "harness.engine.engine.Engine" not in {name for _, name in imported("cli")}
    # Items wait for single cells, and workers of xdist share no folder.
    (session,) = (path for path, name in imported("pytest_plugin") if name.endswith(".Engine"))
    assert session == "pytest_plugin/session.py"


def code(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def test_the_notebook_does_what_it_says(
    project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project().rename(tmp_path / "matrix.toml")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    ten, rest, further = code(HOW_TO)
    assert len(ten.splitlines()) == 10
    for cell in (ten, rest, further):
        exec(compile(cell, "notebook", "exec"), names)  # noqa: S102 - as a notebook does
    assert names["table"].to_dict() == {
        ("cpu", "pass"): {"abs.onnx": 1, "neg.onnx": 1, "relu.onnx": 1},
    }
    assert {*names["cells"]["verdict"]} == {"pass"}
    assert {*names["cells"]["precision"]} == {"fp32"}  # each axis is a column
    assert len(names["slowest"]) == 3
    assert names["rest"] == []  # nothing was missing
    assert names["changes"] == ()
    assert names["page"] == Path("runs/notebook/report/index.html")
    assert names["page"].is_file()


def test_the_page_s_own_example_runs(
    project: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project().rename(tmp_path / "matrix.toml")
    monkeypatch.chdir(tmp_path)
    (example,) = code(PAGE)
    exec(compile(example.replace("zoo/*", "*/abs.onnx"), "page", "exec"), {})  # noqa: S102 - it is ours
    assert capsys.readouterr().out == "models/abs.onnx[cpu] pass\n"
