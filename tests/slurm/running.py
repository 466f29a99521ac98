"""Runs in the background, and waiting for what they do."""

import threading
import time
from collections.abc import Callable, Iterator

from harness.core.records.record import Record
from harness.engine.engine import Engine
from harness.engine.tasks.events import Event, PlaceChanged
from tests.kit import records_of


class Running:
    """A run in the background."""

    def __init__(self, engine: Engine) -> None:
        self.events: list[Event] = []
        self._thread = threading.Thread(target=lambda: self.events.extend(engine.events()))
        self._thread.start()

    @property
    def records(self) -> list[Record]:
        return records_of(tuple(self.events))

    def wait_for_records(self, count: int) -> None:
        until(lambda: len(self.records) >= count, f"{count} records")

    def end(self, timeout_s: float = 150.0) -> list[Record]:
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), "the run has no end"
        return self.records

    def set_aside(self) -> Iterator[tuple[str, str]]:
        for event in self.events:
            if isinstance(event, PlaceChanged) and event.state == "set aside":
                yield event.place, event.reason


def until(condition: Callable[[], object], what: str | Callable[[], str], timeout_s: float = 120.0) -> None:
    """Wait for a condition; ``what`` is told if it does not come."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, what if isinstance(what, str) else what()
        time.sleep(0.05)
