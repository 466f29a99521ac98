"""Signals that end a run early, handled where nothing is half done."""

import contextlib
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

_POLITE = ("SIGTERM", "SIGHUP", "SIGBREAK")
"""Signals that ask a process to end, besides Ctrl-C; each system has some of them."""


class Interruption:
    """While it is active, signals stop the work instead of raising an exception anywhere in it.

    The first one calls the function given to ``stops``. A second Ctrl-C raises ``KeyboardInterrupt``, for
    work that does not end; other signals may come in pairs, so further ones have no effect. A signal that is
    ignored, or that ends the process at once, stays so.

    Attributes:
        came: Whether a signal came.
    """

    def __init__(self) -> None:
        self.came = False
        self._stop: Callable[[], object] | None = None
        self._before = contextlib.ExitStack()

    def stops(self, stop: Callable[[], object]) -> None:
        """Call ``stop``, which takes no lock, at the first signal; at once if a signal already came."""
        self._stop = stop
        if self.came:
            stop()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other thread can receive signals
            for name in ("SIGINT", *_POLITE):
                number = getattr(signal, name, None)
                if number is not None and callable(before := signal.getsignal(number)):
                    self._before.callback(signal.signal, number, before)
                    signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        self._before.close()

    def _take(self, number: int, _: FrameType | None) -> None:
        if self.came and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self.came:
            self.came = True
            if self._stop is not None:
                self._stop()
