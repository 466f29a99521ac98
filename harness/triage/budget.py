"""A limit of time for a triage, shared among its failures."""

import threading
import time


class Budget:
    """Seconds that may be spent, None for no limit; once ``stop`` is set, nothing is left."""

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
        """Return an equal part of what is left."""
        if self._ends_at is None:
            return Budget(None, self._stop)
        return Budget(max(0.0, self._ends_at - time.monotonic()) / max(1, parts), self._stop)
