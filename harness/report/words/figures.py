"""Figures as text: shares with their denominator, quartiles, times."""

import datetime as dt
from collections.abc import Iterable, Sequence
from itertools import accumulate

import msgspec


class Share(msgspec.Struct, frozen=True):
    """``count`` of ``total``; there is no percentage if ``total`` is zero.

    Attributes:
        open: Whether cells were not run: then no share counts as all or none of the cells.
    """

    count: int
    total: int
    open: bool = False

    @property
    def percent(self) -> str:
        """``84.3%``, or ``no data``; 0% and 100% only if they are exact and final."""
        if not self.total:
            return "no data"
        if self.open and self.count in (0, self.total):
            return "all so far" if self.count else "none so far"
        return percentage(self.count / self.total)

    @property
    def text(self) -> str:
        """``1,119 of 1,327 (84.3%)``."""
        if not self.total:
            return "no data"
        return f"{self.count:,} of {self.total:,} ({self.percent})"


def moment(text: str) -> str:
    """Return ``2026-11-23 03:11:19 UTC`` for a time in ISO 8601 with its zone; any other text unchanged."""
    try:
        time = dt.datetime.fromisoformat(text)
        return f"{time.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC" if time.tzinfo else text
    except (ValueError, OverflowError):
        return text


class FiveNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """Five-number summary, quartiles by linear interpolation between the sorted values."""

    least: float
    q1: float
    median: float
    q3: float
    most: float


def spread(values: Sequence[float]) -> FiveNumbers | None:
    """Return the five-number summary of finite values; None without any."""
    if not values:
        return None
    ordered = sorted(values)

    def at(fraction: float) -> float:
        position = fraction * (len(ordered) - 1)
        low = int(position)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (position - low)

    return FiveNumbers(least=ordered[0], q1=at(0.25), median=at(0.5), q3=at(0.75), most=ordered[-1])


class Segment(msgspec.Struct, frozen=True):
    """One segment of a stacked bar; ``start`` and ``width`` in percent of the bar."""

    key: str | int
    count: int
    start: float
    width: float


def stacked(counts: Iterable[tuple[str | int, int]]) -> tuple[Segment, ...]:
    """Return the segments of ``(key, count)`` pairs in their order, without empty ones."""
    pairs = [(key, count) for key, count in counts if count]
    total = sum(count for _, count in pairs)
    before = accumulate((count for _, count in pairs), initial=0)
    return tuple(
        Segment(key, count, round(100 * start / total, 3), round(100 * count / total, 3))
        for (key, count), start in zip(pairs, before, strict=False)
    )


def first_of(texts: Sequence[str], most: int, what: str = "") -> list[str]:
    """Return the first texts and, as the last one, the number of the others: ``3 more types``."""
    left_out = len(texts) - most
    return [*texts[:most], *([f"{left_out:,} more {what}".rstrip()] if left_out > 0 else [])]


def brief(value: float | None) -> str:
    """Return a measured number in at most three significant digits; a dash if it is undefined."""
    return "–" if value is None else f"{value:.3g}"  # noqa: RUF001 - a typographic dash


def percentage(share: float | None) -> str:
    """Return ``99.2%`` for a share from 0 to 1; 0% and 100% only if they are exact, a dash if undefined."""
    if share is None:
        return brief(None)
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    return f"{min(max(100 * share, 0.1), 99.9):.1f}%"


def ratio(value: float | None) -> str:
    """Return ``1.23``, ``3,012``: three significant digits at most, or a whole number; a dash if unknown."""
    return f"{value:,.0f}" if value is not None and 1e3 <= value < 1e6 else brief(value)  # noqa: PLR2004


def alike(like: str) -> str:
    """Return the precision that an error resembles, in words; ``none`` is beyond the noise of any."""
    return "no precision" if like == "none" else like


def multiple(value: float) -> str:
    """Return ``1.23 ×``, ``3,012 ×``."""  # noqa: RUF002
    return f"{ratio(value)} ×"  # noqa: RUF001
