"""The signed-rank test counts all signs; bounds and estimate belong to it."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.timing.signed_rank import (
    hodges_lehmann,
    holm,
    least_pairs,
    lower_bound,
    signed_rank_p,
    upper_bound,
)

few = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9)
LEVEL = 0.05


def every_sign(differences: list[float]) -> float:
    """The definition: the share of all choices of signs whose sum of ranks is at least that of these."""
    sizes = np.abs(differences)
    ranks = [float(np.mean(np.flatnonzero(np.sort(sizes) == size))) + 1 for size in sizes]
    ranks = [0.0 if each == 0 else rank for each, rank in zip(differences, ranks, strict=True)]
    observed = sum(rank for each, rank in zip(differences, ranks, strict=True) if each > 0)
    sums = [
        sum(rank for sign, rank in zip(signs, ranks, strict=True) if sign) for signs in _signs(len(ranks))
    ]
    return sum(one >= observed for one in sums) / len(sums)


def _signs(count: int) -> list[tuple[bool, ...]]:
    return list(product((False, True), repeat=count))


@given(few)
@settings(max_examples=40, deadline=None)
def test_it_is_the_share_of_all_signs_with_ties_and_zeros(differences: list[float]) -> None:
    assert signed_rank_p(differences) == pytest.approx(every_sign(differences))


def test_without_differences_nothing_is_shown() -> None:
    assert signed_rank_p([]) == 1.0
    assert signed_rank_p([0.0, 0.0]) == 1.0


@given(st.integers(0, 10_000), st.integers(5, 14))
@settings(max_examples=40, deadline=None)
def test_the_lower_bound_is_above_nothing_just_where_the_test_rejects(seed: int, count: int) -> None:
    differences = np.random.default_rng(seed).normal(0.5, 1, count).tolist()
    assert (lower_bound(differences, LEVEL) > 0) == (signed_rank_p(differences) <= LEVEL)
    assert upper_bound(differences, LEVEL) == -lower_bound([-each for each in differences], LEVEL)
    assert lower_bound(differences, LEVEL) <= hodges_lehmann(differences) <= upper_bound(differences, LEVEL)


def test_too_few_pairs_bound_nothing() -> None:
    assert least_pairs(0.005) == 8
    assert lower_bound([1.0] * 7, 0.005) == -math.inf
    assert lower_bound([1.0] * 8, 0.005) == 1.0
    assert lower_bound([], 0.005) == -math.inf


def test_one_wild_pair_does_not_move_the_estimate() -> None:
    assert hodges_lehmann([1.0, 1.1, 0.9, 1.0, 1.05, 50.0]) == pytest.approx(1.0, abs=0.1)


def test_holm_stops_at_the_first_that_is_not_rejected() -> None:
    assert holm({"a": 0.002, "b": 0.004, "c": 0.02, "d": 0.9}, 0.01) == {"a"}
    assert holm({"a": 0.002, "b": 0.003, "c": 0.005, "d": 0.9}, 0.01) == {"a", "b", "c"}
    assert holm({}, 0.01) == frozenset()
