"""Cells that are reported without pytest's phases: whatever looks at the reports sees no difference."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.core.records.record import decode_record
from harness.pytest_plugin.brief import Brevity
from tests.pytest_plugin.projects import write_project

Run = Callable[..., Any]

WAYS = ("brief", "standard")

CONFTEST = """
import json, pathlib
import pytest

LOG = pathlib.Path(__file__).with_name("reports.jsonl")

def log(*what):
    with LOG.open("a") as file:
        text = json.dumps(what, default=str)
        file.write(text.replace(str(LOG.parent), "HERE") + "\\n")

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "models/neg.onnx[cpu]":
            item.add_marker(pytest.mark.skip(reason="not today"))

def pytest_runtest_logstart(nodeid, location):
    log("start", nodeid, location)

def pytest_runtest_logreport(report):
    xfail = getattr(report, "wasxfail", "")
    text = "" if xfail else report.longrepr  # its traceback is not shown
    sections = [title for title, _ in report.sections if report.when == "call"]
    log(report.when, report.nodeid, report.outcome, text, xfail, sections, report.user_properties)

def pytest_runtest_logfinish(nodeid, location):
    log("finish", nodeid, location)

def pytest_exception_interact(node, call, report):
    log("interact", node.nodeid, report.when, call.excinfo.typename)
"""

PHASES = """
phases = []

def pytest_runtest_setup(item):
    phases.append(item.name)

def pytest_sessionfinish():
    log("phases", phases)
"""

TEST = """
import pytest

@pytest.fixture(scope="session")
def everywhere():
    yield 1

@pytest.fixture(scope="module")
def here(everywhere):
    yield 2

def test_here(here):
    assert here == 2

def test_wrong(here):
    print("wrong")
    assert here == 3
"""


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two equal projects, but in one of them a conftest has a hook for the setup of items."""
    found = {}
    for way in WAYS:
        project = found[way] = write_project(tmp_path_factory.mktemp(way) / "project")
        conftest = CONFTEST + (PHASES if way == "standard" else "")
        (project / "conftest.py").write_text(conftest, encoding="utf-8")
        for name in ("test_1.py", "test_2.py"):
            (project / name).write_text(TEST, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def both(projects: dict[str, Path], run_warm: Run) -> Callable[..., dict[str, Any]]:
    """Run pytest in both projects."""

    def run_both(*arguments: str) -> dict[str, Any]:
        for project in projects.values():
            (project / "reports.jsonl").unlink(missing_ok=True)
        return {way: run_warm(project, "-p", "no:xdist", *arguments) for way, project in projects.items()}

    return run_both


def reports(project: Path) -> list[list[Any]]:
    lines = (project / "reports.jsonl").read_text(encoding="utf-8").splitlines()
    return [what for line in lines if (what := json.loads(line))[0] != "phases"]


@pytest.fixture(scope="module")
def whole(
    projects: dict[str, Path], both: Callable[..., dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, list[list[Any]]]]:
    """Everything, with tests in Python before and after the matrix: the output of pytest, and the reports."""
    done = both(
        "-v", "-ra", "--junitxml=junit.xml", "--durations=3", "--durations-min=0", "--ep-out=run",
        "test_1.py", "m.toml", "test_2.py",
    )  # fmt: skip
    return done, {way: reports(project) for way, project in projects.items()}


Whole = tuple[dict[str, Any], dict[str, list[list[Any]]]]


def test_one_way_goes_through_the_phases_and_one_does_not(whole: Whole, projects: dict[str, Path]) -> None:
    done, _ = whole
    assert {ran.code for ran in done.values()} == {pytest.ExitCode.TESTS_FAILED}, done["brief"].out
    last = (projects["standard"] / "reports.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert len(json.loads(last)[1]) == 14, "all but the one with a mark"
    assert (
        json.loads((projects["brief"] / "reports.jsonl").read_text(encoding="utf-8").splitlines()[-1])[0]
        == "finish"
    )


def cells_of(project: Path) -> dict[str, Any]:
    """Test cases of the JUnit report: what is in them, but for places and times."""
    text = (project / "junit.xml").read_text(encoding="utf-8").replace(str(project), "HERE")
    return {
        f"{case.get('classname')} {case.get('name')}": [
            (inner.tag, inner.attrib, inner.text) for inner in case.iter() if inner is not case
        ]
        for case in ET.fromstring(text).iter("testcase")  # noqa: S314 - pytest's own
    }


def test_every_report_is_the_same(whole: Whole) -> None:
    _, seen = whole
    assert seen["brief"] == seen["standard"]
    kinds = {(what[0], str(what[2])) for what in seen["brief"]}
    assert {("setup", "skipped"), ("call", "failed"), ("call", "skipped"), ("teardown", "passed")} <= kinds
    assert ("interact", "call") in kinds


def test_junit_is_the_same(whole: Whole, projects: dict[str, Path]) -> None:
    assert whole
    assert len(cells_of(projects["brief"])) == 15
    assert cells_of(projects["brief"]) == cells_of(projects["standard"])


def test_the_outcomes_and_the_summary_are_the_same(whole: Whole) -> None:
    done, _ = whole
    assert done["brief"].outcomes == done["standard"].outcomes
    assert done["brief"].outcomes["models/neg.onnx[cpu]"] == "SKIPPED"
    for ran in done.values():
        assert "4 failed, 4 passed, 6 skipped, 1 xfailed" in ran.lines[-1]
    brief, standard = (
        ran.out.partition("short test summary info")[2].splitlines()[1:-1] for ran in done.values()
    )
    assert brief == standard


def test_durations_are_those_of_the_cells(whole: Whole) -> None:
    done, _ = whole
    for ran in done.values():
        listed = ran.out.partition("slowest 3 durations")[2].splitlines()[1:4]
        assert len(listed) == 3
        assert all(re.match(r"\d+\.\d\ds (setup|call|teardown) +\S+::", line) for line in listed), listed


def test_a_cell_that_is_skipped_is_not_run(whole: Whole, projects: dict[str, Path]) -> None:
    assert whole
    for project in projects.values():
        lines = (project / "run" / "records.jsonl").read_bytes().splitlines()
        cells = {decode_record(line).cell for line in lines}
        assert len(cells) == len(lines) == 10
        assert "models/neg.onnx[cpu]" not in cells


def test_stopping_at_the_first_failure_and_going_on_with_it(
    whole: Whole, projects: dict[str, Path], both: Callable[..., dict[str, Any]]
) -> None:
    assert whole
    done = both("-v", "-x", "--lf", "m.toml", "test_2.py")
    assert {ran.code for ran in done.values()} == {pytest.ExitCode.TESTS_FAILED}
    for ran in done.values():
        assert ran.outcomes == {"models/relu.onnx[cpu]": "FAILED"}
        assert "run-last-failure: rerun previous 3 failures" in ran.out
        assert "1 failed" in ran.lines[-1]
    assert reports(projects["brief"]) == reports(projects["standard"])


def test_warnings_that_are_errors_fail_a_cell_and_lose_no_other(
    whole: Whole,
    projects: dict[str, Path],
    both: Callable[..., dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert whole
    (tmp_path / "file").touch()
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "file"))  # no golden can be kept
    done = both("-v", "-W", "error::pytest.PytestWarning", "m.toml", "-k", "cpu", "-p", "no:cacheprovider")
    for way, ran in done.items():
        assert "PytestWarning" in ran.out
        assert len(ran.outcomes) == 5, (way, ran.out)
        assert ran.outcomes["models/neg.onnx[cpu]"] == "SKIPPED"
        assert "FAILED" in ran.outcomes.values()
    for project in projects.values():
        assert [what[0] for what in reports(project)].count("call") == 4


def implementation(module: str, *, wrapper: bool = False) -> Any:
    return SimpleNamespace(function=SimpleNamespace(__module__=module), wrapper=wrapper, hookwrapper=False)


@pytest.mark.parametrize(
    ("hook", "foreign", "options", "spares"),
    [
        ("runtest_setup", None, {}, "everything"),
        ("runtest_setup", implementation("tests.conftest"), {}, "nothing"),
        ("runtest_call", implementation("pytest_timer.plugin", wrapper=True), {}, "nothing"),
        ("runtest_teardown", implementation("pytest_cov.plugin"), {}, "everything"),
        ("runtest_protocol", implementation("pytest_rerunfailures"), {}, "nothing"),
        ("runtest_protocol", implementation("pytest_timeout", wrapper=True), {}, "phases"),
        ("runtestloop", implementation("xdist.remote"), {}, "phases"),
        ("runtest_setup", None, {"usepdb": True}, "nothing"),
        ("runtest_setup", None, {"setupshow": True}, "nothing"),
        ("runtest_setup", None, {"faulthandler_timeout": "5"}, "phases"),
    ],
)
def test_phases_are_skipped_if_no_plugin_uses_them(
    hook: str, foreign: Any, options: dict[str, Any], spares: str
) -> None:
    hooks = {}
    own = ("setup", "call", "teardown", "protocol", "makereport", "logreport")
    for name in ("runtestloop", *(f"runtest_{phase}" for phase in own)):
        known = [implementation("_pytest.runner"), implementation("harness.pytest_plugin.conductor")]
        if foreign is not None and hook == name:
            known.append(foreign)
        hooks[f"pytest_{name}"] = SimpleNamespace(get_hookimpls=lambda known=known: known)
    config = SimpleNamespace(
        hook=SimpleNamespace(**hooks),
        option=SimpleNamespace(**{"usepdb": False, **options}),
        getini=lambda name: options.get(name, ""),
        getoption=options.get,
    )
    brevity = Brevity(cast("pytest.Config", config), lambda *_: None)
    assert brevity.spares_phases is (spares != "nothing")
    assert brevity.spares_protocol is (spares == "everything")
