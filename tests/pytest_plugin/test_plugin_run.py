"""Whole runs over a small matrix, in one process and with xdist: one run each, many looks at it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.record import Record
from harness.engine.engine import Engine
from harness.engine.prepare import prepare
from tests.kit import read_records, records_of
from tests.pytest_plugin.projects import OUTCOMES, run_pytest, write_project

Run = Callable[..., Any]
Shown = tuple[Path, Any]


@pytest.fixture(scope="module", params=["alone", "xdist"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A project, and a run in it."""
    project = write_project(tmp_path_factory.mktemp("runs") / "project")
    options = {"alone": ["-p", "no:xdist"], "xdist": ["-p", "xdist", "-n", "2"]}
    return project, run_pytest(project, *options[request.param], "-v", "-ra", "m.toml", "--ep-out", "run")


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """The records that the engine gives without pytest."""
    project = write_project(tmp_path_factory.mktemp("direct") / "project")
    plan, suites = prepare(project / "m.toml")
    engine = Engine(plan, suites)
    engine.submit(plan.cells)
    engine.drain()
    records = records_of(engine.events())
    return {record.cell: record for record in records}


def records(project: Path) -> list[Record]:
    return read_records(project / "run")


def test_outcomes(shown: Shown) -> None:
    _, done = shown
    assert done.outcomes == OUTCOMES, done.out
    assert done.code == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 3 passed, 5 skipped, 1 xfailed" in done.lines[-1]


def test_the_records_are_those_of_the_engine(shown: Shown, direct: dict[str, Record]) -> None:
    project, _ = shown
    written = records(project)
    assert {record.cell: record.verdict for record in written} == {
        cell: record.verdict for cell, record in direct.items()
    }
    assert len(written) == len(direct)
    for record in written:
        like = direct[record.cell]
        assert (record.expected, record.placement, record.outputs) == (
            like.expected,
            like.placement,
            like.outputs,
        )


def test_the_run_folder_is_complete(shown: Shown, direct: dict[str, Record]) -> None:
    project, _ = shown
    info = json.loads((project / "run" / "run.json").read_text(encoding="utf-8"))
    plan, _ = prepare(project / "m.toml")
    assert (info["complete"], info["cells"], info["plan"]) == (True, len(direct), plan.digest)
    assert set(info["targets"]) == {"cpu", "abort", "ghost"}
    assert "no_such_plugin_package" in info["targets"]["ghost"]["unavailable"]
    assert "onnxruntime" in json.dumps(info["targets"]["cpu"])


def test_failing_cells_have_artifacts(shown: Shown) -> None:
    project, done = shown
    named = {record.cell: record.artifacts for record in records(project)}
    for cell in ("models/relu.onnx[cpu]", "models/relu.onnx[abort]", "models/abs.onnx[abort]"):
        assert (project / "run" / named[cell] / "output.txt").is_file()
    assert not named["models/abs.onnx[cpu]"]
    assert f"artifacts:  {named['models/relu.onnx[cpu]']}" in done.out


def test_skips_give_their_reasons_at_the_matrix(shown: Shown) -> None:
    _, done = shown
    (ghost,) = [line for line in done.lines if line.startswith("SKIPPED [4] ")]
    assert ghost.startswith("SKIPPED [4] m.toml:1: unavailable: not_installed: plugin package")
    (broken,) = [line for line in done.lines if line.startswith("SKIPPED [1] ")]
    assert broken.startswith("SKIPPED [1] m.toml:1: invalid_model: ")


def test_expectations_are_strict_both_ways(shown: Shown) -> None:
    _, done = shown
    assert "pass: expected mismatch (https://example.org/1); got: passed" in done.out
    (xfail,) = [line for line in done.lines if line.startswith("XFAIL ")]
    assert xfail == "XFAIL m.toml::models/abs.onnx[abort] - crash, expected: it does"


def test_a_failure_reads_without_a_traceback(shown: Shown) -> None:
    _, done = shown
    text = done.out.partition(" cell models/relu.onnx[abort] ")[2].partition("=====")[0]
    assert "\ncrash: the process died in phase run: SIGABRT\n" in text
    assert "cell:       models/relu.onnx[abort]" in text
    assert "phase:      run" in text
    assert "output of the process" in text
    assert "last words" in text
    assert ".py" not in text


def test_the_summary_is_a_table_of_at_most_80_columns(shown: Shown) -> None:
    _, done = shown
    at = next(i for i, line in enumerate(done.lines) if "execution providers: m.toml" in line)
    head, *rows = done.lines[at + 1 : at + 5]
    titles = head.split()
    assert titles[:4] == ["target", "cells", "pass", "partly"]
    table = {row.split()[0]: dict(zip(titles[1:], map(int, row.split()[1:]), strict=True)) for row in rows}
    assert table["cpu"] == dict.fromkeys(titles[1:], 0) | {"cells": 5, "pass": 4, "excl.": 1, "unexp.": 1}
    assert table["abort"] == dict.fromkeys(titles[1:], 0) | {"cells": 2, "failed": 2, "unexp.": 1}
    assert table["ghost"] == dict.fromkeys(titles[1:], 0) | {"cells": 4, "skip": 4}
    end = next(i for i, line in enumerate(done.lines) if line.startswith("records: "))
    summary = done.lines[at + 1 : end]
    assert max(map(len, summary)) <= 80
    assert "ghost is unavailable: not_installed" in "\n".join(summary)
    assert "incomplete" not in done.out


def test_last_failed_selects_cells(shown: Shown, run_warm: Run) -> None:
    project, _ = shown
    done = run_warm(project, "-p", "no:xdist", "--co", "-q", "--lf", "m.toml")
    assert [line for line in done.lines if "::" in line] == [
        "m.toml::models/relu.onnx[cpu]",
        "m.toml::models/relu.onnx[abort]",
    ]


def test_another_way_to_spread_cells_gives_the_same(project: Path, run_warm: Run) -> None:
    done = run_warm(
        project, "-p", "xdist", "-n", "2", "--dist", "worksteal", "-v", "m.toml", "-k", "cpu or ghost"
    )
    assert done.outcomes == {cell: what for cell, what in OUTCOMES.items() if "[abort]" not in cell}
    assert "scheduling tests via WorkStealingScheduling" in done.out


REQUIRED = """\
schema = 1
[models]
folders = ["models"]
exclude = ["broken.onnx"]
[[target]]
name = "ghost"
provider = "GhostExecutionProvider"
plugin = "no_such_plugin_package"
required = true
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""


def test_a_required_target_that_is_unavailable_fails(tmp_path: Path, run_warm: Run) -> None:
    project = write_project(tmp_path / "project", REQUIRED)
    done = run_warm(
        project, "-p", "no:xdist", "-v", "m.toml", "-k", "abs", "--ep-out", "run", "--junitxml=j.xml"
    )
    assert done.outcomes == {"models/abs.onnx[ghost]": "FAILED", "models/abs.onnx[cpu]": "PASSED"}
    assert "required target unavailable: unavailable: not_installed" in done.out
    info = json.loads((project / "run" / "run.json").read_text(encoding="utf-8"))
    assert (info["complete"], info["cells"]) == (True, 2), "a selection is a complete run of fewer cells"
    assert '<property name="verdict" value="pass" />' in (project / "j.xml").read_text(encoding="utf-8")


def test_a_matrix_that_proves_nothing_fails_the_session(
    tmp_path: Path, run_warm: Run, mode: tuple[str, ...]
) -> None:
    project = write_project(tmp_path / "project", REQUIRED.replace("required = true\n", ""))
    done = run_warm(project, *mode, "m.toml", "-k", "not abs")
    assert done.code == 0, "a selection says nothing about targets"
    done = run_warm(project, *mode, "m.toml")
    assert done.code == pytest.ExitCode.TESTS_FAILED
    assert "no evidence: no cell of ghost was judged" in done.out


def test_stopping_at_the_first_failure_keeps_what_has_been_found_out(
    tmp_path: Path, run_warm: Run, mode: tuple[str, ...]
) -> None:
    project = write_project(tmp_path / "project", REQUIRED)
    done = run_warm(project, *mode, "-x", "-qq", "m.toml", "--ep-out", "run")
    assert done.code in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
    info = json.loads((project / "run" / "run.json").read_text(encoding="utf-8"))
    # Cells whose turn had not come are in the run where the engine had run them already.
    found = records(project)
    assert 1 <= len(found) == len({record.cell for record in found}) <= 8
    assert (info["complete"], info["cells"]) == (len(found) == 8, 8)
    assert "execution providers" not in done.out


AHEAD = """
from harness.engine.processes import prestarted

started = []

class Noted(prestarted.PrestartedProcess):
    def __init__(self):
        super().__init__()
        started.append(self.process.pid)

prestarted.PrestartedProcess = Noted

def pytest_sessionstart(session):
    pids = " ".join(map(str, started))
    part = "worker" if hasattr(session.config, "workerinput") else "main"
    with open("ahead.txt", "a") as file:
        file.write(f"{part} {pids}\\n")
"""


def test_the_first_process_starts_ahead_and_serves(project: Path) -> None:
    (ahead,) = ran_ahead(project, "-p", "no:xdist", "--ep-out", "run")["main"]
    assert ahead in {record.process.pid for record in records(project) if record.process}


@pytest.mark.parametrize(
    ("options", "parts"),
    [(("--co", "-p", "no:xdist"), {"main": []}), (("-p", "xdist", "-n", "2"), {"main": [], "worker": []})],
    ids=["collecting", "shared"],
)
def test_none_starts_ahead_where_it_may_not_be_needed(
    project: Path, options: tuple[str, ...], parts: dict[str, list[int]]
) -> None:
    assert ran_ahead(project, *options) == parts


def ran_ahead(project: Path, *options: str) -> dict[str, list[int]]:
    """The processes that were ahead when the session started, by part of the session."""
    (project / "conftest.py").write_text(AHEAD, encoding="utf-8")
    (project / "ahead.txt").write_text("", encoding="utf-8")
    run_pytest(project, *options, "m.toml", "-k", "cpu")
    lines = (project / "ahead.txt").read_text(encoding="utf-8").splitlines()
    return {part: [int(pid) for pid in pids] for part, *pids in map(str.split, lines)}
