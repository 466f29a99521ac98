"""Inputs that a provider has written into."""

import numpy as np
import pytest

from harness.agent.input_guard import WHOLE_BYTES, Fed


def test_what_stays_is_not_told() -> None:
    feeds = {"x": np.ones(4, np.float32), "s": np.array(["a"], object), "none": None, "list": [np.ones(2)]}
    assert Fed(feeds).overwritten() == ""
    assert Fed({"empty": np.ones((0, 3)), "scalar": np.float32(1) * np.ones(())}).overwritten() == ""


def test_one_byte_of_a_small_input_is_enough() -> None:
    x, y = np.zeros(WHOLE_BYTES, np.uint8), np.zeros(3, bool)
    fed = Fed({"x": x, "y": y})
    x[-1] = 1
    assert fed.overwritten() == "it wrote into the input x"
    y[1] = True
    assert fed.overwritten() == "it wrote into the inputs x, y"


@pytest.mark.parametrize(
    "at", [slice(None), slice(-1, None), slice(0, 1), slice(1 << 20, (1 << 20) + 200_000)]
)
def test_what_computes_in_place_of_a_large_input_is_told(at: slice) -> None:
    x = np.zeros((1 << 10, 1 << 11), np.uint8)
    fed = Fed({"x": x})
    x.reshape(-1)[at] = 7
    assert fed.overwritten() == "it wrote into the input x"
