"""A slowdown is found, equal builds are not accused, and a machine that is too noisy gets no verdict."""

import numpy as np
import pytest

from harness.annex.speed.looks import FALSE_ALARMS, SeenPairs, TimedPair, first_look, look, pairs_needed
from harness.core.timing.latency import Latency
from tests import kit

CELL = "zoo/model[cpu]"
PAIRS = first_look(1)


def latency(ms: float, processor_ms: float | None = None) -> Latency:
    return kit.latency(ms, processor_ms=processor_ms, waiting_threads=0.5)


def seen(
    seed: int, *, times: float = 1.0, processor: float | None = None, noise: float = 0.02, pairs: int = PAIRS
) -> SeenPairs:
    """Pairs on a machine that drifts, with a heavy tail; ``processor`` is the factor of processor time."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(pairs):
        base, new = np.exp(noise * generator.standard_t(3, 2)).tolist()
        first, second = np.exp(0.01 * generator.normal(0, 1, 2)).tolist()
        is_known = processor is not None
        sides = (
            latency(base, first if is_known else None),
            latency(new * times, second * (processor or 1.0) if is_known else None),
        )
        found.append(TimedPair(base_first=True, base=sides[0], new=sides[1]))
    return SeenPairs(pairs=tuple(found), computes_here=processor is not None)


def test_a_tenth_more_is_slower_and_nothing_more_is_not() -> None:
    assert look(0, {CELL: seen(1, times=1.1)})[CELL].verdict == "slower"
    assert look(0, {CELL: seen(1, times=1 / 1.2)})[CELL].verdict == "faster"
    same = look(0, {CELL: seen(1, noise=0.01)})[CELL]
    assert (same.verdict, same.clock, same.more_minutes) == ("not_slower", "wall", None)
    assert same.waiting_threads == 0.5
    assert "10 pairs" in same.reason


def test_what_does_not_matter_is_no_finding_however_sure_it_is() -> None:
    """3 % slower for certain: less than the place of code in memory changes."""
    change = look(0, {CELL: seen(1, times=1.03, noise=0.0005)})[CELL]
    assert change.verdict == "not_slower"
    assert change.changes["wall"].p_slower < FALSE_ALARMS


def test_noise_hides_a_change_and_then_there_is_no_verdict() -> None:
    change = look(0, {CELL: seen(3, times=1.1, noise=0.3)})[CELL]
    assert (change.verdict, change.clock) == ("too_noisy", None)
    assert pairs_needed(change) > 10 * PAIRS


def test_processor_time_finds_what_wall_time_hides() -> None:
    assert look(0, {CELL: seen(3, noise=0.3, processor=1.0)})[CELL].clock == "processor"
    change = look(0, {CELL: seen(3, times=1.1, noise=0.3, processor=1.1)})[CELL]
    assert (change.verdict, change.clock) == ("slower", "processor")


def test_processor_time_counts_only_where_it_is_the_work() -> None:
    pairs = seen(3, noise=0.3, processor=1.1).pairs
    elsewhere = SeenPairs(pairs=pairs, computes_here=False)
    assert look(0, {CELL: elsewhere})[CELL].changes.keys() == {"wall"}


@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_equal_builds_are_rarely_told_as_slower_at_any_noise(noise: float) -> None:
    """No alarm in nine comparisons of twenty cells each: corrected over the cells of a run."""
    count = first_look(20)
    for night in range(9):
        cells = {str(cell): seen(1000 * night + cell, noise=noise, pairs=count) for cell in range(20)}
        assert not [name for name, change in look(0, cells).items() if change.verdict == "slower"]


def test_too_few_pairs_have_no_bounds_and_no_verdict() -> None:
    change = look(0, {CELL: seen(1, pairs=3)})[CELL]
    assert change.verdict == "too_noisy"
    assert "too few pairs for bounds" in change.reason


def test_cells_that_are_settled_still_count_as_tests() -> None:
    cells = {CELL: seen(1, times=1.1)}
    assert look(0, cells, others=10_000)[CELL].verdict != "slower"


def test_each_look_spends_half_of_the_one_before() -> None:
    changes = [look(number, {CELL: seen(1)})[CELL].changes["wall"] for number in (0, 1)]
    assert changes[0].high is not None
    assert changes[1].high is not None
    assert changes[1].high >= changes[0].high
