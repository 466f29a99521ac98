"""One place in a run: whether it can be used, since when it cannot, and its findings."""

from typing import Any

import msgspec

from harness.plan.places import Place

RETRY_S = 30.0
"""Seconds after which a place that was set aside is tried again; each further failure doubles them."""

LONGEST_RETRY_S = 600.0

GIVE_UP = 3
"""Failures in a row after which a run no longer waits for a place."""

NEVER_USED = 2
"""The same if no place of its target could ever be used: one death at a start is tolerated."""


class PlaceState(msgspec.Struct, eq=False, kw_only=True):
    """A place of a target in this run.

    Attributes:
        place: The matrix's description of it.
        target: Name of its target.
        lock: Distinguishes it from other places: two processes never use one at the same time.
        reason: Why it is set aside; empty if it is not.
        retry_at: Monotonic time at which it is tried again; None if it is not set aside.
        failures: Number of failures in a row.
        fingerprint: The environment of its last process; None before the first one.
        is_ready: Whether its last process could be used.
        cells: Records made there.
        waits: Whether a scheduler has not started its process yet.
    """

    place: Place
    target: str
    lock: str = ""
    reason: str = ""
    retry_at: float | None = None
    failures: int = 0
    fingerprint: dict[str, Any] | None = None
    is_ready: bool = False
    cells: int = 0
    waits: bool = False

    @property
    def name(self) -> str:
        """The name."""
        return self.place.name

    @property
    def has_answered(self) -> bool:
        """Return whether it is known whether it can be used, or that this will not be known soon."""
        return self.fingerprint is not None or bool(self.failures) or self.waits

    def fail(self, reason: str, now: float) -> float:
        """Set it aside; return the number of seconds."""
        self.failures += 1
        self.reason, self.is_ready, self.waits = reason, False, False
        wait_s: float = min(RETRY_S * 2 ** (self.failures - 1), LONGEST_RETRY_S)
        self.retry_at = now + wait_s
        return wait_s

    def try_again(self) -> None:
        """Let it get a process."""
        self.reason, self.retry_at = "", None

    def work(self) -> None:
        """Count a result, which ends a series of failures."""
        self.cells += 1
        self.failures = 0


def states_of(target: str, places: tuple[Place, ...]) -> tuple[PlaceState, ...]:
    """Return the states of a target's places at the beginning of a run."""
    ways = [place.ssh or place.adb or place.command or "" for place in places]
    return tuple(
        # A machine has one name; places behind the same command, or here, have only their own.
        PlaceState(
            place=place,
            target=target,
            lock=way if way and ways.count(way) == 1 else f"{place.name} {way}".strip(),
        )
        for place, way in zip(places, ways, strict=True)
    )
