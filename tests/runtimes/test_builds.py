"""Runtimes that are built while the engine works: nobody stands still but those who wait for one."""

import datetime as dt
import os
import time
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Cause, Phase, Verdict
from harness.corpus.case import Case
from harness.engine.answers.references import References
from harness.engine.tasks.events import Event, Noted, TargetReady
from harness.engine.tasks.task import Question
from harness.golden.golden_answer import Golden
from harness.golden.golden_list import kept_by_case
from harness.plan.target import Runtime
from harness.runtimes.builds import Builds
from harness.runtimes.installer import InstallError
from tests.kit import (
    fake_target,
    of_folder,
    records_of,
    run_matrix,
    start_engine,
    wait_for,
    write_model,
)


@pytest.fixture
def home(tmp_path: Path, fake_uv: Path) -> Path:
    """A folder with two models, where environments are built by the fake uv."""
    assert fake_uv.parent == tmp_path
    for number in range(2):
        write_model(tmp_path / "models" / f"{number}_model.onnx")
    return tmp_path


def matrix(**targets: dict[str, Any]) -> dict[str, Any]:
    """A matrix over targets, each given by what is special about it."""
    tables = [fake_target(name, **table) for name, table in targets.items()]
    return of_folder(*tables)


def packages(*names: str, **more: Any) -> dict[str, Any]:
    return {"runtime": {"packages": list(names)}, **more}


def records(events: list[Event], target: str) -> list[Record]:
    return [record for record in records_of(events) if record.target == target]


def notes(events: list[Event]) -> list[str]:
    return [event.message for event in events if isinstance(event, Noted)]


def test_it_is_built_once_for_all_that_wait_for_it(home: Path) -> None:
    events = run_matrix(home, matrix(one=packages("ep", "b"), two=packages("ep", "b"), own={}))
    for target in ("one", "two", "own"):
        assert [record.verdict for record in records(events, target)] == [Verdict.PASS] * 2
    assert notes(events) == ["building runtime: ep, b"]
    assert len((home / "uv.log").read_text().splitlines()) == 3
    assert notes(run_matrix(home, matrix(one=packages("b", "ep")))) == []


def test_others_work_meanwhile(home: Path) -> None:
    events = run_matrix(home, matrix(late=packages("slow"), own={}), 1)
    done = [record.target for record in records_of(events)]
    assert sorted(done) == ["late", "late", "own", "own"]
    assert done[0] == "own"  # the second one may take longer than the build, on a busy machine


def test_a_failure_is_the_outcome_of_every_cell(home: Path) -> None:
    events = run_matrix(
        home, matrix(bad=packages("nosuch"), own={}, gone=packages("gone-1-py3-none-any.whl"))
    )
    for record in records(events, "bad"):
        assert (record.verdict, record.cause) == (Verdict.UNAVAILABLE, Cause.NOT_INSTALLED)
        assert record.phase is Phase.START
        assert "no version of nosuch==1" in record.reason
    for record in records(events, "gone"):
        assert record.cause == Cause.NOT_INSTALLED
        assert str(home / "gone-1-py3-none-any.whl") in record.reason
    assert [record.verdict for record in records(events, "own")] == [Verdict.PASS] * 2
    announced = sorted(event.target for event in events if isinstance(event, TargetReady))
    assert announced == ["bad", "gone", "own"]


def test_a_cell_that_runs_alone_waits_for_builds_of_others(home: Path) -> None:
    events = run_matrix(home, matrix(alone={"alone": True}, late=packages("slow")))
    built = (home / "uv.log").stat().st_mtime  # as its last command began
    for record in records(events, "alone"):
        assert record.verdict is Verdict.PASS
        assert dt.datetime.fromisoformat(record.started).timestamp() > built
    assert [record.verdict for record in records(events, "late")] == [Verdict.PASS] * 2


def test_an_engine_that_is_closed_builds_no_more(home: Path) -> None:
    engine = start_engine(home, matrix(never=packages("hang")))
    running = home / "uv.log.pid"
    wait_for(running.is_file)
    started = time.monotonic()
    engine.close()
    assert time.monotonic() - started < 30  # a build hangs for a minute
    deadline = time.monotonic() + 60
    while any(not name.endswith(".lock") for name in os.listdir(home / "cache" / "runtimes")):  # noqa: PTH208
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(int(running.read_text()), 0)


def test_any_fault_of_a_build_is_reported(monkeypatch: pytest.MonkeyPatch, fake_uv: Path) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    notes: list[str] = []
    ends: list[tuple[Runtime, InstallError | None]] = []
    builds = Builds(notes.append, lambda runtime, problem: ends.append((runtime, problem)))
    monkeypatch.setattr("harness.runtimes.builds.build", broken)
    runtime = Runtime(packages=("a",))
    assert not builds.is_built(runtime)
    assert not builds.is_built(runtime)
    assert builds.busy
    wait_for(lambda: ends)
    builds.finish(*ends[0])
    assert not builds.busy
    with pytest.raises(InstallError, match="RuntimeError: a fault"):
        builds.is_built(runtime)
    assert notes == ["building runtime: a"]
    assert fake_uv.read_text() == ""


def test_the_opinion_of_a_built_runtime_outlives_the_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its CPU provider takes what the target refuses is asked once, until it is another runtime."""
    asked: list[tuple[str, ...]] = []
    keep = References.keep

    def note(self: References, question: Question, case: Case, golden: Golden) -> None:
        asked.append(question.runtime.packages)
        keep(self, question, case, golden)

    monkeypatch.setattr(References, "keep", note)
    write_model(home / "models" / "2_error_in_create.onnx")
    for questions in ([("ep", "b")], []):
        asked.clear()
        events = run_matrix(home, matrix(one=packages("ep", "b")))
        verdicts = {record.model: record.verdict for record in records(events, "one")}
        assert list(dict(sorted(verdicts.items())).values()) == [Verdict.PASS, Verdict.PASS, Verdict.ERROR]
        assert [of for of in asked if of] == questions
    (manifest,) = (home / "cache" / "runtimes").rglob("manifest.json")
    manifest.write_text(manifest.read_text().replace("onnxruntime==1.0", "onnxruntime==1.1"))
    asked.clear()
    run_matrix(home, matrix(one=packages("ep", "b")))
    assert asked == [("ep", "b")]
    assert len(kept_by_case()) == 1  # the models are the same; what a runtime for targets says is no golden
