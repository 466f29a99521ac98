"""The axis ``scenario`` and the table ``[scenarios]``."""

from typing import Any, get_args

import pytest

from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.scenario import PLAIN, SCENARIOS, session_of
from harness.core.records.ways import WAYS, TextSettings
from harness.core.text.errors import UsageError
from harness.plan.expand import expand
from harness.plan.matrix import Matrix
from harness.plan.scenarios import ScenarioName, WayName
from tests.kit import make_matrix


def matrix(**tables: Any) -> Matrix:
    target = {"name": "cpu", "provider": "CPUExecutionProvider"}
    return make_matrix({"schema": 1, "models": {"suites": ["s"]}, "target": [target], **tables})


def problems(**tables: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        matrix(**tables)
    return [str(problem) for problem in caught.value.problems]


def test_the_file_takes_every_scenario_that_there_is() -> None:
    assert get_args(ScenarioName) == tuple(SCENARIOS)
    assert AXIS_DEFAULTS["scenario"] == PLAIN
    assert get_args(WayName) == tuple(WAYS)


def test_a_scenario_is_part_of_a_cells_id_unless_it_is_plain() -> None:
    found = matrix(axes={"scenario": ["plain", "io_binding"]})
    cells = expand(found, {"s": ["m"]}).cells
    assert [cell.id for cell in cells] == ["s/m[cpu]", "s/m[cpu,scenario=io_binding]"]


def test_settings_have_defaults_and_can_be_set() -> None:
    scenarios = matrix(
        axes={"scenario": ["concurrent", "sessions"]}, scenarios={"concurrent": {"threads": 2}}
    ).scenarios
    assert scenarios.settings("concurrent") == {"threads": 2, "runs": 25, "budget_s": 86400}
    assert scenarios.settings("sessions") == {"count": 20, "budget_s": 86400}
    assert scenarios.settings("io_binding") == {}
    generate = matrix(
        axes={"scenario": ["generate"]}, scenarios={"generate": {"ways": ["step"], "prompt": [5, 7]}}
    ).scenarios.generate
    assert generate.text == TextSettings(ways=("step",), length=40, new_tokens=8, prompt=(5, 7))


def test_a_misspelt_name_gets_a_suggestion() -> None:
    (found,) = problems(axes={"scenario": ["iobinding"]})
    head, _, hint = found.partition("\n")
    assert head == 'm.toml: axes.scenario[0]: got "iobinding"'
    assert hint.strip() == f"did you mean 'io_binding'? valid: {', '.join(sorted(SCENARIOS))}"
    (found,) = problems(scenarios={"concurent": {}})
    assert found.startswith("m.toml: scenarios.concurent: unknown key")
    assert "did you mean 'concurrent'?" in found


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"concurrent": {"threads": 1}}, "expected an integer from 2 to 256, got 1"),
        ({"concurrent": {"threads": 300}}, "got 300"),
        ({"concurrent": {"runs": 1.5}}, "got 1.5"),
        ({"sessions": {"count": 0}}, "got 0"),
        ({"sessions": {"counts": 3}}, "did you mean 'count'?"),
        ({"sessions": 20}, "expected a table, got 20"),
    ],
)
def test_bad_settings_are_reported(settings: dict[str, Any], problem: str) -> None:
    found = problems(axes={"scenario": ["concurrent", "sessions"]}, scenarios=settings)
    assert len(found) == 1
    assert problem in found[0]


def test_settings_of_a_scenario_that_no_cell_has_are_an_error() -> None:
    (problem,) = problems(scenarios={"sessions": {"count": 3}}, axes={"scenario": ["concurrent"]})
    assert problem.startswith("m.toml: scenarios.sessions: no cell has this scenario")
    target = {"name": "cpu", "provider": "CPUExecutionProvider", "axes": {"scenario": ["sessions"]}}
    assert matrix(scenarios={"sessions": {"count": 3}}, target=[target]).scenarios.sessions.count == 3


def test_other_data_is_another_case_on_a_plain_session() -> None:
    own_data = {"adapters", "batch_slots", "dynamic_shapes", "generate", "zero_size"}
    assert {scenario: session_of(scenario) for scenario in SCENARIOS} == {
        scenario: PLAIN if scenario in own_data else scenario for scenario in SCENARIOS
    }
