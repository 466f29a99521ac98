"""The optimizers that a failure needs, found by bisection."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.annex.triage.optimizers import OPTIMIZERS, guilty_optimizers


class Failing:
    """A failure that is there unless all of some optimizers are switched off."""

    def __init__(self, *makers: str) -> None:
        self.makers = set(makers)
        self.asked = 0

    def __call__(self, sets: Sequence[tuple[str, ...]]) -> list[bool]:
        self.asked += len(sets)
        return [not self.makers <= set(names) for names in sets]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_is_found(name: str) -> None:
    failing = Failing(name)
    assert guilty_optimizers(failing) == (name,)
    assert failing.asked <= 1 + 2 * math.ceil(math.log2(len(OPTIMIZERS)))


@settings(max_examples=60)
@given(st.sets(st.sampled_from(OPTIMIZERS), min_size=2, max_size=4))
def test_several_that_each_make_it_are_found_together(makers: set[str]) -> None:
    failing = Failing(*makers)
    assert set(guilty_optimizers(failing)) == makers
    assert failing.asked < 2 * len(OPTIMIZERS)


@settings(max_examples=60)
@given(st.sets(st.sampled_from(OPTIMIZERS), min_size=2, max_size=4))
def test_of_several_that_it_needs_one_is_found(chain: set[str]) -> None:
    """Without any one of them the failure is gone."""
    found = guilty_optimizers(lambda sets: [not chain & set(names) for names in sets])
    assert len(found) == 1
    assert set(found) <= chain


def test_none_is_found_if_the_failure_stays() -> None:
    asked: list[int] = []

    def fails(sets: Sequence[tuple[str, ...]]) -> list[bool]:
        asked.append(len(sets))
        return [True] * len(sets)

    assert guilty_optimizers(fails) == ()
    assert asked == [1]


def test_names_are_unique_and_can_be_listed() -> None:
    assert len(set(OPTIMIZERS)) == len(OPTIMIZERS)
    assert not any(";" in name or not name for name in OPTIMIZERS)
