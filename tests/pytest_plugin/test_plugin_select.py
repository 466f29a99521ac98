"""What pytest itself does with the items."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def collected(run: Run, project: Path, *arguments: str) -> list[str]:
    done = run(project, "--co", "-q", "-p", "no:xdist", *arguments)
    assert done.code == 0, done.out + done.err
    return [line.partition("::")[2] for line in done.lines if "::" in line]


def test_items_are_named_by_their_cells(project: Path, run: Run, outcomes: dict[str, str]) -> None:
    assert collected(run, project, "m.toml") == list(outcomes)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["m.toml", "-k", "abs and cpu"], ["models/abs.onnx[cpu]"]),
        (["m.toml::models/neg.onnx[ghost]"], ["models/neg.onnx[ghost]"]),
        (
            ["m.toml::models/abs.onnx"],
            ["models/abs.onnx[cpu]", "models/abs.onnx[abort]", "models/abs.onnx[ghost]"],
        ),
        (
            ["m.toml", "--deselect", "m.toml::models/abs.onnx[cpu]", "-k", "abs"],
            ["models/abs.onnx[abort]", "models/abs.onnx[ghost]"],
        ),
    ],
)
def test_selection(project: Path, run: Run, arguments: list[str], expected: list[str]) -> None:
    assert collected(run, project, *arguments) == expected


def test_a_root_directory_elsewhere(project: Path, run: Run, mode: tuple[str, ...]) -> None:
    done = run(project, *mode, "--rootdir", str(project / "models"), "m.toml", "-k", "abs and cpu", "-v")
    assert done.outcomes == {"models/abs.onnx[cpu]": "PASSED"}
    assert "../m.toml::models/abs.onnx[cpu]" in done.out


def test_from_another_folder(project: Path, run: Run) -> None:
    below = project / "below"
    below.mkdir()
    done = run(below, "--co", "-q", "-p", "no:xdist", "../m.toml")
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
    project: Path, run: Run, arguments: list[str], engines: int
) -> None:
    (project / "conftest.py").write_text(AHEAD, encoding="utf-8")
    ran = run(project, "m.toml", "-s", *arguments)
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


def test_fixtures_are_for_tests_and_not_for_cells(
    project: Path, run: Run, outcomes: dict[str, str], mode: tuple[str, ...]
) -> None:
    (project / "conftest.py").write_text(FIXTURES, encoding="utf-8")
    (project / "test_own.py").write_text("from conftest import test_of_its_own\n", encoding="utf-8")
    assert run(project, *mode, "m.toml", "-v").outcomes == outcomes
    beside = run(project, *mode, "m.toml", "test_own.py", "-v")
    tests = {f"test_of_its_own[{number}]": "PASSED" for number in (1, 2)}
    assert beside.outcomes == outcomes | tests
