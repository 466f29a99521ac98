"""A slower provider is found; noise of the machine is not reported as a slower provider."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from harness.core.timing.latency import Latency
from harness.report.changes.latency_change import (
    FEWEST_SAMPLES,
    FLOOR,
    latency_change,
    latency_changes,
    unlike,
)
from tests import kit

Times = NDArray[np.float64]

times = st.lists(st.floats(0.1, 1e5), min_size=FEWEST_SAMPLES, max_size=60)
OPPOSITE = {"slower": "faster", "faster": "slower", "same": "same", "unclear": "unclear"}


def latency(samples_ms: Sequence[float] | Times, **changes: Any) -> Latency:
    return kit.latency(*samples_ms, **{"stopped_by": "repeats", "waiting_threads": 0.0, **changes})


def measured(
    generator: np.random.Generator, ms: float = 10.0, runs: int = 100, spread: float = 0.03
) -> Times:
    """Times as machines give them: a floor, a tail, a slow drift, and now and then an interruption."""
    drift = np.convolve(generator.normal(0, 1, runs + 19), np.ones(20) / 20, mode="valid") * spread
    tail = generator.exponential(spread, runs)
    interruptions = (generator.random(runs) < 0.03) * generator.uniform(0.1, 2.0, runs)
    return ms * (1 + np.abs(drift) + tail + interruptions)


@given(times)
@settings(max_examples=30, deadline=None)
def test_nothing_changed_where_nothing_changed(samples_ms: list[float]) -> None:
    change = latency_change([latency(samples_ms)], [latency(samples_ms)])
    assert change.verdict == ("same" if change.high is not None and change.high < 1.5 else "unclear")
    assert change.ratio == 1.0
    assert not change.may_be_slower


@given(times, times)
@settings(max_examples=30, deadline=None)
def test_what_is_slower_one_way_is_faster_the_other_way(before: list[float], after: list[float]) -> None:
    there = latency_change([latency(before)], [latency(after)])
    back = latency_change([latency(after)], [latency(before)])
    assert back.verdict == OPPOSITE[there.verdict]
    assert there.low is not None
    assert back.high == pytest.approx(1 / there.low)


@given(times, st.floats(0.5, 2.0))
@settings(max_examples=30, deadline=None)
def test_the_ratio_is_within_its_interval_and_no_verdict_goes_against_it(
    samples_ms: list[float], factor: float
) -> None:
    change = latency_change([latency(samples_ms)], [latency([ms * factor for ms in samples_ms])])
    assert change.ratio == pytest.approx(factor, rel=1e-3)
    assert change.low is not None
    assert change.high is not None
    assert change.low <= change.high
    if change.verdict == "slower":
        assert change.low > 1 + FLOOR
    if change.verdict == "faster":
        assert change.high < 1 / (1 + FLOOR)


def test_two_measurements_of_the_same_thing_are_never_called_a_change() -> None:
    generator = np.random.default_rng(1)
    found = [
        latency_change([latency(measured(generator))], [latency(measured(generator))]).verdict
        for _ in range(200)
    ]
    assert {"slower", "faster"}.isdisjoint(found)
    assert found.count("same") > 100


@pytest.mark.parametrize("runs", [30, 100, 1000])
def test_a_slower_provider_is_found(runs: int) -> None:
    generator = np.random.default_rng(2)
    found = [
        latency_change(
            [latency(measured(generator, runs=runs))], [latency(measured(generator, 13.0, runs))]
        ).verdict
        for _ in range(40)
    ]
    assert found.count("slower") >= 38
    assert "faster" not in found
    assert "same" not in found


def test_a_change_of_no_interest_is_none() -> None:
    generator = np.random.default_rng(3)
    before, after = measured(generator, spread=0.002), measured(generator, ms=10.2, spread=0.002)
    change = latency_change([latency(before)], [latency(after)])
    assert change.verdict == "same"
    tiny = latency_change([latency(before / 1000)], [latency(before / 1000 + 0.005)])
    assert tiny.ratio is not None
    assert tiny.ratio > 1.3
    assert tiny.verdict == "same"


def test_a_neighbour_that_takes_the_machine_now_and_then_is_no_regression() -> None:
    generator = np.random.default_rng(4)
    before = measured(generator)
    after = measured(generator)
    after[30:90] *= 1.8  # the median moves, the fastest runs do not
    change = latency_change([latency(before)], [latency(after)])
    assert change.ratio is not None
    assert change.ratio > 1.3
    assert change.verdict == "unclear"
    assert "times in the fastest runs" in change.reason


def test_a_machine_that_was_busy_all_the_time_explains_a_slower_run() -> None:
    generator = np.random.default_rng(5)
    quiet, busy = measured(generator), measured(generator, 18.0)
    change = latency_change([latency(quiet)], [latency(busy, waiting_threads=0.5)])
    assert change.verdict == "unclear"
    assert change.reason.endswith(", but something else wanted the processors now")
    # Slower although it was the baseline that was disturbed: that is no excuse.
    assert latency_change([latency(quiet, waiting_threads=0.5)], [latency(busy)]).verdict == "slower"
    both = {"waiting_threads": 0.5}
    assert latency_change([latency(quiet, **both)], [latency(busy, **both)]).verdict == "unclear"
    assert latency_change([latency(busy, **both)], [latency(quiet)]).verdict == "unclear"
    assert latency_change([latency(quiet)], [latency(busy, waiting_threads=None)]).verdict == "slower"


def test_several_runs_before_show_how_far_runs_differ() -> None:
    generator = np.random.default_rng(6)
    runs = [latency(measured(generator, ms, spread=0.005)) for ms in (10.0, 11.6, 10.3, 11.2)]
    after = [latency(measured(generator, 11.5, spread=0.005))]
    assert latency_change(runs[:1], after).verdict == "slower"
    assert latency_change(runs, after).verdict == "same"


def nights(generator: np.random.Generator, count: int, cells: int, by: float = 0.0) -> list[list[Latency]]:
    """For each cell, its latency in so many nights, which differ by 3 % from night to night."""
    return [
        [
            latency(measured(generator, 10.0 * (1 + by) * np.exp(generator.normal(0, 0.03)), 30, 0.01))
            for _ in range(count)
        ]
        for _ in range(cells)
    ]


def test_with_ten_nights_before_equal_cells_stay_and_slower_ones_are_found() -> None:
    """``benchmarks/night_to_night.py`` simulates more of it."""
    generator = np.random.default_rng(7)
    slowed = 20
    before = nights(generator, 10, 60)
    after = nights(generator, 1, slowed, by=0.15) + nights(generator, 1, 60 - slowed)
    changes = list(latency_changes({str(at): pair for at, pair in enumerate(zip(before, after))}).values())  # noqa: B905
    told = [change.verdict == "slower" for change in changes]
    assert sum(told[:slowed]) >= 0.9 * slowed
    assert sum(told[slowed:]) <= 1
    assert 1.1 < float(np.median([change.promise for change in changes])) < 1.16
    # One night before promises less, and claims nothing that it cannot know.
    alone = latency_changes({str(at): (its[:1], new) for at, (its, new) in enumerate(zip(before, after))})  # noqa: B905
    assert sum(alone[str(at)].verdict == "slower" for at in range(slowed, 60)) <= 1
    assert 1.2 < float(np.median([one.promise for one in alone.values()])) < 1.25


def test_as_far_as_cells_vary_alike_they_tell_of_each_other() -> None:
    """One of many is found sooner if all vary alike; if they do not, a noisy one has its own noise."""
    generator = np.random.default_rng(11)
    promised = []
    for spreads in (0.03, np.where(np.arange(60) % 2, 0.10, 0.01)):
        factors = np.exp(generator.normal(0, 1, (11, 60)) * spreads)
        cells = [[latency(measured(generator, 10.0 * each, 10, 0.002)) for each in of] for of in factors.T]
        found = latency_changes({str(at): (its[:10], its[10:]) for at, its in enumerate(cells)})
        alone = [one.promise_alone or 0.0 for one in found.values()]
        promised.append((float(np.median(alone[::2])), float(np.median(alone[1::2]))))
    assert max(promised[0]) < 1.16
    assert promised[1][0] < 1.2
    assert promised[1][1] > 1.7


def test_cells_that_a_night_moves_together_tell_less_about_nights() -> None:
    """Quiet nights promise more than the usual ones, if there are many observations of them."""
    generator = np.random.default_rng(10)
    promised = []
    for together in (True, False):
        factors = np.exp(generator.normal(0, 0.003, (6, 1 if together else 15)) * np.ones((1, 15)))
        cells = [[latency(measured(generator, 10.0 * each, 20, 0.002)) for each in of] for of in factors.T]
        found = latency_changes({str(at): (its[:5], its[5:]) for at, its in enumerate(cells)})
        promised.append(float(np.median([one.promise for one in found.values()])))
    assert promised[0] > 1.1 > promised[1]


def test_a_discovery_among_many_takes_more_than_one_alone() -> None:
    generator = np.random.default_rng(8)
    quick, slow = (latency(measured(generator, ms, spread=0.001)) for ms in (10.0, 11.7))
    assert latency_change([quick], [slow]).verdict == "slower"
    equal = {f"equal {at}": ([quick], [quick]) for at in range(500)}
    assert latency_changes({**equal, "slow": ([quick], [slow])})["slow"].verdict == "same"


def test_what_noise_may_hide_is_counted() -> None:
    generator = np.random.default_rng(9)
    before, twice = measured(generator), measured(generator, 20.0)
    for after in (latency(twice, waiting_threads=0.5), latency(twice[:9]), latency(twice, io="bound")):
        change = latency_change([latency(before)], [after])
        assert (change.verdict, change.may_be_slower) == ("unclear", True)
        assert "but" in change.reason
    change = latency_change([latency(before)], [latency(before[:9])])
    assert (change.verdict, change.may_be_slower) == ("unclear", False)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (latency([1.0] * 9), "9 of the 10 timed runs that it takes"),
        (latency([0.0] * 10), "a run of 0 ms"),
        (latency([1.0] * 10, io="bound"), "measured in different ways: inputs and outputs bound and copied"),
        (latency([1.0] * 10, intra_op_threads=4), "threads within an operator 1 and 4"),
    ],
)
def test_what_cannot_be_compared_is_not(after: Latency, told: str) -> None:
    change = latency_change([latency([1.0] * 10)], [after])
    assert (change.verdict, change.low) == ("unclear", None)
    assert told in change.reason


ENVIRONMENT = {
    "machine": "x86_64",
    "platform": "Linux-6.1.0-generic-x86_64",
    "processor": {"model": "EPYC", "count": 2},
    "session": {"intra_op_num_threads": 1},
    "onnxruntime": "1.23.0",
    "devices": [{"device": {"type": "GPU", "vendor_id": "1", "device_id": "2", "driver": "555.1"}}],
}


def test_versions_may_differ_and_hardware_may_not() -> None:
    newer = {
        **ENVIRONMENT,
        "onnxruntime": "1.24.0",
        "platform": "Linux-6.8.0-generic-x86_64",
        "devices": [{"device": {"type": "GPU", "vendor_id": "1", "device_id": "2", "driver": "570.9"}}],
    }
    assert unlike(ENVIRONMENT, newer) == ()
    assert unlike(ENVIRONMENT, {**ENVIRONMENT, "machine": "arm64"}) == ("machine: x86_64 became arm64",)
    other = {**ENVIRONMENT, "processor": {"model": "EPYC", "count": 4}, "platform": "Windows-11"}
    assert [text.partition(":")[0] for text in unlike(ENVIRONMENT, other)] == ["processor", "system"]
    device = {"devices": [{"device": {"type": "GPU", "vendor_id": "1", "device_id": "3"}}]}
    assert [text.partition(":")[0] for text in unlike(ENVIRONMENT, {**ENVIRONMENT, **device})] == ["devices"]


@pytest.mark.parametrize("nonsense", [{}, {"devices": 1}, {"devices": [3]}, {"devices": [{"device": []}]}])
def test_an_environment_that_says_little_is_unlike_one_that_does(nonsense: dict[str, Any]) -> None:
    assert unlike(nonsense, nonsense) == ()
    assert unlike(ENVIRONMENT, nonsense)
