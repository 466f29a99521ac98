"""How often a model is run, by its work; and what is told of what is left out."""

import pytest

from harness.core.records.record import decode_record, encode_record
from harness.core.records.run_work import (
    WORK_LIMIT,
    Unchecked,
    Work,
    runs_of,
    short_of,
    too_much,
    unchecked_words,
)
from tests.kit import cpu_record


@pytest.mark.parametrize(
    ("operations", "runs"),
    [(0, 10), (1e7, 10), (1.1e7, 4), (1e9, 4), (1.1e9, 2), (1e10, 2), (1.1e10, 1), (1e30, 1)],
)
def test_the_less_it_works_the_more_it_is_run(operations: float, runs: int) -> None:
    assert runs_of(Work(multiply_adds=operations), WORK_LIMIT) == runs
    assert runs_of(Work(nbytes=operations / 100), WORK_LIMIT / 100) == runs


def test_all_that_works_counts() -> None:
    assert Work(multiply_adds=5, nbytes=7, nodes=2).operations == 20_012


def test_what_is_left_out_is_told_in_words() -> None:
    why = too_much(Work(multiply_adds=3.1e11), 1e11)
    told = unchecked_words(
        (Unchecked(check="second run", because=why), Unchecked(check="other inputs", because=why))
    )
    assert told == (
        "not checked: second run, other inputs; because one run takes 3.1e+11 operations, more than 1e+11 "
        "(`work_limit` of the target changes that)"
    )
    assert unchecked_words(()) == ""


@pytest.mark.parametrize(
    ("settings", "facts", "check"),
    [
        ({"count": 20, "budget_s": 60}, {"count": 7}, "13 of 20 sessions"),
        ({"count": 20, "budget_s": 60}, {"count": 20}, ""),
        ({"threads": 4, "runs": 25, "budget_s": 20}, {"runs": 40}, "60 of 100 runs"),
        ({"threads": 4, "runs": 25, "budget_s": 20}, {"runs": 100}, ""),
        ({"threads": 4, "runs": 25, "budget_s": 20}, {}, ""),
        ({}, {"count": 1}, ""),
    ],
)
def test_a_budget_that_was_used_up_is_told(
    settings: dict[str, int], facts: dict[str, int], check: str
) -> None:
    assert [one.check for one in short_of(settings, facts)] == ([check] if check else [])


def test_records_keep_it_and_old_ones_lack_it() -> None:
    left = (Unchecked(check="second run", because="it works too much"),)
    record = cpu_record("m", unchecked=left)
    assert decode_record(encode_record(record)).unchecked == left
    assert b"unchecked" not in encode_record(cpu_record("m"))
