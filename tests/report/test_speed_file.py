"""What two builds in turns show decides in a gate, in place of what nights show."""

from pathlib import Path

import msgspec
import pytest

from harness.core.text.errors import UsageError
from harness.core.timing.speed_change import SpeedChange, SpeedComparison, SpeedVerdict
from harness.report.changes.gate import GateLimits, judge_changes
from harness.report.changes.run_comparison import compare_runs
from harness.report.changes.speed_file import read_speed
from tests.kit import latency, record, run_of

SLOW, FAST = latency(*[20.0] * 12), latency(*[10.0] * 12)


def write(folder: Path, verdict: SpeedVerdict, cell: str) -> Path:
    change = SpeedChange(cell=cell, verdict=verdict, reason="+11.0%, from +4.0% to +15.0%")
    found = SpeedComparison(
        base="a", new="b", seed=1, found_from=0.1, false_alarms=0.01, missed=0.05, minutes=1, complete=True,
        cells=(change,),
    )  # fmt: skip
    path = folder / "speed.json"
    path.write_bytes(msgspec.json.encode(found))
    return path


@pytest.mark.parametrize(
    ("verdict", "breached"),
    [
        ("slower", {"slower": 1}),
        ("not_slower", {}),
        ("too_noisy", {"unclear": 1}),
        ("not_measured", {"unclear": 1}),
    ],
)
def test_it_replaces_the_comparison_of_nights(
    tmp_path: Path, verdict: SpeedVerdict, breached: dict[str, int]
) -> None:
    """By the nights alone the cell takes twice the time."""
    old, new = record("a", latency=FAST), record("a", latency=SLOW)
    compared = compare_runs(run_of([old]), run_of([new]), speed=write(tmp_path, verdict, old.cell))
    judgement = judge_changes(compared.diff, GateLimits(), lambda _: "")
    assert {one.limit: one.count for one in judgement.breaches} == breached
    facts = [fact for change in compared.diff.changes for fact in change.facts]
    assert bool(facts) == bool(breached) == any("in turns: +11.0%" in fact for fact in facts)


def test_what_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_speed(tmp_path / "missing.json")
    (tmp_path / "other.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(UsageError, match="no comparison of speed"):
        read_speed(tmp_path / "other.json")
    speed = write(tmp_path, "slower", "another/cell[npu]")
    with pytest.raises(UsageError, match="no cell that is in both runs"):
        compare_runs(run_of([record("a")]), run_of([record("a")]), speed=speed)
