"""The reference of scenarios says what the code does."""

from pathlib import Path

from harness.core.scenario import SCENARIOS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scenarios.md"


def test_every_scenario_is_in_the_reference() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = [f"| `{name}` | {scenario.meaning} |" for name, scenario in SCENARIOS.items()]
    assert "\n".join(table) in text
    for name in SCENARIOS.keys() - {"plain"}:
        assert f"\n## `{name}`\n" in text
