"""Messages about outputs: counts that add up, and names of bounded length."""

import numpy as np
import pytest

from harness.core.comparison import wording
from harness.core.comparison.metrics import measure_error
from harness.core.comparison.tolerance import Tolerance
from harness.core.values.value import tensor


def shown(length: int) -> str:
    """A name of so many letters as a message shows it."""
    return wording.other_names(["x" * length], []).removeprefix("outputs missing: ")


def test_a_name_is_cut_to_the_length_of_the_longest_whole_one() -> None:
    whole = [length for length in range(1, 400) if "…" not in shown(length)]
    assert whole == list(range(1, len(whole) + 1))
    assert 40 < len(whole) < 200
    cut = shown(len(whole) + 1)
    assert cut.endswith("…")
    assert len(cut) == len(shown(5000)) == len(shown(whole[-1]))


@pytest.mark.parametrize("swapped", [False, True])
def test_nan_and_infinities_are_counted_on_either_side(*, swapped: bool) -> None:
    one = tensor(np.array([1.0, np.nan, np.inf, -np.inf, 0.0, 2.0], np.float32))
    other = tensor(np.array([1.0, 2.0, np.inf, 3.0, 0.0, 2.0], np.float32))
    golden, actual = (other, one) if swapped else (one, other)
    message = wording.special_values(
        "y", golden, actual, measure_error(golden, actual, Tolerance(1e-3, 1e-3))
    )
    sides = ["NaN: got 0, golden 1", "infinities: got 1, golden 2"]
    if swapped:
        sides = ["NaN: got 1, golden 0", "infinities: got 2, golden 1"]
    assert all(side in message for side in sides), message
    assert "2 of 6" in message
