"""How much a session is used: what is not needed goes, and the least of the rest is found by bisection."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.annex.triage.lab import CellAxes
from harness.annex.triage.session_use import (
    ONCE,
    REPEATED_RUNS,
    RUNS,
    SESSIONS,
    THREADS_FIGURE,
    least_usage,
    needed_usage,
    plain_axes,
    usage_of,
)
from harness.annex.triage.signature import AT_FIRST_RUN, AT_SECOND_RUN
from harness.annex.triage.time_budget import TimeBudget
from harness.core.records.fault import Fault, Repetition, Signature, Usage
from harness.core.records.verdict import Phase, Verdict
from tests.annex.triage.planted_faults import chain, only

PLANTED = Path(__file__).parent / "planted_onnxruntime"
ALWAYS = Repetition(outcome="always", trials=5, failures=5)
ERROR = Signature(verdict=Verdict.ERROR, phase=Phase.RUN)
PATIENT = {"timeouts_s": {"create": 60, "run": 60}}
CONCURRENT = {"scenario": "concurrent", RUNS: "25", THREADS_FIGURE: "4"}

TriagePlanted = Callable[..., list[Fault]]


class UsedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Fails as a function of its axes says; counts what was tried."""

    axes: CellAxes
    fresh: bool = True
    fails: Callable[[dict[str, str]], bool]
    signature: Signature = ERROR
    tried: list[CellAxes] = msgspec.field(default_factory=list)

    @property
    def lab(self) -> Any:
        return SimpleNamespace(run=lambda trials: trials)

    def trial(self, _subject: Any, _number: int) -> Any:
        self.tried.append(self.axes)
        return self.fails(dict(self.axes))

    def match(self, _subject: Any, seen: bool) -> Any:  # noqa: FBT001 - as the check has it
        return SimpleNamespace(fails=seen)

    def matches(self, subjects: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.match(one, self.trial(one, 0)) for one in subjects)


def used(fails: Callable[[dict[str, str]], bool], axes: dict[str, str], **more: Any) -> Any:
    return UsedCheck(axes=tuple(sorted(axes.items())), fails=fails, **more)


def needed(check: Any) -> Any:
    return needed_usage(None, check)  # type: ignore[arg-type]


def least(check: Any, confirmation: Repetition = ALWAYS, budget_s: float | None = None) -> Any:
    return least_usage(None, check, confirmation, TimeBudget(budget_s))  # type: ignore[arg-type]


@given(st.integers(1, 60), st.integers(1, 400), st.data())
def test_the_least_threads_and_runs_are_found(threads: int, runs: int, data: st.DataObject) -> None:
    given_threads, given_runs = data.draw(st.integers(threads, 64)), data.draw(st.integers(runs, 500))
    check = used(
        lambda axes: int(axes[THREADS_FIGURE]) >= threads and int(axes[RUNS]) >= runs,
        {"scenario": "concurrent", THREADS_FIGURE: str(given_threads), RUNS: str(given_runs)},
    )
    found = least(check)
    assert usage_of(found.axes) == Usage(threads=threads, runs=runs)
    assert len(set(check.tried)) <= given_threads.bit_length() + given_runs.bit_length()


def test_without_time_the_figures_stay() -> None:
    check = used(lambda _: True, CONCURRENT)
    assert least(check, budget_s=0).axes == check.axes


def test_figures_with_which_a_failure_is_rarer_are_not_taken() -> None:
    results = iter([True, True, False] * 100)
    check = used(
        lambda axes: int(axes[SESSIONS]) >= 8 or next(results), {"scenario": "sessions", SESSIONS: "16"}
    )
    assert usage_of(least(check).axes) == Usage(sessions=8)


def test_a_flaky_failure_may_stay_as_flaky() -> None:
    known = Repetition(outcome="sometimes", trials=20, failures=8, repeats=20)
    results = iter([False, False, True] * 1000)
    check = used(
        lambda axes: int(axes[SESSIONS]) >= 3 and next(results), {"scenario": "sessions", SESSIONS: "9"}
    )
    assert usage_of(least(check, known).axes) == Usage(sessions=3)


def test_a_scenario_that_is_not_needed_goes_with_its_figures() -> None:
    found = needed(used(lambda _: True, CONCURRENT))
    assert dict(found.axes)["scenario"] == "plain"
    assert usage_of(found.axes) is None


def test_a_scenario_that_is_needed_stays() -> None:
    check = used(lambda axes: axes["scenario"] == "concurrent", CONCURRENT)
    assert needed(check).axes == check.axes


def test_only_trials_that_count_sessions_need_fresh_processes() -> None:
    assert needed(
        used(lambda axes: axes["scenario"] == "sessions", {"scenario": "sessions", SESSIONS: "3"})
    ).fresh
    assert not needed(used(lambda _: True, {"scenario": "sessions", SESSIONS: "3"})).fresh


@pytest.mark.parametrize(
    ("signature", "axes", "usage", "tried"),
    [
        (ERROR, {}, Usage(runs=2), 2),
        (ERROR, {REPEATED_RUNS: "9"}, Usage(runs=9), 1),
        (Signature(verdict=Verdict.ERROR, phase=Phase.CREATE), {}, None, 0),
        (Signature(verdict=Verdict.NONDETERMINISTIC, message=AT_SECOND_RUN), {}, Usage(runs=2), 1),
        (Signature(verdict=Verdict.MISMATCH, message=AT_FIRST_RUN), {REPEATED_RUNS: "9"}, None, 0),
    ],
)
def test_further_runs_stay_if_the_failure_needs_them(
    signature: Signature, axes: dict[str, str], usage: Usage | None, tried: int
) -> None:
    check = used(lambda axes: int(axes.get(REPEATED_RUNS, 2)) > 1, axes, signature=signature)
    assert usage_of(needed(check).axes) == usage
    assert len(check.tried) == tried


def test_a_failure_of_a_late_run_keeps_as_many_as_a_small_model_has() -> None:
    seldom = Signature(verdict=Verdict.NONDETERMINISTIC, message=AT_SECOND_RUN)
    check = used(lambda axes: int(axes.get(REPEATED_RUNS, 10)) > 6, {}, signature=seldom)
    assert usage_of(needed(check).axes) == Usage(runs=10)


def test_one_run_is_enough_for_a_failure_of_the_first_one() -> None:
    found = needed(used(lambda _: True, {REPEATED_RUNS: "9"}))
    assert int(dict(found.axes)[REPEATED_RUNS]) == ONCE.runs
    assert usage_of(found.axes) is None


def test_a_plain_session_has_no_figures() -> None:
    axes = tuple(sorted({**CONCURRENT, "graph_optimization": "basic"}.items()))
    assert plain_axes(axes) == (("graph_optimization", "basic"), ("scenario", "plain"))


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(threads=2, runs=3), "in 2 threads at once, with 3 runs each"),
        (Usage(threads=2, runs=1), "in 2 threads at once"),
        (Usage(threads=1, runs=7), "in a thread of its own, with 7 runs each"),
        (Usage(runs=2), "from run 2 of a session on"),
        (Usage(sessions=3), "with 3 sessions one after the other"),
        (Usage(runs=2, sessions=2), "from run 2 of a session on, with 2 sessions one after the other"),
    ],
)
def test_the_words(usage: Usage, words: str) -> None:
    assert usage.words == words


Few = Callable[[int], onnx.ModelProto]
NODES: list[tuple[str, list[str], list[str], dict[str, Any]]] = [
    ("Tanh", ["x"], ["a"], {}),
    ("Abs", ["a"], ["b"], {}),
    ("Neg", ["b"], ["y"], {}),
]


@pytest.fixture
def few() -> Few:
    """``few(nodes)``: a model of one or three nodes."""
    return lambda count: chain(NODES if count > 1 else [("Tanh", ["x"], ["y"], {})])


def scenario(name: str, **settings: int) -> dict[str, Any]:
    return {"axes": {"scenario": [name]}, **({"scenarios": {name: settings}} if settings else {})}


@pytest.mark.parametrize(
    ("planted", "tables", "usage", "words"),
    [
        (
            {"threads": 3},
            scenario("concurrent", threads=5, runs=4),
            {"threads": 3, "runs": 1},
            "in 3 threads at once",
        ),
        (
            {"session": 3},
            scenario("sessions", count=5),
            {"sessions": 3},
            "with 3 sessions one after the other",
        ),
    ],
)
@pytest.mark.long
def test_a_scenario_is_reduced_and_played_by_the_bundle(
    triage_planted: TriagePlanted,
    few: Few,
    tmp_path: Path,
    planted: dict[str, Any],
    tables: dict[str, Any],
    usage: dict[str, int],
    words: str,
) -> None:
    planted = {"kind": "bend", "op_type": "Tanh", "factor": 1.01, **planted}
    model = few(1 if "session" in planted else 3)  # each trial that counts sessions takes a process
    fault = only(triage_planted(planted, tables=tables, target=PATIENT, m=model))
    assert fault.usage == Usage(**usage)
    assert [fault.scenario] == tables["axes"]["scenario"]
    assert f"in scenario {fault.scenario}; only {words}" in fault.sentence
    assert fault.location is not None
    assert fault.location.op_types == ("Tanh",)
    bundle = tmp_path / "triage" / fault.bundle
    axes = json.loads((bundle / "manifest.json").read_text("utf-8"))["axes"]
    assert axes["scenario"] == fault.scenario
    assert {int(axes[one]) for one in (THREADS_FIGURE, RUNS, SESSIONS) if one in axes} == set(usage.values())
    assert "FAULT THERE" in reproduce(bundle, PLANTED)
    assert "FAULT GONE" in reproduce(bundle)


def test_a_failure_of_a_later_run_is_told_with_its_number(
    triage_planted: TriagePlanted, few: Few, tmp_path: Path
) -> None:
    planted = {"kind": "error", "op_type": "Tanh", "phase": "run", "message": "used up", "run": 6}
    tables = {"repeat": [{"runs": 12, "sessions": 2}]}
    fault = only(triage_planted(planted, tables=tables, target=PATIENT, m=few(3)))
    assert fault.usage == Usage(runs=6)
    assert "only from run 6 of a session on" in fault.sentence
    assert not fault.scenario
    bundle = tmp_path / "triage" / fault.bundle
    assert json.loads((bundle / "manifest.json").read_text("utf-8"))["runs"] == 6
    assert "FAULT THERE" in reproduce(bundle, PLANTED)
    assert "FAULT GONE" in reproduce(bundle)


def test_a_failure_that_needs_no_scenario_loses_it(triage_planted: TriagePlanted, few: Few) -> None:
    planted = {"kind": "scale", "op_type": "Tanh", "factor": 1.01}
    fault = only(triage_planted(planted, tables=scenario("from_bytes"), m=few(3)))
    assert (fault.scenario, fault.usage) == ("", None)


def reproduce(bundle: Path, path: Path | str = "") -> str:
    """What a bundle's script prints; the target's variables plant its fault if the stand-in is found."""
    env = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, str(bundle / "repro.py")]
    return subprocess.run(command, env=env, capture_output=True, check=False, text=True, timeout=120).stdout
