from typing import Any

import pytest

from harness.core.records.record import Record
from harness.report.words.facts_in_words import scenario_facts
from tests.kit import bare_record


def record(scenario: str, facts: dict[str, Any]) -> Record:
    return bare_record("m", target="t", axes={"scenario": scenario}, scenario=facts)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, ""),
        ({"shapes": ("given", "batch=2")}, "x: shapes given, batch=2"),
        ({"run_ms": (1.23456, 40.0)}, "x: run 1.23, 40 ms"),
        ({"context_bytes": 123456, "embedded": True}, "x: context 123,456 bytes; embedded yes"),
        ({"growth_mib": 0.5, "on_device": False}, "x: growth 0.5 MiB; on device no"),
        ({"disabled_optimizers": ()}, "x: disabled optimizers none"),
    ],
)
def test_facts_are_told_in_one_line(facts: dict[str, Any], text: str) -> None:
    assert dict(scenario_facts(record("x", facts))) == ({"Scenario": text} if text else {})


def test_a_hostile_fact_stays_in_its_line() -> None:
    ((_, text),) = scenario_facts(record("x", {"reason": "a\nb" * 1000}))
    assert "\n" not in text
    assert len(text) <= 600
