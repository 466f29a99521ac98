"""Corner values on real providers: `matrices/corners.toml`, whose list of known faults has to hold."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from harness.data_files import data_root
from harness.golden.provenance import may_saturate
from tests.kit import read_rows

pytestmark = pytest.mark.real_ep

MATRIX = data_root() / "matrices" / "corners.toml"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Cell -> record, of the CPU provider and WebGPU: the quickest, and in this very environment."""
    out = tmp_path_factory.mktemp("corners") / "run"
    command = [sys.executable, "-m", "harness", "run", str(MATRIX), "--target", "[cw]*", "--no-report"]
    done = subprocess.run(
        [*command, "--out", str(out)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {row["cell"]: row for row in read_rows(out)}


def test_the_cpu_provider_is_right_but_for_what_is_known(found: dict[str, dict[str, Any]]) -> None:
    on_cpu = {row["model"]: row["verdict"] for row in found.values() if row["target"] == "cpu"}
    assert len(on_cpu) > 150
    others = {model: verdict for model, verdict in on_cpu.items() if verdict != "pass"}
    saturated = {"matmulinteger_odd": "mismatch"} if may_saturate() else {}
    assert others == saturated | {
        "range_int64_wide": "folded",
        "reducemax_not_finite": "reference_disputed",
        "reducemin_not_finite": "reference_disputed",
        "reduceprod_int64_odd": "reference_disputed",
        "reducesum_int64_odd": "reference_disputed",
    }


def test_a_shader_that_loses_nan_is_caught(
    found: dict[str, dict[str, Any]], require: Callable[[str, str], None]
) -> None:
    relu = found["corners/relu_not_finite_float32[webgpu-swiftshader]"]
    if relu["verdict"] == "unavailable":
        require("WebGpuExecutionProvider", relu["reason"])
    assert relu["verdict"] == "nan_mismatch"
    assert "NaN: got 0, golden 1" in relu["reason"]
