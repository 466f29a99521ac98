"""Cells whose latency is measured: alone, once their answer is known, and only where it is right."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.engine.engine import Engine
from harness.engine.prepare import open_suites
from harness.plan.expand import expand
from tests.kit import FAKE_ENV, make_matrix, of_folder, records_of, run_matrix, write_model

CUDA = "CUDAExecutionProvider"
LATENCY = [{"warm_up": 2, "repeats": 10, "budget_s": 60.0}]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake needs POSIX")


@pytest.fixture
def matrix(tmp_path: Path) -> Callable[..., Any]:
    def tables(*names: str, latency: list[dict[str, Any]] = LATENCY, **settings: Any) -> dict[str, Any]:
        for name in names:
            write_model(tmp_path / "models" / f"{name}.onnx")
        env = {**FAKE_ENV, "FAKE_MARKER": str(tmp_path / "marker")}
        target = {"name": "t", "provider": CUDA, "env": env, **settings}
        return of_folder(target, latency=latency)

    return tables


@pytest.fixture
def run(tmp_path: Path, matrix: Callable[..., Any]) -> Callable[..., Any]:
    def records(*names: str, **settings: Any) -> list[Record]:
        events = run_matrix(tmp_path, matrix(*names, **settings))
        found = {record.model: record for record in records_of(events)}
        return [found[f"{name}.onnx"] for name in names]

    return records


def test_a_cell_that_passes_has_its_latency(run: Callable[..., list[Record]]) -> None:
    whole, partly, before = run("1_m", "2_placed_partly", "3_m", latency=[{"model": "[12]*", **LATENCY[0]}])
    assert (whole.verdict, partly.verdict) == (Verdict.PASS, Verdict.PASS_PARTIAL)
    for record in (whole, partly):
        assert record.latency is not None
        assert (record.latency.runs, record.latency.warm_up, record.latency.io) == (10, 2, "copied")
        assert record.timings_ms.keys() == {"create", "first_run", "teardown"}
    assert before.verdict is Verdict.PASS
    assert before.latency is None


def test_the_speed_of_a_wrong_answer_is_not_recorded(run: Callable[..., list[Record]]) -> None:
    found = run("1_zeros", "2_error_in_run", "3_segv_in_run", "4_placed_nowhere", "5_folded")
    assert [record.verdict for record in found] == [
        Verdict.MISMATCH,
        Verdict.ERROR,
        Verdict.CRASH,
        Verdict.FALLBACK,
        Verdict.FOLDED,
    ]
    assert [record.latency for record in found] == [None] * 5


def test_a_provider_that_tires_while_it_is_timed_fails(run: Callable[..., list[Record]]) -> None:
    tires, wears, after = run("1_tires", "2_wears", "3_m")
    assert tires.verdict is Verdict.NONDETERMINISTIC
    assert (wears.verdict, wears.cause, wears.phase) == (Verdict.CRASH, "SIGSEGV", "run")
    assert tires.latency is wears.latency is None
    assert after.verdict is Verdict.PASS


def test_an_engine_that_is_not_the_only_one_measures_nothing(
    tmp_path: Path, matrix: Callable[..., Any]
) -> None:
    loaded = make_matrix(matrix("1_m", "2_m", workers=2), tmp_path / "m.toml")
    suites = open_suites(loaded)
    plan = expand(loaded, {name: suite.models() for name, suite in suites.items()})
    engine = Engine(plan, suites, processes=2, measures=False)
    engine.submit(plan.cells)
    engine.drain()
    records = records_of(engine.events())
    engine.close()
    assert [record.verdict for record in records] == [Verdict.PASS] * 2
    assert [record.latency for record in records] == [None] * 2
