"""Which outputs the noise of a single run takes most of."""

import numpy as np
import pytest

from harness.core.comparison.metrics import LARGEST_FLOAT64
from harness.core.noise.rounding_loss import lost_of
from harness.core.noise.spread import PROBES, spread_of
from harness.core.values.value import Array, NamedValues, tensor

DRAWS = 4
LEVELS = (0.0, *(16.0,) * 8, *(1.0,) * DRAWS)


def named(array: Array) -> NamedValues:
    return (("y", tensor(array)),)


def lost(golden: Array, draws: list[Array], quiet: Array | None = None) -> dict[str, float]:
    """Return what noise takes, if the draws at amplitude 1 are these and the amplified ones are ruined."""
    silent = golden if quiet is None else quiet
    ruined = [named(np.full_like(golden, 100))] * LEVELS.count(16.0)
    return lost_of(named(golden), [named(silent), *ruined, *map(named, draws)], LEVELS)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_noise_of_half_the_size_takes_an_output_and_less_does_not(dtype: type) -> None:
    golden: Array = np.full(100, 1e-3, dtype)
    signs = np.where(np.arange(100) % 2, 1, -1)
    for part, found in ((30.0, 30.0), (0.6, 0.6), (0.4, None)):
        draws: list[Array] = [(golden + signs * part * 1e-3).astype(dtype)] * 4
        assert lost(golden, draws).get("y") == (found and pytest.approx(found, rel=0.01))


def test_the_golden_itself_may_be_one_of_the_answers() -> None:
    golden, quiet = np.array([1.0, 0.0, 0.0]), np.array([1 / 3, 1 / 3, 1 / 3])
    draws = [np.roll(golden, shift) for shift in (0, 1, 2, 1)]
    assert lost(golden, draws, quiet)["y"] == pytest.approx(0.82, abs=0.01)


def test_what_becomes_nan_or_infinite_in_most_draws_is_lost() -> None:
    golden = np.ones(10)
    infinite, half = np.full(10, np.inf), np.where(np.arange(10) < 3, np.nan, 1.0)
    assert lost(golden, [infinite] * 4) == {"y": LARGEST_FLOAT64}
    assert lost(golden, [half] * 4) == {}
    assert lost(np.full(3, np.nan), [np.full(3, np.nan)] * 4) == {}


def test_of_integers_the_share_that_changes_counts() -> None:
    golden = np.arange(10)
    assert lost(golden, [golden + 1] * 3 + [golden]) == {"y": 0.75}
    assert lost(golden, [golden, golden, golden, golden + 1]) == {}


def test_an_output_that_changes_its_shape_in_most_draws_is_lost() -> None:
    golden = np.ones(3)
    assert lost(golden, [np.ones(2)] * 3 + [golden]) == {"y": LARGEST_FLOAT64}
    assert lost(golden, [np.ones(2)] * 2 + [golden] * 2) == {}
    assert lost(np.ones(0), [np.ones(0)] * 4) == {}


def test_zeros_have_no_digits_to_lose() -> None:
    assert lost(np.zeros(3), [np.full(3, 1e-9)] * 4) == {}
    assert lost(np.zeros(3), [np.zeros(3)] * 4) == {}


def test_a_spread_says_so_for_each_data_set_even_where_it_has_no_array() -> None:
    golden = np.full(100, 1e-3)
    far, near = golden * np.linspace(-50, 50, 100), golden * 1.001
    levels = (0.0, *(16.0,) * 8, *(1.0,) * PROBES)
    samples = [one for drawn in (far, near) for one in (golden, *[drawn] * (8 + PROBES))]
    found = spread_of([named(golden)] * 2, [named(one) for one in samples], levels * 2, "bfloat16")
    assert found.lost[0]["y"] == pytest.approx(29, rel=0.05)
    assert "y" not in found.outputs[0]
    assert found.lost[1] == {}
