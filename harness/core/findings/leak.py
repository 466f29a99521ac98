"""Find leaks: how memory, descriptors and threads of a target's processes grow from session to session.

A leak has to show twice. Over the whole life of a process, noise averages out, and a cache that fills and
empties adds nothing. In a typical stretch of that life, a few big steps of an allocator do not count. The
growth is the smaller of the two, and its whole 99 % interval has to exceed a limit.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from harness.core.records.record import ProcessState, Record
from harness.core.values.value import Floats

WARM_UP = 100
"""First sessions of a process, which do not count: they touch code, arenas and caches for the first time.

Over ONNX's operator tests each of the CPU EP's first 100 sessions adds some 40 KiB, and each later one 2 or
3. OpenVINO's CPU device adds 210 KiB, then 25. If a process has less than twice as many sessions, its first
half is left out instead.
"""

LEAST_SESSIONS = 10
"""Sessions that a process needs after the warm-up: 20 in all."""

LEAK_KIB = 64.0
"""Growth per session beyond which there is a leak.

Most models of operator tests need less than 1 MiB in all, and an allocator loses a page now and then to
fragmentation.
"""

YOUNG_LEAK_KIB = 512.0
"""The same limit where no process outlived its warm-up, so that growth may be legitimate."""

LEAK_MIB = 32.0
"""Least growth of a process over its life that counts as a leak; the end of a slow warm-up is below it."""

LEAK_COUNT = 0.2
"""Growth in descriptors or threads per session that counts as a leak; what is created once adds nothing
later."""

LEAST_COUNT = 8
"""Least growth in their number over a life that counts as a leak."""

SERIES_KIB = 64.0
"""Growth per session, or run, of one model used again and again that counts as a leak.

The lower end of the interval is at most 7 KiB for the CPU EP, OpenVINO, QNN and WebGPU, in 474 series of the
scenario ``sessions``.
"""

SERIES = {
    "rss_mib": ("MiB of host memory", "session", SERIES_KIB / 1024),
    "device_mib": ("MiB of device memory", "session", SERIES_KIB / 1024),
    "run_rss_mib": ("MiB of host memory", "run", SERIES_KIB / 1024),
    "threads": ("threads", "session", LEAK_COUNT),
    "descriptors": ("descriptors", "session", LEAK_COUNT),
}
"""Observation of the scenario ``sessions`` -> the resource that grows, the unit of growth, and the limit."""

REGISTRATIONS = {
    "round_rss_mib": ("MiB of host memory", 1.0),
    "round_descriptors": ("descriptors", 1.0),
    "round_libraries": ("loaded libraries", 1.0),
}
"""Observation of the scenario ``lifecycle`` -> the resource that grows, and the least growth in each round.

There are too few rounds for an interval. So each has to add that, but for the first two, which fill caches.
"""

LEAST_ROUNDS = 4

_Z = 2.576
"""Half the width of a 99 % interval, in standard deviations of a normal distribution."""

_STRETCH = 50
"""Sessions of a stretch; more in a long life, which has at most ``_STRETCHES``."""

_STRETCHES = 20

_POINTS = 100
"""Sessions of a life or a stretch that are used, evenly spaced: the work grows with the square of their
number."""

_NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""

_ERRORS = 4.0
"""Standard errors that a slope has to exceed, so that even a run with many targets gives no false alarm."""


class ResidentMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Resources that a target's processes hold.

    Attributes:
        processes: Processes that outlived at least one of their cells.
        sessions: Sessions after which memory was measured.
        peak_mib: Peak of any process after a session, in MiB; None if no system reported it.
        growth_kib: Growth per session in KiB after the warm-up. 0.0 if it is lost in the scatter; negative if
            memory is released; None if there are too few sessions.
        least_kib: The lower end of its 99 % interval.
        measured: Number of sessions from which the growth is computed.
        longest: The most of these sessions in one process, counted from its first to its last.
        young: Whether no process outlived its warm-up.
        counts: ``descriptors`` and ``threads`` -> their growth per session, if they leak.
    """

    processes: int
    sessions: int
    peak_mib: float | None
    growth_kib: float | None
    measured: int
    longest: int
    least_kib: float = 0.0
    young: bool = False
    counts: dict[str, float] = {}

    @property
    def leaks(self) -> bool:
        """Whether memory grows fast, significantly and by much."""
        return (
            self.growth_kib is not None
            and self.least_kib > (YOUNG_LEAK_KIB if self.young else LEAK_KIB)
            and self.growth_kib * self.longest > LEAK_MIB * 1024
        )

    @property
    def leaked(self) -> tuple[str, ...]:
        """What leaks, each in words; empty if nothing does."""
        memory = f"about {(self.growth_kib or 0) / 1024:.3g} MiB of host memory" if self.leaks else ""
        counts = [f"about {growth:.2g} {name}" for name, growth in self.counts.items()]
        return tuple(f"{one} with each cell" for one in [memory, *counts] if one)


class Lives:
    """The resources that the processes of one target held after each of their sessions."""

    def __init__(self) -> None:
        self._lives: list[dict[int, tuple[float | None, int | None, int | None]]] = []
        self._latest: dict[int, dict[int, tuple[float | None, int | None, int | None]]] = {}

    def add(self, state: ProcessState | None) -> None:
        """Add the state after a cell, about in the order of writing."""
        if state is None:
            return
        life = self._latest.get(state.pid)
        # Systems reuse ids, and machines of a sharded run may have the same ones. A session number that
        # occurs again belongs to another process, unless two cells in a row shared one session.
        if life is None or (state.session in life and state.session != next(reversed(life))):
            life = self._latest[state.pid] = {}
            self._lives.append(life)
        life[state.session] = state.rss_mib, state.descriptors, state.threads

    def memory(self) -> ResidentMemory:
        """Return what the processes held, and whether it grew."""
        known = [held[0] for life in self._lives for held in life.values() if held[0] is not None]
        settled = self._settled(0)
        weights = [sessions.size for sessions, _ in settled]
        growths = [_growth(sessions, mib) for sessions, mib in settled]
        least = [
            _least(sessions, mib, growth) for (sessions, mib), growth in zip(settled, growths, strict=True)
        ]
        counts = {name: self._count(at) for at, name in ((1, "descriptors"), (2, "threads"))}
        return ResidentMemory(
            processes=len(self._lives),
            sessions=sum(map(len, self._lives)),
            peak_mib=max(known, default=None),
            growth_kib=round(1024 * _weighted_median(growths, weights), 1) if growths else None,
            least_kib=round(1024 * _weighted_median(least, weights), 1) if least else 0.0,
            measured=sum(weights),
            longest=max((int(sessions[-1] - sessions[0]) + 1 for sessions, _ in settled), default=0),
            young=bool(settled) and not any(sessions[0] > WARM_UP for sessions, _ in settled),
            counts={name: growth for name, growth in counts.items() if growth},
        )

    def _settled(self, at: int) -> list[tuple[Floats, Floats]]:
        """Return for each process with enough sessions those after the warm-up, and what it held then."""
        found = []
        for life in self._lives:
            pairs = sorted((session, held[at]) for session, held in life.items() if held[at] is not None)
            warm = min(WARM_UP, pairs[-1][0] // 2) if pairs else 0
            later = [pair for pair in pairs if pair[0] > warm]
            if len(later) >= LEAST_SESSIONS:
                sessions, values = np.array(later, dtype=np.float64).T
                found.append((sessions, values))
        return found

    def _count(self, at: int) -> float:
        """Return the growth of a count per session, in the process where it is greatest; 0.0 if none."""
        growths = [0.0]
        for sessions, values in self._settled(at):
            growth = slope_least(sessions, values)
            if growth > LEAK_COUNT and values[-1] - values[0] >= LEAST_COUNT:
                growths.append(growth)
        return max(growths)


def resident_memory(records: Iterable[Record]) -> ResidentMemory:
    """Return what one target's processes held; records are roughly in the order of writing."""
    lives = Lives()
    for record in records:
        lives.add(record.process)
    return lives.memory()


def cell_leaks(record: Record) -> tuple[str, ...]:
    """Return in words what leaks in the scenarios ``sessions`` and ``lifecycle``; empty if nothing does."""
    found = []
    for name, (what, each, limit) in SERIES.items():
        series = record.scenario.get(name)
        if not isinstance(series, tuple) or len(series) < 2 * LEAST_SESSIONS - 1:
            continue
        mib = np.array([value for value in series if isinstance(value, float | int)], dtype=np.float64)
        count = record.scenario.get("count")
        # A long series stores only an evenly spaced selection of its points.
        apart = (count - 1) / (mib.size - 1) if isinstance(count, int) and count > mib.size + 1 else 1.0
        mib = mib[mib.size // 4 :]
        at = np.arange(mib.size, dtype=np.float64) * np.float64(apart)
        if slope_least(at, mib) > limit:
            growth = float(mib[-1] - mib[0]) / float(at[-1])
            found.append(f"about {growth:.3g} {what} in each {each}")
    return (*found, *_leaks_of_rounds(record))


def _leaks_of_rounds(record: Record) -> Iterator[str]:
    for name, (what, limit) in REGISTRATIONS.items():
        series = record.scenario.get(name)
        if not isinstance(series, tuple) or len(series) < LEAST_ROUNDS:
            continue
        held = np.array([value for value in series if isinstance(value, float | int)], dtype=np.float64)
        growth = np.diff(held[1:])
        if growth.size and growth.min() >= limit:
            yield f"about {float(np.median(growth)):.3g} {what} in each registration of the library"


def slope_least(at: Floats, values: Floats) -> float:
    """Return the lower end of the 99 % interval of the Theil-Sen slope, towards 0; 0.0 if 0 lies in it.

    Args:
        at: Positions of the measurements, shape (N,), increasing.
        values: Measured values, shape (N,).

    The interval is Sen's, by the variance of Kendall's S: P. K. Sen, Estimates of the regression coefficient
    based on Kendall's tau, J. Am. Stat. Assoc. 63 (1968) 1379. It needs no normal distribution.
    """
    if at.size > _POINTS:
        chosen = np.linspace(0, at.size - 1, _POINTS).round().astype(np.intp)
        at, values = at[chosen], values[chosen]
    first, second = np.triu_indices(at.size, 1)
    slopes = np.sort((values[second] - values[first]) / (at[second] - at[first]))
    width = _Z * math.sqrt(at.size * (at.size - 1) * (2 * at.size + 5) / 18)
    outside = int((slopes.size - width) / 2)
    if outside < 1:
        return 0.0
    low, high = float(slopes[outside - 1]), float(slopes[slopes.size - outside])
    return max(low, 0.0) or min(high, 0.0)


def _least(sessions: Floats, mib: Floats, growth: float) -> float:
    """Return the least growth of one process, in MiB per session, that its interval allows."""
    least = min(slope_least(sessions, mib), growth)
    if sessions[0] > WARM_UP:
        return least
    # In a short life one additional big model can tilt all slopes: most sessions have to add to it.
    return min(least, float(np.median(np.diff(mib) / np.diff(sessions))))


def _growth(sessions: Floats, mib: Floats) -> float:
    """Return the growth of one process in MiB per session."""
    count = min(_STRETCHES, sessions.size // _STRETCH)
    whole = _slope(sessions, mib)
    if count < 2:  # noqa: PLR2004 - a life of one stretch
        return whole
    stretches = zip(np.array_split(sessions, count), np.array_split(mib, count), strict=True)
    typical = float(np.median([_slope(*stretch) for stretch in stretches]))
    return min(whole, typical, key=abs) if whole * typical > 0 else 0.0


def _slope(sessions: Floats, mib: Floats) -> float:
    """Return the Theil-Sen slope, the median over all pairs; 0.0 if the scatter about it explains it."""
    if sessions.size > _POINTS:
        chosen = np.linspace(0, sessions.size - 1, _POINTS).round().astype(np.intp)
        sessions, mib = sessions[chosen], mib[chosen]
    first, second = np.triu_indices(sessions.size, 1)
    slope = float(np.median((mib[second] - mib[first]) / (sessions[second] - sessions[first])))
    about = mib - slope * sessions
    scatter = _NORMAL * float(np.median(np.abs(about - np.median(about))))
    # The standard error of a least squares slope over evenly spaced points, times their span; that of the
    # Theil-Sen slope is about the same.
    error = scatter * math.sqrt(12 / sessions.size)
    return slope if abs(slope) * (sessions[-1] - sessions[0]) > _ERRORS * error else 0.0


def _weighted_median(values: Sequence[float], weights: Sequence[int]) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.asarray(weights)[order])
    return float(values[order[np.searchsorted(reached, reached[-1] / 2)]])
