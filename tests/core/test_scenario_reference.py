"""The reference of scenarios says what the code does."""

import re
from pathlib import Path

from harness.core.records.scenario import SCENARIOS, agent_module

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "scenarios.md"
C, JAVASCRIPT = ROOT / "harness" / "agent_c" / "main.c", ROOT / "harness" / "agent_js" / "declines.mjs"


def agents(name: str) -> str:
    """Return which agents play a scenario, by what their sources decline."""
    in_c = re.findall(r'"scenario:(\w+)"', C.read_text(encoding="utf-8"))
    in_javascript = re.findall(
        r"^  (\w+): ['\"]", JAVASCRIPT.read_text(encoding="utf-8").split("};")[0], re.MULTILINE
    )
    declined = {"C": in_c, "JavaScript": in_javascript}
    played = [agent for agent, names in declined.items() if agent_module(name) not in names]
    return ", ".join(["Python", *played])


def test_every_scenario_is_in_the_reference() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = [f"| `{name}` | {scenario.meaning} | {agents(name)} |" for name, scenario in SCENARIOS.items()]
    assert "\n".join(table) in text
    for name in SCENARIOS.keys() - {"plain"}:
        assert f"\n## `{name}`\n" in text
