"""Leaks that were planted, and what must not pass for one."""

import random
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from harness.core.findings.leak import (
    LEAST_SESSIONS,
    WARM_UP,
    ResidentMemory,
    cell_leaks,
    resident_memory,
    slope_least,
)
from harness.core.records.record import ProcessState, Record
from tests.kit import bare_record

Memory = NDArray[np.float64]

START_MIB = 80.0


def records(states: Iterable[ProcessState | None]) -> list[Record]:
    return [bare_record(f"m{index}", target="t", process=state) for index, state in enumerate(states)]


def life(mib: Sequence[float] | NDArray[np.floating[Any]], pid: int = 7) -> list[Record]:
    """One process, whose memory is known to a hundredth of a MiB."""
    return records(
        ProcessState(pid=pid, session=session, rss_mib=round(float(rss), 2))
        for session, rss in enumerate(mib, start=1)
    )


def flat(sessions: int) -> Memory:
    return np.full(sessions, START_MIB)


def leaking(sessions: int, kib: float) -> Memory:
    return flat(sessions) + np.arange(sessions) * kib / 1024


def noise(sessions: int, mib: float, seed: int = 0) -> Memory:
    return mib * np.random.default_rng(seed).standard_normal(sessions)


def growth(found: ResidentMemory) -> float:
    assert found.growth_kib is not None
    return found.growth_kib


def test_without_measurements_there_are_no_figures() -> None:
    nothing = ResidentMemory(processes=0, sessions=0, peak_mib=None, growth_kib=None, measured=0, longest=0)
    assert resident_memory([]) == nothing
    assert resident_memory(records([None] * 500)) == nothing
    assert not nothing.leaks


def test_a_system_that_does_not_tell_has_processes_all_the_same() -> None:
    found = resident_memory(records(ProcessState(pid=7, session=i) for i in range(1, 301)))
    assert (found.processes, found.sessions, found.peak_mib, found.growth_kib) == (1, 300, None, None)
    assert not found.leaks


def test_a_short_life_has_a_peak_only() -> None:
    found = resident_memory(life([80.0, 400.5, 90.0]))
    assert (found.processes, found.sessions, found.peak_mib) == (1, 3, 400.5)
    assert (found.growth_kib, found.measured, found.longest) == (None, 0, 0)


@given(kib=st.floats(0, 20_000), start=st.floats(0, 100_000), sessions=st.integers(2 * LEAST_SESSIONS, 600))
def test_a_steady_leak_is_found_whatever_its_rate(kib: float, start: float, sessions: int) -> None:
    found = resident_memory(life(leaking(sessions, kib) - START_MIB + start))
    # The agent rounds to 0.01 MiB, which is 10 KiB, over the 40 sessions that are measured at least.
    assert growth(found) == pytest.approx(kib, abs=2 * 10.24 / LEAST_SESSIONS)
    assert found.longest == found.measured == sessions - min(WARM_UP, sessions // 2)


@pytest.mark.parametrize("kib", [100.0, 1024.0, 20_000.0])
def test_a_leak_is_found_through_noise(kib: float) -> None:
    found = resident_memory(life(leaking(1900, kib) + noise(1900, mib=5)))
    assert growth(found) == pytest.approx(kib, rel=0.1)
    assert found.leaks


@pytest.mark.parametrize("mib", [1.0, 20.0, 300.0])
@pytest.mark.parametrize("sessions", [90, 300, 1900])
def test_noise_is_no_growth(mib: float, sessions: int) -> None:
    for seed in range(20):
        found = resident_memory(life(1000 + noise(sessions, mib, seed)))
        assert found.growth_kib == 0.0
        assert not found.leaks


def test_steps_of_an_allocator_are_no_leak() -> None:
    # Three big models, after each of which an arena stays.
    stairs = flat(1900)
    for at, mib in ((400, 100), (900, 250), (1500, 60)):
        stairs[at:] += mib
    found = resident_memory(life(stairs + noise(1900, mib=0.1)))
    assert abs(growth(found)) < 1
    assert found.peak_mib == pytest.approx(START_MIB + 410, abs=1)
    assert not found.leaks


def test_a_leak_that_shows_in_steps_is_a_leak() -> None:
    # 128 KiB each session, but taken from the system a MiB at a time.
    found = resident_memory(life(START_MIB + np.floor(np.arange(1900) / 8)))
    assert growth(found) == pytest.approx(128, rel=0.05)
    assert found.leaks


def test_a_cache_that_fills_and_empties_is_no_leak() -> None:
    found = resident_memory(life(START_MIB + np.arange(2000) % 250 * 0.4))
    assert growth(found) < 10
    assert not found.leaks


def test_the_warm_up_is_no_leak() -> None:
    settling = START_MIB + 60 * (1 - np.exp(-np.arange(1900) / 40))
    found = resident_memory(life(settling + noise(1900, mib=0.05)))
    assert growth(found) < 10
    # Nor where every process dies young, so that there is nothing but warm-up.
    young = [record for pid in range(30) for record in life(settling[:80], pid)]
    assert not resident_memory(young).leaks


def test_memory_that_is_given_back_is_negative_growth() -> None:
    found = resident_memory(life(leaking(500, -100) + 100))
    assert growth(found) == pytest.approx(-100, abs=1)
    assert not found.leaks


def test_a_renewed_process_starts_low_and_leaks_again() -> None:
    # Renewed at 2 GiB of growth: some hundred sessions each, and none of them reaches the end of the warm-up.
    lives = [record for pid in range(20) for record in life(leaking(102, 20_480), pid)]
    found = resident_memory(lives)
    assert found.processes == 20
    assert found.sessions == 20 * 102
    assert growth(found) == pytest.approx(20_480, rel=0.01)
    assert found.leaks


def test_a_process_id_that_is_given_out_again_is_another_process() -> None:
    twice = [*life(leaking(400, 200)), *life(leaking(400, 200))]
    found = resident_memory(twice)
    assert (found.processes, found.sessions, found.longest) == (2, 800, 300)
    assert growth(found) == pytest.approx(200, abs=1)


def test_cells_that_share_a_session_count_it_once() -> None:
    found = resident_memory(records(ProcessState(pid=7, session=1 + i // 2, rss_mib=80) for i in range(600)))
    assert (found.processes, found.sessions, found.growth_kib) == (1, 300, 0.0)


def test_the_growth_is_that_of_the_processes_that_served_most() -> None:
    served_long = life(leaking(1000, 300), pid=1)
    served_briefly = [record for pid in range(2, 12) for record in life(flat(80), pid)]
    assert growth(resident_memory([*served_briefly, *served_long])) == pytest.approx(300, abs=1)


def test_records_come_out_of_order_where_cells_wait_for_their_golden() -> None:
    found = life(leaking(600, 150))
    late = found.pop(300)
    found.insert(320, late)
    assert growth(resident_memory(found)) == pytest.approx(150, abs=1)


def test_sessions_may_be_missing() -> None:
    kept = random.Random(3).sample(life(leaking(1000, 150)), 300)  # noqa: S311 - a test's choice
    kept.sort(key=lambda record: record.cell.zfill(20))
    assert growth(resident_memory(kept)) == pytest.approx(150, abs=1)


@pytest.mark.parametrize(
    ("kib", "lives", "sessions", "leaks"),
    [
        (70.0, 1, 1000, True),
        (60.0, 1, 5000, False),  # slower than what fragments cost
        (1000.0, 1, 250, True),
        (10_240.0, 1, 20, True),  # 10 MiB each is no warm-up
        (400.0, 1, 199, False),  # such growth may be
        (1000.0, 4, 150, True),
        (100.0, 20, 200, False),  # 10 MiB in a life may be the end of a slow warm-up
    ],
)
def test_a_leak_is_fast_has_lasted_and_has_come_to_something(
    kib: float, lives: int, sessions: int, *, leaks: bool
) -> None:
    found = resident_memory([r for pid in range(lives) for r in life(leaking(sessions, kib), pid)])
    assert growth(found) == pytest.approx(kib, abs=1)
    assert found.leaks is leaks


def series(name: str, values: Iterable[float], count: int | None = None) -> Record:
    """A cell of the scenario ``sessions`` with one series."""
    (record,) = records([None])
    points = tuple(values)
    return msgspec.structs.replace(record, scenario={"count": count or len(points) + 1, name: points})


@pytest.mark.parametrize(
    ("name", "step", "told"),
    [
        ("rss_mib", 9.54, "about 9.54 MiB of host memory in each session"),
        ("device_mib", 1.0, "about 1 MiB of device memory in each session"),
        ("run_rss_mib", 0.5, "about 0.5 MiB of host memory in each run"),
        ("threads", 1.0, "about 1 threads in each session"),
        ("descriptors", 3.0, "about 3 descriptors in each session"),
    ],
)
def test_twenty_sessions_of_one_model_show_a_leak(name: str, step: float, told: str) -> None:
    assert cell_leaks(series(name, 80 + step * np.arange(19))) == (told,)
    # What is made once, lost in the scatter, or too short, is none.
    assert cell_leaks(series(name, [80.0] * 9 + [80 + 10 * step] * 10)) == ()
    assert cell_leaks(series(name, 80 + 40 * step * np.random.default_rng(3).standard_normal(19))) == ()
    assert cell_leaks(series(name, 80 + step * np.arange(9))) == ()


@pytest.mark.parametrize(
    ("name", "step", "told"),
    [
        ("round_rss_mib", 9.54, "about 9.54 MiB of host memory in each registration of the library"),
        ("round_descriptors", 3.0, "about 3 descriptors in each registration of the library"),
        ("round_libraries", 1.0, "about 1 loaded libraries in each registration of the library"),
    ],
)
def test_each_registration_that_adds_something_shows_a_leak(name: str, step: float, told: str) -> None:
    assert cell_leaks(series(name, 80 + step * np.arange(5))) == (told,)
    assert cell_leaks(series(name, 80 + step * np.arange(3))) == ()  # too few rounds
    assert cell_leaks(series(name, [80.0, 90.0, 91.0, 91.0, 92.0])) == ()  # not in each


def test_a_series_of_some_points_is_that_of_all_sessions() -> None:
    (told,) = cell_leaks(series("rss_mib", 80 + 10.0 * np.arange(64), count=641))
    assert told == "about 0.984 MiB of host memory in each session"


def test_the_interval_of_a_slope_is_sens() -> None:
    """Of five points all ten slopes lie inside the interval at 99 %, and so does 0; of eight, not."""
    at = np.arange(8.0)
    assert slope_least(at[:5], at[:5]) == 0.0
    assert slope_least(at, 2 * at) == 2.0
    assert slope_least(at, -2 * at) == -2.0
    assert slope_least(at, np.array([0.0, 1, 0, 1, 0, 1, 0, 1])) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_noise_has_a_slope_in_one_of_a_hundred_series(seed: int) -> None:
    generator = np.random.default_rng(seed)
    at = np.arange(15.0)
    found = [slope_least(at, generator.standard_cauchy(15)) for _ in range(400)]
    assert sum(slope != 0.0 for slope in found) <= 12


def test_descriptors_and_threads_that_stay_are_a_leak() -> None:
    def life_of(threads: Sequence[int]) -> list[Record]:
        return records(
            ProcessState(pid=7, session=at, rss_mib=80.0, threads=count, descriptors=14)
            for at, count in enumerate(threads, start=1)
        )

    assert resident_memory(life_of(range(5, 45))).leaked == ("about 1 threads with each cell",)
    assert resident_memory(life_of([5] * 20 + [21] * 20)).leaked == ()
    assert resident_memory(life_of([5 + at // 15 for at in range(60)])).leaked == ()


def test_the_leak_of_100_000_records_is_found() -> None:
    many = [record for pid in range(20) for record in life(leaking(5000, 100) + noise(5000, 3, pid), pid)]
    assert growth(resident_memory(many)) == pytest.approx(100, rel=0.1)
