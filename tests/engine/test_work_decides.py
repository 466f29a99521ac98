"""How much is checked follows from the work of a model, and never from the time that it takes."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.record import Record
from harness.core.records.run_work import Unchecked, unchecked_words
from harness.core.records.verdict import Verdict
from tests.kit import fake_target, of_folder, records_of, run_matrix, write_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake onnxruntime needs POSIX")

EP = "CUDAExecutionProvider"
FLAKY = 20
SYMBOLIC = '<ir_version: 9, opset_import: ["" : 17]> agraph (float[N] x) => (float[N] y) { y = Relu(x) }'


class Bench:
    """Runs models of the fake onnxruntime, by the names of their faults."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def records(self, *faults: str, matrix: Mapping[str, Any] | None = None, **target: Any) -> list[Record]:
        for number, fault in enumerate(faults):
            write_model(self.folder / "models" / f"{number:02}_{fault}.onnx")
        table = of_folder(fake_target(**{"workers": 2, **target}), **matrix or {})
        events = run_matrix(self.folder, table)
        found = {record.model: record for record in records_of(events)}
        return [found[f"{number:02}_{fault}.onnx"] for number, fault in enumerate(faults)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def checks(record: Record) -> tuple[object, ...]:
    """What was checked."""
    return record.verdict, record.reason, record.repeats, record.unchecked, len(record.other)


def test_a_slow_first_run_is_checked_like_a_quick_one(bench: Bench) -> None:
    quick, slow, good, slow_good = bench.records("keeps", "slow_keeps", "good", "slow_good")
    assert checks(slow) == checks(quick)
    assert checks(slow_good) == checks(good)
    assert slow.verdict is Verdict.MISMATCH
    assert "is the output for the inputs before" in slow.reason
    assert slow_good.verdict is Verdict.PASS
    assert slow_good.repeats is not None
    assert (slow_good.repeats.runs, slow_good.repeats.differing) == (10, 0)
    assert slow_good.unchecked == ()
    assert slow.timings_ms["first_run"] > 500 > quick.timings_ms["first_run"]


def test_a_fault_of_one_run_in_five_is_found_on_a_cheap_model(bench: Bench) -> None:
    records = bench.records(*["flaky"] * FLAKY)
    found = [record for record in records if record.verdict in {Verdict.NONDETERMINISTIC, Verdict.MISMATCH}]
    assert len(found) >= 0.8 * FLAKY  # 89 % are expected of ten runs, 36 % of two
    flaky = [record for record in found if record.verdict is Verdict.NONDETERMINISTIC]
    for record in flaky:
        assert record.repeats is not None
        assert record.repeats.differing
        assert "different results in 1 session of 10 runs" in record.reason
        assert f"({record.repeats.differing} of 9 further runs)" in record.reason
    assert flaky


def test_what_is_left_out_stands_in_the_record(bench: Bench) -> None:
    quick, slow = bench.records("keeps", "slow_keeps", work_limit=10)
    assert checks(slow) == checks(quick)
    assert quick.verdict is Verdict.PASS  # nothing shows it, and the record says so
    assert [one.check for one in quick.unchecked] == ["second run", "other inputs"]
    assert quick.repeats is not None
    assert quick.repeats.runs == 1
    told = unchecked_words(quick.unchecked)
    assert told.startswith(
        "not checked: second run, other inputs; because one run takes 3e+04 operations, more"
    )
    assert told.endswith("than 10 (`work_limit` of the target changes that)")


def test_the_matrix_decides_whatever_the_work(bench: Bench) -> None:
    repeat = [{"model": "*", "runs": 3, "sessions": 1}]
    (record,) = bench.records("slow_keeps", matrix={"repeat": repeat}, work_limit=10)
    assert record.verdict is Verdict.MISMATCH
    assert record.repeats is not None
    assert record.repeats.runs == 3
    assert record.unchecked == ()


@pytest.mark.parametrize(
    ("scenario", "settings", "fact", "fewest", "check"),
    [
        ("sessions", {"count": 5}, "count", 2, "3 of 5 sessions"),
        ("concurrent", {"threads": 2, "runs": 4}, "runs", 2, "3 of 4 runs in each thread"),
    ],
)
def test_scenarios_of_many_runs_do_the_least(
    bench: Bench, scenario: str, settings: dict[str, int], fact: str, fewest: int, check: str
) -> None:
    matrix = {"axes": {"scenario": [scenario]}, "scenarios": {scenario: settings}}
    (record,) = bench.records("good", matrix=matrix, work_limit=10)
    assert record.verdict is Verdict.PASS
    assert record.scenario[fact] == fewest
    assert [one.check for one in record.unchecked] == [check]
    (record,) = bench.records("good", matrix=matrix)
    assert record.scenario[fact] == settings.get(
        "count", settings.get("threads", 1) * settings.get("runs", 1)
    )
    assert record.unchecked == ()


def test_a_budget_that_is_used_up_is_told(bench: Bench) -> None:
    settings = {"count": 4, "budget_s": 1}
    matrix = {"axes": {"scenario": ["sessions"]}, "scenarios": {"sessions": settings}}
    (record,) = bench.records("slow_good", matrix=matrix)
    because = "1 s were used up (`budget_s` of the scenario changes that)"
    assert record.unchecked == (Unchecked(check="2 of 4 sessions", because=because),)
    assert record.verdict is Verdict.PASS


@pytest.mark.parametrize("scenario", ["io_binding", "dynamic_shapes"])
def test_other_scenarios_repeat_as_they_are_told(tmp_path: Path, scenario: str) -> None:
    write_model(tmp_path / "models" / "m.onnx", SYMBOLIC)
    matrix = of_folder(
        {"name": "much", "provider": "CPUExecutionProvider"},
        {"name": "little", "provider": "CPUExecutionProvider", "work_limit": 10},
        axes={"scenario": [scenario]},
    )
    events = run_matrix(tmp_path, matrix)
    found = {record.target: record for record in records_of(events)}
    much, little = found["much"], found["little"]
    assert much.repeats is not None
    assert much.repeats.runs == (10 if scenario == "io_binding" else 2)
    assert much.unchecked == ()
    assert [one.check for one in little.unchecked] == ["second run"]
    if scenario == "dynamic_shapes":
        assert set(little.scenario["again_ms"]) == {-1}  # type: ignore[arg-type]
