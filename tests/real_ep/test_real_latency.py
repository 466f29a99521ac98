"""Latency on real execution providers, with inputs and outputs copied and bound."""

import tomllib
from pathlib import Path

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.data_files import data_root
from tests.kit import records_of, run_matrix

pytestmark = pytest.mark.real_ep

TARGETS = ["cpu", "webgpu-swiftshader"]


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    local = tomllib.loads((data_root() / "matrices" / "local.toml").read_text(encoding="utf-8"))
    table = {
        "schema": 1,
        "models": {"suites": ["onnx-node"]},
        "axes": {"scenario": ["plain", "io_binding"]},
        "target": [target for target in local["target"] if target["name"] in TARGETS],
        "latency": [{"warm_up": 2, "repeats": 12, "budget_s": 60}],
    }
    found = records_of(run_matrix(Path(), table, None, {"onnx-node": ["test_matmul_2d"]}))
    return {f"{record.target} {record.axes['scenario']}": record for record in found}


@pytest.mark.parametrize("target", TARGETS)
def test_runs_are_timed_with_inputs_and_outputs_copied_and_bound(
    records: dict[str, Record], target: str
) -> None:
    plain, bound = records[f"{target} plain"], records[f"{target} io_binding"]
    if plain.verdict is Verdict.UNAVAILABLE:
        pytest.skip(plain.reason)
    for record, io in ((plain, "copied"), (bound, "bound")):
        assert record.verdict is Verdict.PASS, record.reason
        assert record.latency is not None
        assert (record.latency.runs, record.latency.warm_up, record.latency.io) == (12, 2, io)
        assert 0 < record.latency.min_ms <= record.latency.p50_ms <= record.latency.max_ms
        assert record.timings_ms["create"] > 0
