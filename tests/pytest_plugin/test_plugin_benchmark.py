"""Cells whose latency is measured, and pytest-benchmark: its files, comparisons, histograms and switches."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from harness.core.records.generation_figures import GenerationFigures, GenerationSpeed
from harness.pytest_plugin.benchmarks import add_benchmark, why_not_measured
from tests.kit import read_records
from tests.pytest_plugin.projects import write_project

pytest.importorskip("pytest_benchmark")
pytest.importorskip("pygal")
pytestmark = pytest.mark.real_ep

Run = Callable[..., Any]

MATRIX = """\
schema = 1
models = { folders = ["models"], exclude = ["relu.onnx", "broken.onnx"] }
target = [{ name = "cpu", provider = "CPUExecutionProvider" }]
latency = [{ model = "a*", warm_up = 2, repeats = 12, budget_s = 60 }]
"""
TIMED = ["models/abs.onnx[cpu]", "models/add.onnx[cpu]"]
BENCHMARK = ("-p", "pytest_benchmark.plugin", "--benchmark-storage=saved")


class Saved:
    """A first run, kept in every way there is."""

    def __init__(self, folder: Path, ran: Any) -> None:
        self.folder = folder
        self.ran = ran
        self.json = json.loads((folder / "b.json").read_text(encoding="utf-8"))
        self.records = {record.cell: record for record in read_records(folder / "run")}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, run_warm: Run) -> Saved:
    folder = write_project(tmp_path_factory.mktemp("benchmark") / "project", matrix=MATRIX)
    options = ("-p", "no:xdist", "--benchmark-json=b.json", "--benchmark-save=base", "--ep-out=run")
    return Saved(folder, run_warm(folder, "m.toml", *BENCHMARK, *options))


def test_benchmarks_are_the_latencies_of_the_records(saved: Saved) -> None:
    assert saved.ran.code == 0, saved.ran.out
    benchmarks = {bench["name"]: bench for bench in saved.json["benchmarks"]}
    assert sorted(benchmarks) == TIMED
    assert {cell for cell, record in saved.records.items() if record.latency} == set(TIMED)
    for cell, bench in benchmarks.items():
        latency = saved.records[cell].latency
        assert latency is not None
        assert bench["stats"]["data"] == [pytest.approx(ms / 1000) for ms in latency.samples_ms]
        assert bench["stats"]["rounds"] == 12
        assert bench["stats"]["median"] == pytest.approx(latency.p50_ms / 1000, abs=1e-8)
        assert bench["fullname"] == f"m.toml::{cell}"
        assert bench["group"] == cell.partition("[")[0]
        assert bench["params"]["target"] == bench["param"] == "cpu"
        assert bench["extra_info"]["warm_up"] == 2
        assert bench["extra_info"]["device_mib"] is None
        assert "samples_ms" not in bench["extra_info"]
    assert "benchmark 'models/abs.onnx': 1 tests" in saved.ran.out


def test_a_later_run_is_compared_and_a_regression_fails(saved: Saved, run_warm: Run) -> None:
    (file,) = (saved.folder / "saved").glob("*/0001_base.json")
    base = json.loads(file.read_text(encoding="utf-8"))
    for bench in base["benchmarks"]:
        if bench["name"] == TIMED[0]:  # as if it had taken no time at all
            figures = ("min", "max", "mean", "median", "q1", "q3", "ld15iqr", "hd15iqr")
            bench["stats"].update(dict.fromkeys(figures, 1e-12))
    file.write_text(json.dumps(base), encoding="utf-8")
    options = ("-p", "no:xdist", "--benchmark-compare", "--benchmark-compare-fail=min:1000000%")
    ran = run_warm(saved.folder, "m.toml", *BENCHMARK, *options, "--benchmark-histogram=pictures/speed")
    assert ran.code != 0
    regressed = ran.out.partition("Performance has regressed:")[2] + ran.err.partition("regressed:")[2]
    assert TIMED[0] in regressed
    assert TIMED[1] not in regressed
    assert f"{TIMED[0]} (NOW)" in ran.out
    assert f"{TIMED[0]} (0001_base)" in ran.out
    names = {path.name for path in (saved.folder / "pictures").iterdir()}
    assert names == {"speed-models_abs.onnx.svg", "speed-models_add.onnx.svg"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("-p", "no:xdist", "--benchmark-disable"), "--benchmark-disable"),
        (
            ("-p", "xdist", "-n", "2", "--benchmark-json=none.json"),
            "xdist's workers would disturb each other",
        ),
    ],
    ids=["disabled", "xdist"],
)
def test_without_measurements_the_summary_has_the_reason(
    saved: Saved, run_warm: Run, options: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = run_warm(saved.folder, "m.toml", *BENCHMARK, *options, f"--ep-out={out}")
    assert ran.code == 0, ran.out + ran.err
    assert f"latency was not measured: {reason}" in ran.out
    records = read_records(out)
    assert [record.verdict for record in records] == ["pass"] * 3
    assert not any(record.latency for record in records)


@pytest.mark.parametrize(("option", "left_out"), [("only", {"models/neg.onnx[cpu]"}), ("skip", set(TIMED))])
def test_a_cell_is_a_benchmark_where_its_latency_is_measured(
    saved: Saved, run_warm: Run, option: str, left_out: set[str]
) -> None:
    ran = run_warm(saved.folder, "m.toml", *BENCHMARK, "-p", "no:xdist", "-v", f"--benchmark-{option}")
    assert {cell for cell, outcome in ran.outcomes.items() if outcome == "SKIPPED"} == left_out
    assert {cell for cell, outcome in ran.outcomes.items() if outcome == "PASSED"} == {
        *TIMED,
        "models/neg.onnx[cpu]",
    } - left_out


def test_the_speed_of_generated_text_is_a_benchmark_for_each_length_and_batch(saved: Saved) -> None:
    speed = GenerationSpeed(first_token_ms={16: 4.0, 1: 2.0}, tokens_per_s={1: 50.0, 4: 0.0}, cache_mib=0.5)
    record = msgspec.structs.replace(saved.records[TIMED[0]], generation=GenerationFigures(speed=speed))
    session = SimpleNamespace(disabled=False, benchmarks=[])
    add_benchmark(cast("pytest.Config", SimpleNamespace(_benchmarksession=session)), "m.toml", record)
    run, *others = (bench.as_dict(include_data=True) for bench in session.benchmarks)
    assert run["name"] == TIMED[0]
    assert [(bench["name"], bench["stats"]["data"]) for bench in others] == [
        (f"{TIMED[0]} first token, prompt 1", [0.002]),
        (f"{TIMED[0]} first token, prompt 16", [0.004]),
        (f"{TIMED[0]} token, batch 1", [0.02]),  # nothing is known about a batch that gave no token
    ]
    assert len({bench["fullname"] for bench in (run, *others)}) == 4
    assert others[2]["group"] == "models/abs.onnx token, batch 1"
    assert others[2]["extra_info"]["tokens_per_s"] == 50.0
    assert {bench["extra_info"]["cache_mib"] for bench in others} == {0.5}


def test_without_the_plugin_latency_goes_to_records_only(saved: Saved) -> None:
    config = cast("pytest.Config", SimpleNamespace(option=SimpleNamespace()))
    assert why_not_measured(config) == ""
    add_benchmark(config, "m.toml", saved.records[TIMED[0]])
