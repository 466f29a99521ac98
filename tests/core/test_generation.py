"""Figures about generated text, position by position."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.core.comparison.noise_limits import rms_limit
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance
from harness.core.values.value import tensor
from harness.core.verdicts.position_comparison import (
    ComparedPositions,
    agreement,
    bad_positions,
    divergence,
    perplexity,
    positions_of,
    rms_of_worst,
    worst_position,
)

ROWS, POSITIONS, VOCABULARY = 2, 6, 32
BY_NOISE = Policy(judge_by="noise")
LOGITS = hnp.arrays(
    np.float32, (ROWS, POSITIONS, VOCABULARY), elements=st.floats(-30, 30, width=32, allow_subnormal=False)
)


def drawn(seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 4, (ROWS, POSITIONS, VOCABULARY)).astype(np.float32)


def compared(golden: Any, actual: Any, spread: float | None = 1e-3) -> ComparedPositions:
    noise = None if spread is None else np.full(golden.shape, spread)
    found = positions_of(tensor(golden), tensor(actual), noise, 1)
    assert found is not None
    return found


@given(LOGITS)
def test_equal_logits_are_at_no_distance(logits: Any) -> None:
    assert divergence(tensor(logits), tensor(logits.copy())) == (0.0,) * POSITIONS
    assert not bad_positions(compared(logits, logits), BY_NOISE).any()
    assert worst_position(compared(logits, logits), BY_NOISE) is None
    assert rms_of_worst(compared(logits, logits), BY_NOISE) == 0.0


@given(LOGITS, LOGITS)
def test_divergence_is_that_of_the_definition(golden: Any, actual: Any) -> None:
    def probabilities(logits: Any) -> Any:
        raised = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
        return raised / raised.sum(axis=-1, keepdims=True)

    p, q = probabilities(golden), probabilities(actual)
    with np.errstate(all="ignore"):
        wanted = np.where(p > 0, p * np.log(p / q), 0.0).sum(axis=-1).max(axis=0)
    found = divergence(tensor(golden), tensor(actual))
    assert all(one is not None and one >= 0 for one in found)
    assert np.allclose(np.array(found, float), np.maximum(wanted, 0), rtol=1e-4, atol=1e-6)


@given(LOGITS, st.floats(-100, 100))
def test_a_constant_added_to_all_logits_changes_no_distribution(logits: Any, shift: float) -> None:
    shifted = (logits.astype(np.float64) + shift).astype(np.float64)
    found = divergence(tensor(logits.astype(np.float64)), tensor(shifted))
    assert np.allclose(np.array(found, float), 0, atol=1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_position_that_is_not_finite_has_no_divergence_and_fails(value: float) -> None:
    golden, actual = drawn(), drawn()
    actual[1, 3:, 5] = value
    assert [one is None for one in divergence(tensor(golden), tensor(actual))] == [False] * 3 + [True] * 3
    assert list(np.flatnonzero(bad_positions(compared(golden, actual), BY_NOISE))) == [3, 4, 5]


def test_a_token_that_the_golden_excludes_adds_nothing() -> None:
    golden = drawn()
    golden[:, :, 3] = -np.inf
    found = divergence(tensor(golden), tensor(np.where(golden == -np.inf, -1e9, golden)))
    assert found == (0.0,) * POSITIONS


@given(st.integers(0, POSITIONS - 1), st.floats(8.0, 20.0), st.integers(0, 9))
def test_one_bad_position_among_many_fails_where_a_norm_over_all_would_not(
    position: int, multiple: float, seed: int
) -> None:
    golden = drawn().astype(np.float64)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], golden.shape[::2])
    actual = golden.copy()
    actual[:, position] += multiple * 1e-3 * signs
    part = compared(golden, actual)
    assert list(np.flatnonzero(bad_positions(part, BY_NOISE))) == [position]
    assert rms_of_worst(part, BY_NOISE) > rms_limit(BY_NOISE.limits, golden.size)
    assert worst_position(part, BY_NOISE) == position


@given(st.integers(0, 99), st.floats(0.0, 2.0))
def test_the_models_own_noise_is_no_fault(seed: int, size: float) -> None:
    golden = drawn().astype(np.float64)
    noise = np.random.default_rng(seed).normal(0, size * 1e-3, golden.shape)
    part = compared(golden, golden + noise)
    assert not bad_positions(part, BY_NOISE).any()
    assert rms_of_worst(part, BY_NOISE) <= rms_limit(BY_NOISE.limits, golden.size)


def test_what_fails_follows_from_the_policy() -> None:
    golden = drawn().astype(np.float64)
    actual = golden.copy()
    actual[:, 2] += 0.5
    exact = Tolerance(rtol=0.0, atol=1e-3)
    wide = Tolerance(rtol=0.0, atol=1.0)
    for policy, spread, fails in [
        (Policy(judge_by="table", fixed=exact), 1e-3, True),
        (Policy(judge_by="table", fixed=wide), 1e-3, False),
        (Policy(judge_by="noise", fixed=wide), 1e-3, True),
        (Policy(judge_by="noise", fixed=exact), 10.0, False),
        (Policy(judge_by="both", fixed=wide), 1e-3, False),
        (Policy(judge_by="both", fixed=exact), 1e-3, True),
        (Policy(judge_by="both", fixed=exact), 10.0, False),
        (Policy(judge_by="noise", fixed=exact), None, True),
        (Policy(judge_by="noise", fixed=wide), None, False),
    ]:
        found = bad_positions(compared(golden, actual, spread), policy)
        assert list(np.flatnonzero(found)) == ([2] if fails else [])


def test_tokens_agree_where_the_margin_exceeds_the_noise() -> None:
    golden = np.zeros((1, 4, 12))
    golden[0, :, :11] = np.arange(11, 0, -1)  # margins of 1 between all
    golden[0, 3, :2] = 20.0, 20.0001  # but none at the last position
    actual = golden.copy()
    actual[0, 0, :2] = actual[0, 0, 1::-1]  # the first two change places
    actual[0, 3, :2] = actual[0, 3, 1::-1]
    part = compared(golden, actual, 1e-2)
    assert agreement(part, 1, 1) == pytest.approx(2 / 3, abs=1e-5)
    assert agreement(part, 1, 5) == agreement(part, 1, 10) == 1.0
    assert agreement(part, 1, 12) is None
    assert agreement(compared(golden, actual, 100.0), 1, 1) is None


def test_nan_agrees_with_nothing_by_chance() -> None:
    golden = np.tile(np.arange(12.0), (1, 4, 1))
    assert agreement(compared(golden, np.full_like(golden, np.nan), 1e-6), 1, 1) == 0.0


def test_perplexity_of_a_uniform_distribution_is_its_size() -> None:
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (ROWS, POSITIONS))
    assert perplexity(tensor(np.ones((ROWS, POSITIONS, VOCABULARY))), tokens) == VOCABULARY
    sure = np.full((ROWS, POSITIONS, VOCABULARY), -100.0)
    for row in range(ROWS):
        for position in range(POSITIONS - 1):
            sure[row, position, tokens[row, position + 1]] = 100.0
    assert perplexity(tensor(sure), tokens) == 1.0
    assert perplexity(tensor(np.full_like(sure, np.nan)), tokens) is None
    assert perplexity(tensor(sure[:, :1]), tokens[:, :1]) is None


def test_other_shapes_are_not_compared_by_position() -> None:
    assert positions_of(tensor(np.zeros((1, 2, 3))), tensor(np.zeros((1, 3, 3))), None, 1) is None
    assert positions_of(tensor(np.zeros(3)), tensor(np.zeros(3)), None, 1) is None


def test_an_output_without_elements_has_no_bad_position() -> None:
    part = compared(np.zeros((1, 3, 0)), np.zeros((1, 3, 0)))
    assert bad_positions(part, BY_NOISE).tolist() == [False] * 3
