"""Limits of a bundle: between what rounding does and what is wrong."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.annex.triage.distance import distance, why_wrong
from harness.annex.triage.hand_over import OF_ERROR, allowed_distances, limits_for_others
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.values.value import Sequence, tensor

RIGHT = np.linspace(1, 2, 16, dtype=np.float32)


def row(
    name: str = "y", *, rms: float | None = 1000.0, mismatched: int = 3, largest: float = 0
) -> OutputMetrics:
    noise = None if rms is None else Noise(precision="float32", rms=rms, max=largest or rms)
    return OutputMetrics(name=name, dtype="float32", shape=(16,), mismatched=mismatched, noise=noise)


def limits(rows: Any, expected: Any, found: Any) -> dict[str, float]:
    return dict(allowed_distances(tuple(rows), tuple(expected), tuple(found)))


@given(st.floats(4.0, 1e8), st.floats(1e-5, 10.0))
def test_a_limit_has_the_same_room_to_noise_and_to_the_error(rms: float, error: float) -> None:
    expected, found = tensor(RIGHT), tensor((RIGHT * (1 + error)).astype(np.float32))
    limit = limits([row(rms=rms)], [("y", expected)], [("y", found)])["y"]
    apart = distance(expected, found)
    noise = apart / rms
    assert limit / noise == pytest.approx(apart / limit)
    assert noise < limit < apart
    assert why_wrong(expected, found, limit)
    assert not why_wrong(expected, expected, limit)


@pytest.mark.parametrize("rms", [0.0, 0.5, 1.0, 3.9])
def test_an_error_that_is_no_larger_than_noise_has_half_of_it_as_limit(rms: float) -> None:
    expected, found = tensor(RIGHT), tensor(RIGHT + np.float32(1))
    limit = limits([row(rms=rms)], [("y", expected)], [("y", found)])["y"]
    assert limit == pytest.approx(distance(expected, found) / 2)


def test_without_known_noise_it_is_a_share_of_the_error() -> None:
    expected, found = tensor(RIGHT), tensor(RIGHT + np.float32(1))
    limit = limits([row(rms=None)], [("y", expected)], [("y", found)])["y"]
    assert limit == pytest.approx(distance(expected, found) * OF_ERROR)


def test_expected_zeros_have_a_limit_that_shows_the_fault() -> None:
    expected, found = tensor(np.zeros(16, np.float32)), tensor(RIGHT)
    limit = limits([row()], [("y", expected)], [("y", found)])["y"]
    assert math.isfinite(limit)
    assert why_wrong(expected, found, limit)
    assert not why_wrong(expected, expected, limit)


def test_right_outputs_have_none() -> None:
    rows = [row("a", mismatched=0, rms=0.5), row("b")]
    values = [("a", tensor(RIGHT)), ("b", tensor(RIGHT))]
    found = [("a", tensor(RIGHT)), ("b", tensor(RIGHT + np.float32(1)))]
    assert set(limits(rows, values, found)) == {"b"}


def test_an_output_far_above_its_noise_has_one_though_its_tolerance_passes() -> None:
    values, found = [("y", tensor(RIGHT))], [("y", tensor(RIGHT + np.float32(1e-4)))]
    assert limits([row(mismatched=0, rms=1000.0)], values, found)
    assert not limits([row(mismatched=0, rms=0.1, largest=0.9)], values, found)


@pytest.mark.parametrize(
    "found",
    [
        tensor(RIGHT.astype(np.float64)),
        tensor(RIGHT[:8]),
        Sequence(items=()),
    ],
    ids=["type", "shape", "structure"],
)
def test_what_has_another_form_needs_no_limit(found: Any) -> None:
    assert limits([row()], [("y", tensor(RIGHT))], [("y", found)]) == {}


def test_without_found_outputs_or_rows_there_is_none() -> None:
    assert limits([row()], [("y", tensor(RIGHT))], []) == {}
    assert limits([], [("y", tensor(RIGHT))], [("y", tensor(RIGHT + np.float32(1)))]) == {}


def test_of_a_sequence_the_smallest_limit_of_a_wrong_item_counts() -> None:
    expected = Sequence(items=(tensor(RIGHT), tensor(RIGHT), tensor(RIGHT)))
    found = Sequence(items=(tensor(RIGHT), tensor(RIGHT + np.float32(1)), tensor(RIGHT + np.float32(0.1))))
    rows = [row("y[0]", mismatched=0, rms=0.1), row("y[1]", rms=100.0), row("y[2]", rms=100.0)]
    limit = limits(rows, [("y", expected)], [("y", found)])["y"]
    assert limit == pytest.approx(distance(tensor(RIGHT), tensor(RIGHT + np.float32(0.1))) / 10)


def test_what_is_wrong_for_other_inputs_has_a_limit_between_its_error_and_the_noise() -> None:
    def other(name: str, bits: float, wrong: int = 3, noise: Noise | None = None) -> OutputMetrics:
        return OutputMetrics(
            name=name, dtype="float32", shape=(16,), mismatched=wrong, delivered_bits=bits, noise=noise
        )

    rows = (
        other("lost", 0.0),
        other("far", -3.0),
        other("right", 20.0, wrong=0),
        other("off by a quarter", 2.0),
        other("far above its noise", 2.0, noise=Noise(precision="float32", rms=100.0, max=400.0)),
        other("found by noise", 10.0, wrong=0, noise=Noise(precision="float32", rms=100.0, max=400.0)),
    )
    assert dict(limits_for_others(rows)) == {
        "lost": OF_ERROR,
        "far": OF_ERROR,
        "off by a quarter": pytest.approx(0.25 * OF_ERROR),
        "far above its noise": pytest.approx(0.25 / 10),
        "found by noise": pytest.approx(2.0**-10 / 10),
    }
