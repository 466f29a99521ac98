"""A limit of time for a triage, shared among its failures."""

import threading
import time

LEAST_SHARE_S = 30.0
"""Seconds of a part at least, if so many are left: enough to confirm, locate and reduce a failure of a few
nodes. Some hundred groups would get too little each to explain any."""


class Budget:
    """Seconds that may be spent.

    Args:
        seconds: How many; None for no limit.
        stop: Once it is set, nothing is left.
    """

    def __init__(self, seconds: float | None, stop: threading.Event | None = None) -> None:
        self._ends_at = None if seconds is None else time.monotonic() + seconds
        self._stop = stop

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        if self._stop is not None and self._stop.is_set():
            return True
        return self._ends_at is not None and time.monotonic() >= self._ends_at

    def share(self, parts: int) -> "Budget":
        """Return an equal part of what is left, ``LEAST_SHARE_S`` at least: the last ones may get none."""
        if self._ends_at is None:
            return Budget(None, self._stop)
        left = max(0.0, self._ends_at - time.monotonic())
        return Budget(min(left, max(left / max(1, parts), LEAST_SHARE_S)), self._stop)
