"""The matrix for Android phones as it is planned, and what becomes of it without a phone."""

from pathlib import Path

import pytest

from harness.data_files import data_root
from harness.engine.prepare import prepare
from harness.engine.processes.launch import launch
from harness.plan.plan import Plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Preparing it refuses an entry that selects no cell, and an option that a provider does not have."""
    return prepare(data_root() / "matrices" / "android.toml")[0]


def test_each_provider_of_a_phone_is_a_target_behind_adb(plan: Plan) -> None:
    providers = [target.provider[0].removesuffix("ExecutionProvider") for target in plan.matrix.targets]
    assert providers == ["CPU", "Xnnpack", "Nnapi", "QNN"]
    assert all(target.runtime.adb and target.runtime.agent for target in plan.matrix.targets)


def test_each_provider_has_the_level_that_is_advised_and_nnapi_its_flags(plan: Plan) -> None:
    head = "onnx-node/test_abs["
    cells = [cell.id.removeprefix(head)[:-1] for cell in plan.cells if cell.id.startswith(head)]
    flags = [f"graph_optimization=basic,option.nnapi_flags={flag}" for flag in ("0", "1", "2", "4", "8")]
    assert [cell for cell in cells if "ort_format" not in cell] == [
        "phone-cpu,graph_optimization=extended",
        "phone-xnnpack,graph_optimization=extended",
        *(f"phone-nnapi,{each}" for each in flags),
        "phone-qnn",
    ]
    assert len([cell for cell in cells if "scenario=ort_format" in cell]) == 7


def test_without_the_agent_the_reason_names_it(plan: Plan, tmp_path: Path) -> None:
    runtime = plan.matrix.targets[0].runtime
    with pytest.raises(FileNotFoundError, match="phone_agent: there is no such file to upload"):
        launch(runtime, {}, tmp_path)
