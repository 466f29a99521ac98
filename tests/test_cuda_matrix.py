"""The matrix for NVIDIA GPUs as it is planned; a GPU shows what becomes of it."""

import pytest

from harness.data_files import data_root
from harness.engine.prepare import prepare
from harness.plan.plan import Plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Preparing it refuses an entry that selects no cell, and an option that a provider does not have."""
    return prepare(data_root() / "matrices" / "cuda.toml")[0]


def test_each_provider_comes_in_an_environment_of_pinned_packages(plan: Plan) -> None:
    others = [target for target in plan.matrix.targets if target.name != "cpu"]
    assert {target.provider[0] for target in others} == {"CUDAExecutionProvider", "WebGpuExecutionProvider"}
    for target in others:
        packages = target.runtime.packages
        assert packages
        assert all("==" in package for package in packages)


def test_a_known_fault_is_one_of_few_cells(plan: Plan) -> None:
    expected = [cell for cell in plan.cells if plan.expectation(cell) is not None]
    assert 80 < len(expected) < 100
    assert {cell.target for cell in expected} == {"cuda", "cuda-f32", "webgpu"}
