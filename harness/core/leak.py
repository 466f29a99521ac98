"""Find leaks: how the resident memory of a target's processes grows from session to session.

A leak has to show twice: over the whole life of a process, where noise averages out and a cache that fills
and empties adds nothing, and in a typical stretch of that life, where a few big steps of an allocator do not
count. The growth is the smaller of the two.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from harness.core.record import Record
from harness.core.value import Floats

WARM_UP = 100
"""First sessions of a process, which do not count: they touch code, arenas and caches for the first time.

Over ONNX's operator tests the first 100 sessions of the CPU EP add some 40 KiB each and the later ones 2 or
3, those of OpenVINO's CPU device 210 KiB and 25. Of a process with less than twice as many sessions, the
first half is left out instead.
"""

LEAST_SESSIONS = 40
"""Sessions after the warm-up that a process needs, so that its scatter is known."""

LEAK_KIB = 64.0
"""Growth per session beyond which there is a leak: most models of operator tests need less than 1 MiB in all,
and an allocator loses a page now and then to fragments."""

LEAK_SESSIONS = 200
"""Least number of sessions, of all processes together, for a leak."""

LEAK_MIB = 32.0
"""Least growth of a process over its life for a leak, so that the end of a slow warm-up is none."""

_STRETCH = 50
"""Sessions of a stretch; more in a long life, which has ``_STRETCHES`` at most."""

_STRETCHES = 20

_POINTS = 100
"""Sessions of a life or a stretch that are used, evenly spread: the work grows with their square."""

_NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""

_ERRORS = 4.0
"""Standard errors that a slope has to exceed; a run with many targets then still gives no false alarm."""


class ResidentMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The resident memory of a target's processes.

    Attributes:
        processes: Processes that outlived at least one of their cells.
        sessions: Sessions after which memory was measured.
        peak_mib: Peak of any process after a session, in MiB; None if no system reported it.
        growth_kib: Growth per session in KiB after the warm-up; 0.0 if it is lost in the scatter, negative if
            memory is released, None if there are too few sessions.
        measured: Sessions that the growth is computed from.
        longest: The most of these in one process, counted from its first to its last.
    """

    processes: int
    sessions: int
    peak_mib: float | None
    growth_kib: float | None
    measured: int
    longest: int

    @property
    def leaks(self) -> bool:
        """Whether the growth is fast, lasting and large."""
        return (
            self.growth_kib is not None
            and self.growth_kib > LEAK_KIB
            and self.measured >= LEAK_SESSIONS
            and self.growth_kib * self.longest > LEAK_MIB * 1024
        )


def resident_memory(records: Iterable[Record]) -> ResidentMemory:
    """Return the resident memory of one target's processes; records are about in the order of writing."""
    lives = _lives(records)
    known = [rss for life in lives for rss in life.values() if rss is not None]
    settled = [found for life in lives if (found := _settled(life)) is not None]
    weights = [sessions.size for sessions, _ in settled]
    growths = [_growth(sessions, mib) for sessions, mib in settled]
    return ResidentMemory(
        processes=len(lives),
        sessions=sum(map(len, lives)),
        peak_mib=max(known, default=None),
        growth_kib=round(1024 * _weighted_median(growths, weights), 1) if growths else None,
        measured=sum(weights),
        longest=max((int(sessions[-1] - sessions[0]) + 1 for sessions, _ in settled), default=0),
    )


def _lives(records: Iterable[Record]) -> list[dict[int, float | None]]:
    """Return for each process: session -> resident memory in MiB."""
    lives: list[dict[int, float | None]] = []
    latest: dict[int, dict[int, float | None]] = {}
    for record in records:
        state = record.process
        if state is None:
            continue
        life = latest.get(state.pid)
        # Systems reuse ids, and machines of a sharded run may have the same: a session that occurs again is
        # another process's, unless two cells in a row shared one session.
        if life is None or (state.session in life and state.session != next(reversed(life))):
            life = latest[state.pid] = {}
            lives.append(life)
        life[state.session] = state.rss_mib
    return lives


def _settled(life: dict[int, float | None]) -> tuple[Floats, Floats] | None:
    """Return sessions after the warm-up and their memory in MiB, both shape (N,); None if too few."""
    pairs = sorted((session, rss) for session, rss in life.items() if rss is not None)
    warm = min(WARM_UP, pairs[-1][0] // 2) if pairs else 0
    later = [pair for pair in pairs if pair[0] > warm]
    if len(later) < LEAST_SESSIONS:
        return None
    sessions, mib = np.array(later, dtype=np.float64).T
    return sessions, mib


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
    """Return Theil and Sen's slope, the median over all pairs; 0.0 if the scatter about it explains it."""
    if sessions.size > _POINTS:
        chosen = np.linspace(0, sessions.size - 1, _POINTS).round().astype(np.intp)
        sessions, mib = sessions[chosen], mib[chosen]
    first, second = np.triu_indices(sessions.size, 1)
    slope = float(np.median((mib[second] - mib[first]) / (sessions[second] - sessions[first])))
    about = mib - slope * sessions
    scatter = _NORMAL * float(np.median(np.abs(about - np.median(about))))
    # The standard error of a least squares slope over evenly spread points, times their span; that of Theil
    # and Sen's is about the same.
    error = scatter * math.sqrt(12 / sessions.size)
    return slope if abs(slope) * (sessions[-1] - sessions[0]) > _ERRORS * error else 0.0


def _weighted_median(values: Sequence[float], weights: Sequence[int]) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.asarray(weights)[order])
    return float(values[order[np.searchsorted(reached, reached[-1] / 2)]])
