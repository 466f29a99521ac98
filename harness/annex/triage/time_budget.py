"""A time limit for a triage, shared among its failures."""

import threading
import time

RESERVE = 0.1
"""Share of the time left at the end of a search: for its last trials, the bundle, the end of processes."""


class TimeBudget:
    """Seconds that may be spent, None for no limit; once ``stop`` is set, no time is left."""

    def __init__(self, seconds: float | None, stop: threading.Event | None = None) -> None:
        self._ends_at = None if seconds is None else time.monotonic() + seconds
        self._stop = stop

    @property
    def spent(self) -> bool:
        """Return whether no time is left."""
        if self._stop is not None and self._stop.is_set():
            return True
        return self._ends_at is not None and time.monotonic() >= self._ends_at

    def share(self, parts: int) -> "TimeBudget":
        """Return an equal part of the remaining time, without the time that ending takes."""
        if self._ends_at is None:
            return TimeBudget(None, self._stop)
        left = max(0.0, self._ends_at - time.monotonic())
        return TimeBudget((1 - RESERVE) * left / max(1, parts), self._stop)
