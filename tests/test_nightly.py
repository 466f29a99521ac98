"""The nightly matrix as it is planned; what becomes of it takes the providers, and a quarter of an hour."""

from collections import Counter

import pytest

from harness.core.records.scenario import GENERATE, PACKAGE_SCENARIO, SCENARIOS
from harness.data_files import data_root
from harness.engine.prepare import prepare
from harness.plan.plan import Plan

LIMIT = 2600
"""Cells that two cores can run in a quarter of an hour: 630 of them, with the plain ones, took 81 s."""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return prepare(data_root() / "matrices" / "nightly.toml")[0]


def test_the_zoo_meets_five_targets_in_every_scenario(plan: Plan) -> None:
    cells = Counter((cell.target, cell.axis("scenario")) for cell in plan.cells)
    targets = {target.name for target in plan.matrix.targets}
    assert len(targets) == 5
    wanted = SCENARIOS.keys() - {GENERATE, PACKAGE_SCENARIO}  # the zoo has neither texts nor packages
    missing = {(target, scenario) for target in targets for scenario in wanted} - cells.keys()
    memory = {"adapters", "buffers", "compile", "initializers"}  # their code does not depend on the options
    assert missing == {
        *(
            ("cpu", scenario)
            for scenario in ("ep_context", "compile", "cpu_fallback_disabled", "dynamic_options")
        ),
        *(("openvino-default", scenario) for scenario in memory),
        ("webgpu-swiftshader", "dynamic_options"),
        ("qnn-htp", "terminate"),
        *((target, "capture") for target in targets if target != "webgpu-swiftshader"),
    }
    assert {cell.suite for cell in plan.cells} == {"zoo"}
    assert len(plan.cells) < LIMIT


def test_every_architecture_runs_on_every_target(plan: Plan) -> None:
    def architectures(target: str) -> set[str]:
        return {cell.model.partition("-small")[0] for cell in plan.cells if cell.target == target}

    small = {name for name in architectures("cpu") if "-base" not in name}
    assert len(small) > 15
    for target in plan.matrix.targets:
        assert small <= architectures(target.name)


def test_what_is_expected_is_no_pass(plan: Plan) -> None:
    for entry in plan.matrix.expect:
        assert "pass" not in entry.verdicts
        assert entry.reason
