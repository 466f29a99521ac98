"""Student's t and trigamma against published values; discoveries against the example of their inventors."""

import math
import statistics

import pytest

from harness.core.timing.student import critical, discoveries, survival, trigamma, trigamma_inverse


@pytest.mark.parametrize(
    ("probability", "degrees", "t"),
    [
        (0.25, 1, 1.0),
        (0.025, 1, 12.706),
        (0.025, 10, 2.228),
        (0.005, 19, 2.861),
        (0.05, 30, 1.697),
        (0.001, 120, 3.160),
    ],
)
def test_the_table_of_student(probability: float, degrees: float, t: float) -> None:
    assert survival(t, degrees) == pytest.approx(probability, rel=2e-3)
    assert survival(-t, degrees) == pytest.approx(1 - probability, rel=2e-3)
    assert critical(probability, degrees) == pytest.approx(t, rel=1e-3)


def test_with_many_degrees_it_is_the_normal_distribution() -> None:
    for t in (0.0, 0.5, 1.5, 3.0, 4.5):
        assert survival(t, 1e7) == pytest.approx(1 - statistics.NormalDist().cdf(t), rel=1e-4)
    assert (survival(float("inf"), 3), survival(-float("inf"), 3)) == (0.0, 1.0)


def test_trigamma_is_the_variance_of_a_logarithm() -> None:
    assert trigamma(1.0) == pytest.approx(math.pi**2 / 6, rel=1e-9)
    assert trigamma(0.5) == pytest.approx(math.pi**2 / 2, rel=1e-9)
    assert trigamma(1e5) == pytest.approx(1e-5, rel=1e-4)
    for x in (0.01, 0.5, 4.5, 100.0, 1e5):
        assert trigamma_inverse(trigamma(x)) == pytest.approx(x, rel=1e-6)


def test_the_example_of_benjamini_and_hochberg() -> None:
    """Section 4.1 of the article: fifteen p-values, of which four are discoveries at 0.05."""
    p_values = (
        *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
        *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
    )
    found = discoveries({str(at): p for at, p in enumerate(p_values)}, 0.05)
    assert found == {"0", "1", "2", "3"}
    assert discoveries({}, 0.05) == frozenset()
