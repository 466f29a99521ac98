"""The size of an effect, and the noise that it is measured by."""

import math

import numpy as np
import pytest

from benchmarks.detection.effect import ROUNDOFF, effect, equal, noise
from harness.core.values.value import Array, NamedValues, tensor

ONES = np.ones(4, np.float32)


def outputs(**arrays: Array) -> NamedValues:
    return tuple((name, tensor(array)) for name, array in arrays.items())


def test_noise_is_the_rms_over_results_that_differ() -> None:
    healthy = [outputs(y=ONES), outputs(y=ONES + np.float32(2**-10)), outputs(y=ONES - np.float32(2**-10))]
    assert noise(outputs(y=ONES), healthy, "float32") == {"y": 2**-10}


def test_without_a_difference_the_resolution_is_the_noise() -> None:
    assert noise(outputs(y=2 * ONES), [outputs(y=2 * ONES)], "float16") == {"y": 2 * ROUNDOFF["float16"]}


def test_integers_have_no_noise() -> None:
    assert noise(outputs(k=np.arange(3)), [outputs(k=np.arange(3) + 1)], "float32") == {}


def test_effect_is_the_largest_over_the_outputs() -> None:
    golden, result = outputs(y=ONES, z=ONES), outputs(y=ONES + 1, z=ONES + 2)
    assert effect(golden, result, {"y": 0.25, "z": 1.0}) == pytest.approx(4.0)
    assert effect(golden, golden, {"y": 0.25, "z": 1.0}) == 0.0


def test_nan_in_the_same_place_is_no_effect() -> None:
    golden = outputs(y=np.array([1, np.nan, np.inf], np.float32))
    assert effect(golden, golden, {"y": 1.0}) == 0.0


@pytest.mark.parametrize(
    "other",
    [
        {"y": np.ones(5, np.float32)},
        {"y": np.ones(4, np.float64)},
        {"y": np.array([1, 1, 1, np.nan], np.float32)},
        {"y": np.array([1, 1, 1, np.inf], np.float32)},
        {"z": ONES},
    ],
)
def test_what_has_no_noise_has_no_measure(other: dict[str, Array]) -> None:
    assert effect(outputs(y=ONES), outputs(**other), {"y": 1.0}) == math.inf


def test_integers_that_differ_have_no_measure() -> None:
    assert effect(outputs(k=np.arange(3)), outputs(k=np.arange(3) + 1), {}) == math.inf


def test_equal_means_every_bit() -> None:
    zero = np.zeros(1, np.float32)
    assert equal(outputs(y=zero), outputs(y=zero))
    assert not equal(outputs(y=zero), outputs(y=-zero))
    assert not equal(outputs(y=zero), outputs(z=zero))
