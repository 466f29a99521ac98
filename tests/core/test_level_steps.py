"""A step of a series is found where it is; noise, a bad night and an uncertain one are none."""

import numpy as np
import pytest

from harness.core.timing.level_steps import FEWEST_POINTS, level_steps

NIGHTS = 30


def noise(seed: int, spread: float = 0.03) -> np.ndarray:
    """Nights of one level, with a heavy tail."""
    made: np.ndarray = np.random.default_rng(seed).standard_t(3, NIGHTS) * spread / 3**0.5
    return made


def test_a_tenth_more_is_found_at_its_night() -> None:
    series = noise(1)
    series[20:] += 0.1
    (step,) = level_steps(series, [0.005] * NIGHTS)
    assert step.at == 20
    assert step.change == pytest.approx(0.1, abs=0.03)
    assert 0 < step.error < 0.02
    assert step.p <= 0.001
    assert level_steps(series, [0.005] * NIGHTS) == (step,)


def test_up_and_down_again_are_two_steps() -> None:
    series = noise(2, 0.01)
    series[10:20] += 0.2
    assert [step.at for step in level_steps(series, [0.0] * NIGHTS)] == [10, 20]


def test_equal_nights_have_no_step() -> None:
    assert [seed for seed in range(10) if level_steps(noise(seed), [0.005] * NIGHTS)] == []
    assert level_steps([1.0] * NIGHTS, [0.0] * NIGHTS) == ()


def test_one_night_alone_is_no_step_however_far_it_is() -> None:
    series = noise(3)
    series[-1] += 5
    assert level_steps(series, [0.0] * NIGHTS) == ()


def test_uncertain_nights_count_less() -> None:
    """A step among wild nights is found if these are known to be uncertain."""
    series, errors = noise(4, 0.005), np.full(NIGHTS, 0.005)
    series[15:] += 0.06
    wild = [3, 8, 12, 18, 22, 27]
    series[wild] += [0.5, -0.4, 0.6, -0.5, 0.4, -0.6]
    errors[wild] = 0.5
    assert [step.at for step in level_steps(series, errors)] == [15]
    assert level_steps(series, [0.005] * NIGHTS) == ()


def test_too_few_nights_say_nothing() -> None:
    assert level_steps([], []) == ()
    assert level_steps([0.0] * (FEWEST_POINTS - 1), [0.0] * (FEWEST_POINTS - 1)) == ()
    assert level_steps([0.0, 0.0, 1.0, 1.0], [0.0] * 4) == ()
