"""What another plugin raises while an item waits costs that item; a repeated item ends as its record says."""

import json
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.cell import Cell
from harness.core.text.errors import UncontainedError
from harness.engine.prepare import RunnablePlan
from harness.engine.tasks.events import Event, Finished
from harness.plan.expand import expand
from harness.pytest_plugin import session
from harness.pytest_plugin.session import EngineRun
from tests.kit import bare_record, make_matrix
from tests.pytest_plugin.projects import write_project

MODELS = ("a.onnx", "b.onnx", "c.onnx")


class Engine:
    """An engine with a script: lists of events to hand out, and exceptions that something else raises."""

    def __init__(self, steps: list[Any], failure: BaseException | None = None) -> None:
        self._steps = deque(steps)
        self.failure = failure
        self.submitted: list[str] = []

    def submit(self, cells: Any) -> None:
        self.submitted += [cell.id for cell in cells]

    def batches(self) -> Iterator[list[Event]]:
        while self._steps:
            step = self._steps.popleft()
            if isinstance(step, BaseException):
                raise step
            yield step


def finished(cell: Cell) -> Finished:
    return Finished(record=bare_record(cell.model, suite=cell.suite, cell=cell.id))


Opened = tuple[EngineRun, list[Cell]]
Open = Callable[..., Opened]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Open:
    """``opened(script, settle)``: a run over an engine that does what ``script(cells)`` returns."""
    tables = {
        "schema": 1,
        "models": {"folders": ["m"]},
        "target": [{"name": "ep", "provider": "CPUExecutionProvider"}],
    }
    planned = expand(make_matrix(tables, tmp_path / "m.toml"), {"m": MODELS})
    plan = RunnablePlan(matrix=planned.matrix, cells=planned.cells, suites={})
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))

    def open_run(
        script: Callable[[list[Cell]], list[Any]],
        settle: Callable[..., Finished] = lambda event, _: event,
        failure: BaseException | None = None,
    ) -> Opened:
        engine = Engine(script(list(plan.cells)), failure)
        monkeypatch.setattr(session, "Engine", lambda *_, **__: engine)
        return EngineRun(plan, 1, settle, measures=False), list(plan.cells)

    return open_run


@pytest.mark.parametrize(
    "raised", [pytest.fail.Exception("too late"), TimeoutError("too late"), KeyboardInterrupt()]
)
def test_an_exception_in_the_wait_goes_through_and_the_next_wait_gets_the_results(
    opened: Open, raised: BaseException
) -> None:
    run, (a, b, c) = opened(
        lambda cells: [[finished(cells[1])], raised, [finished(cells[0]), finished(cells[2])]]
    )
    run.submit((a, b, c))
    with pytest.raises(type(raised)):
        run.take(a)
    assert [run.take(cell).record.cell for cell in (b, c, a)] == [b.id, c.id, a.id]
    assert [record.cell for record in run.take_news().records] == [b.id, a.id, c.id]


def test_an_exception_while_results_are_consumed_loses_none(opened: Open) -> None:
    raised = [pytest.fail.Exception("too late")]

    def settle(event: Finished, _: object) -> Finished:
        if raised:
            raise raised.pop()
        return event

    run, cells = opened(lambda cells: [[finished(cell) for cell in cells]], settle)
    run.submit(cells)
    with pytest.raises(pytest.fail.Exception):
        run.take(cells[0])
    assert [run.take(cell).record.cell for cell in cells] == [cell.id for cell in cells]


@pytest.mark.parametrize("failure", [ValueError("of its own"), UncontainedError("of its own")])
def test_only_a_failure_of_the_engine_ends_the_session(opened: Open, failure: BaseException) -> None:
    run, (a, *_) = opened(lambda _: [failure], failure=failure)
    with pytest.raises(pytest.exit.Exception, match="a fault of ep-harness"):
        run.take(a)


MATRIX = """\
schema = 1
[models]
folders = ["models"]
exclude = ["models/broken.onnx"]
[[target]]
name = "ep"
provider = "CPUExecutionProvider"
env = { PYTHONPATH = "@FAULTS@" }
[[expect]]
model = "relu.onnx"
verdict = "mismatch"
reason = "no"
"""

SLOW = """\
import os, time
import onnxruntime

made = onnxruntime.InferenceSession.__init__

def create(self, *arguments, **options):
    made(self, *arguments, **options)
    while self.get_modelmeta().graph_name == "add" and not os.path.exists(FLAG):
        time.sleep(0.02)

onnxruntime.InferenceSession.__init__ = create
"""

OTHER_PLUGINS = """\
import pathlib, signal
import pytest
from _pytest.runner import runtestprotocol

def late(*_):
    pathlib.Path(FLAG).touch()
    pytest.fail("too late")

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):  # as pytest-timeout does by a signal
    if "add.onnx" in item.name:
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

def pytest_runtest_protocol(item, nextitem):  # as pytest-rerunfailures does
    for again in (True, False):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        repeats = again and "add.onnx" not in item.name and any(report.failed for report in reports)
        for report in reports:
            report.outcome = "rerun" if repeats and report.failed else report.outcome
            item.ihook.pytest_runtest_logreport(report=report)
        if not repeats:
            return True

def pytest_report_teststatus(report):
    if report.outcome == "rerun":
        return "rerun", "R", "RERUN"
"""


@pytest.mark.skipif(sys.platform == "win32", reason="pytest-timeout has no signals there")
def test_a_session_with_a_timeout_and_repeated_tests_counts_as_its_table(
    tmp_path: Path, run_warm: Callable[..., Any]
) -> None:
    project = write_project(tmp_path / "project", MATRIX)
    flag = f"FLAG = {str(project / 'flag')!r}\n"
    (project / "faults" / "sitecustomize.py").write_text(flag + SLOW, encoding="utf-8")
    (project / "conftest.py").write_text(flag + OTHER_PLUGINS, encoding="utf-8")
    done = run_warm(project, "-p", "no:xdist", "-v", "m.toml", "--ep-out", "run")
    assert done.outcomes == {
        "models/abs.onnx[ep]": "PASSED",
        "models/add.onnx[ep]": "FAILED",
        "models/neg.onnx[ep]": "PASSED",
        "models/relu.onnx[ep]": "FAILED",
    }, done.out
    assert (done.code, done.out.count("RERUN")) == (pytest.ExitCode.TESTS_FAILED, 1)
    # Whatever pytest repeats, a cell has one record.
    lines = (project / "run" / "records.jsonl").read_text("utf-8").splitlines()
    assert Counter(json.loads(line)["model"] for line in lines) == dict.fromkeys(
        ("abs.onnx", "add.onnx", "neg.onnx", "relu.onnx"), 1
    )
    (row,) = [line.split() for line in done.lines if line.startswith("ep ")]
    assert (row[1], row[-1]) == ("4", "1")  # cells, unexpected ones
    assert "ended early: 1 failed before the record came" in done.lines
