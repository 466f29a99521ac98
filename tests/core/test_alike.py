"""What is usual among elements of like magnitude."""

import numpy as np
import pytest

from harness.core.comparison.alike import usual
from harness.core.values.value import Array

ALL = np.ones(4, np.bool_)


def test_only_elements_of_like_magnitude_count() -> None:
    sizes, numbers = np.array([1.0, 1.5, 2.0, 1e6]), np.array([1.0, 2.0, 3.0, 50.0])
    assert usual(sizes, numbers, ALL, 0.5).tolist() == [2.0, 2.0, 2.0, 50.0]


def test_where_none_counts_nothing_is_usual() -> None:
    sizes, numbers = np.array([1.0, 1.5, 1e6, 1e-300]), np.array([1.0, 2.0, 3.0, 4.0])
    assert usual(sizes, numbers, np.array([True, True, False, False]), 0.0).tolist() == [1.0, 1.0, 0.0, 0.0]
    assert not usual(sizes, numbers, ~ALL, 0.5).any()


def test_zeros_are_like_the_smallest_others() -> None:
    sizes = np.array([0.0, *np.linspace(1e-3, 1, 32)])
    numbers = np.array([0.0, 5.0, 7.0, *np.full(30, 100.0)])
    assert usual(sizes, numbers, sizes > 0, 0.5)[0] == 6.0
    zeros = np.zeros(3)
    assert usual(zeros, np.array([1.0, 2.0, 3.0]), zeros == 0, 0.5).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("sizes", [np.zeros(0), np.array([5e-324, 1e308])])
def test_any_sizes_will_do(sizes: Array) -> None:
    assert usual(sizes, sizes, sizes >= 0, 0.5).shape == sizes.shape
