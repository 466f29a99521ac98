"""What pytest itself does with the items."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pytest_plugin.projects import OUTCOMES, run_python, write_project

Run = Callable[..., Any]


SELECTIONS: dict[str, tuple[list[str], list[str]]] = {
    "all": (["m.toml"], []),
    "by keyword": (["m.toml", "-k", "abs and cpu"], ["models/abs.onnx[cpu]"]),
    "by id": (["m.toml::models/neg.onnx[ghost]"], ["models/neg.onnx[ghost]"]),
    "by model": (
        ["m.toml::models/abs.onnx"],
        ["models/abs.onnx[cpu]", "models/abs.onnx[abort]", "models/abs.onnx[ghost]"],
    ),
    "deselected": (
        ["m.toml", "--deselect", "m.toml::models/abs.onnx[cpu]", "-k", "abs"],
        ["models/abs.onnx[abort]", "models/abs.onnx[ghost]"],
    ),
}
"""Name -> arguments of pytest, and what they select."""

COLLECT = """
import contextlib, io, json, sys
import pytest

found = []
for arguments in json.load(sys.stdin):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = pytest.main(["-p", "harness.pytest_plugin.plugin", "-p", "no:xdist", "--co", "-q", *arguments])
    found.append((code, printed.getvalue()))
print(json.dumps(found))
"""
"""Several sessions in one process: each would spend most of its time on imports."""


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The cells of each selection."""
    project = write_project(tmp_path_factory.mktemp("selections") / "project")
    asked = [arguments for arguments, _ in SELECTIONS.values()]
    answers = json.loads(run_python(project, COLLECT, json.dumps(asked)))
    found = {}
    for name, (code, printed) in zip(SELECTIONS, answers, strict=True):
        assert code == 0, printed
        found[name] = [line.partition("::")[2] for line in printed.splitlines() if "::" in line]
    return found


def test_items_are_named_by_their_cells(collected: dict[str, list[str]]) -> None:
    assert collected["all"] == list(OUTCOMES)


@pytest.mark.parametrize("name", [name for name in SELECTIONS if name != "all"])
def test_selection(collected: dict[str, list[str]], name: str) -> None:
    assert collected[name] == SELECTIONS[name][1]


def test_a_root_directory_elsewhere(project: Path, run_warm: Run, mode: tuple[str, ...]) -> None:
    done = run_warm(project, *mode, "--rootdir", str(project / "models"), "m.toml", "-k", "abs and cpu", "-v")
    assert done.outcomes == {"models/abs.onnx[cpu]": "PASSED"}
    assert "../m.toml::models/abs.onnx[cpu]" in done.out


def test_from_another_folder(project: Path, run_warm: Run) -> None:
    below = project / "below"
    below.mkdir()
    done = run_warm(below, "--co", "-q", "-p", "no:xdist", "../m.toml")
    assert done.lines[-1].startswith("11 tests collected"), done.out
    assert "m.toml::models/abs.onnx[cpu]" in done.lines


AHEAD = """
from harness.engine.engine import Engine

warmed_up = []
warm_up = Engine.warm_up

def noted(engine):
    warmed_up.append(engine)
    warm_up(engine)

Engine.warm_up = noted

def pytest_collection_finish(session):
    print("warmed up before the first item:", len(warmed_up))
"""


@pytest.mark.parametrize(
    ("arguments", "engines"), [(["--collect-only"], 0), (["-k", "abs and cpu", "-p", "no:xdist"], 1)]
)
def test_processes_start_while_items_are_collected_to_be_run(
    project: Path, run_warm: Run, arguments: list[str], engines: int
) -> None:
    (project / "conftest.py").write_text(AHEAD, encoding="utf-8")
    ran = run_warm(project, "m.toml", "-s", *arguments)
    assert f"warmed up before the first item: {engines}" in ran.out, ran
    assert ran.code == 0


FIXTURES = """
import pytest

@pytest.fixture(autouse=True, scope="module", params=[1, 2])
def every_test_twice(request):
    yield request.param

def test_of_its_own():
    pass
"""


def test_fixtures_are_for_tests_and_not_for_cells(project: Path, run_warm: Run) -> None:
    (project / "conftest.py").write_text(FIXTURES, encoding="utf-8")
    (project / "test_own.py").write_text("from conftest import test_of_its_own\n", encoding="utf-8")
    on_cpu = {cell: outcome for cell, outcome in OUTCOMES.items() if "[cpu]" in cell}
    select = ("-v", "-k", "cpu or own")
    assert run_warm(project, "-p", "no:xdist", *select, "m.toml").outcomes == on_cpu
    beside = run_warm(project, "-p", "xdist", "-n", "2", *select, "m.toml", "test_own.py")
    tests = {f"test_of_its_own[{number}]": "PASSED" for number in (1, 2)}
    assert beside.outcomes == on_cpu | tests
