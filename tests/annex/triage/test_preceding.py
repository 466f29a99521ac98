"""The cells that must run before a failing one, found by runs of fewer and fewer of them."""

import math
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.annex.triage import preceding as module
from harness.annex.triage.preceding import (
    EARLIER,
    MOST_NEEDED,
    MOST_RERUNS,
    Reruns,
    earlier_cells,
)
from harness.annex.triage.time_budget import TimeBudget
from harness.core.records.record import ProcessState, Record
from tests.kit import cpu_record


class FakeRerun:
    """A failure that appears if all needed cells ran before, in fresh processes."""

    def __init__(self, needed: Collection[str]) -> None:
        self.needed = set(needed)
        self.tried: list[list[str]] = []

    def __call__(self, _matrix: Any, _suites: Any, records: Sequence[Record]) -> Any:
        names = [record.model for record in records]
        self.tried.append(names)
        fails = self.needed <= set(names[:-1])
        return SimpleNamespace(
            failures={one.cell: SimpleNamespace(record=one, fails_again=fails) for one in records}
        )


def cells(count: int) -> list[Record]:
    return [cpu_record(f"m{n}", process=ProcessState(pid=7, session=n + 1)) for n in range(count + 1)]


def found(
    monkeypatch: pytest.MonkeyPatch,
    records: list[Record],
    needed: Collection[str],
    budget: TimeBudget | None = None,
) -> tuple[list[str], FakeRerun]:
    fake = FakeRerun(needed)
    monkeypatch.setattr(module, "rerun_failure", fake)
    reruns = Reruns(None, {}, records[-1], lambda _: records[:-1], budget or TimeBudget(None))  # type: ignore[arg-type]
    result = reruns.preceding()
    return [one.record.model for one in result], fake


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_exactly_the_cells_that_are_needed_are_found(
    monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 100))
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=2))
    names, fake = found(monkeypatch, cells(count), {f"m{n}" for n in needed})
    assert {f"m{n}" for n in needed} <= set(names)
    assert len(fake.tried) <= MOST_RERUNS + 1
    if len(needed) == 1:
        assert len(names) == 1
        assert len(fake.tried) <= math.ceil(math.log2(count)) + 4
    elif count <= 12:
        assert set(names) == {f"m{n}" for n in needed}


def test_a_search_for_too_many_cells_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    names, fake = found(monkeypatch, cells(64), {f"m{n}" for n in range(0, 64, 4)})
    assert len(names) > MOST_NEEDED
    assert len(fake.tried) <= math.ceil(math.log2(64)) + 10, "of 24 attempts that a search may take"


def test_the_order_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    names, fake = found(monkeypatch, cells(9), {"m2", "m6"})
    assert names == ["m2", "m6"]
    assert all(tried == sorted(tried, key=lambda name: int(name[1:])) for tried in fake.tried)
    assert all(tried[-1] == "m9" for tried in fake.tried)


def test_a_failure_that_stays_away_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    names, fake = found(monkeypatch, cells(20), {"another"})
    assert names == []
    assert len(fake.tried) == 1


def test_without_earlier_cells_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    names, fake = found(monkeypatch, cells(0), {"m0"})
    assert (names, fake.tried) == ([], [])


def test_a_spent_budget_ends_the_search_with_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    names, fake = found(monkeypatch, cells(64), {"m3", "m40"}, TimeBudget(0))
    assert {"m3", "m40"} <= set(names)
    assert len(fake.tried) <= 3


def test_earlier_cells_are_those_of_the_same_process() -> None:
    def record(model: str, session: int, pid: int = 7, target: str = "cpu") -> Record:
        return cpu_record(model, target=target, process=ProcessState(pid=pid, session=session))

    own = record("own", 5)
    records = [
        record("late", 6),
        record("second", 2),
        record("first", 1),
        record("elsewhere", 3, pid=8),
        record("other", 4, target="gpu"),
        cpu_record("dead"),
        own,
    ]
    assert [one.model for one in earlier_cells(records, own)] == ["first", "second"]
    assert earlier_cells(records, cpu_record("dead")) == ()


@pytest.mark.parametrize(
    ("needed", "tries"), [(EARLIER[1] - 1, 1), (EARLIER[1] - EARLIER[0] - 5, 2)], ids=["near", "far"]
)
def test_of_many_earlier_cells_the_latest_are_tried_first(
    monkeypatch: pytest.MonkeyPatch, needed: int, tries: int
) -> None:
    names, fake = found(monkeypatch, cells(EARLIER[1]), {f"m{needed}"})
    assert names == [f"m{needed}"]
    lengths = [len(tried) - 1 for tried in fake.tried]
    assert lengths[:tries] == list(EARLIER[:tries])
    assert max(lengths) == EARLIER[tries - 1]


def test_cells_too_long_ago_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    names, fake = found(monkeypatch, cells(EARLIER[1] + 3), {"m2"})
    assert names == []
    assert [len(tried) - 1 for tried in fake.tried] == list(EARLIER)
