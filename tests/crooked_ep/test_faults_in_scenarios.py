"""Faults that only one scenario shows: each is told in its word, and nothing is told without a fault."""

import sys
from pathlib import Path

import pytest

from harness.core.records.verdict import Verdict
from tests.crooked_ep.faults import SHOWN_BY, Planted, scenario_faults
from tests.crooked_ep.scenario_run import ONLY, Records, has_own_target, run_in_scenarios

pytestmark = [
    pytest.mark.real_ep,
    pytest.mark.skipif(sys.platform != "linux", reason="the library is compiled for Linux"),
]

FAULTS = scenario_faults()


@pytest.fixture(scope="module")
def records(crooked_ep: Path, tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Target and fault -> the record of the scenario that shows it."""
    return run_in_scenarios(tmp_path_factory.mktemp("scenario_faults"), crooked_ep, FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_scenario_tells_its_fault(records: Records, fault: Planted) -> None:
    """A plain run of the same model, with the same fault, passes: it needs the scenario."""
    scenario = SHOWN_BY[fault.place]
    target = fault.name if has_own_target(fault) else "crooked"
    assert records[f"{target} plain", fault.name].verdict is Verdict.PASS
    found = records[f"{target} {scenario}", fault.name]
    assert found.verdict == fault.told, found.reason
    assert ONLY.get(fault.name, "") in found.reason


def test_nothing_is_told_without_a_fault(records: Records) -> None:
    honest = [record for (where, _), record in records.items() if where.startswith("honest")]
    once = sum(SHOWN_BY[fault.place] == "compile" for fault in FAULTS) - 1  # they share a model
    assert len(honest) == 2 * (len(FAULTS) - once)
    assert {record.verdict for record in honest} == {Verdict.PASS}
    assert not [record.cell for record in honest if record.manners]
