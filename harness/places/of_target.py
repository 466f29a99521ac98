"""The places of one target: which of them gets the next process, and what is reported about them."""

import time
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from harness.core.text.errors import UsageError
from harness.places.equality import differences_line, environment_differences
from harness.places.leases import Leases
from harness.places.place_state import GIVE_UP, NEVER_USED, PlaceState
from harness.plan.places import Places

_PROOF_S = 15.0
"""Seconds after the first place is ready in which the others may still show, before any cell, whether they
are equal. A place that must be identical has the whole time of its limits."""


TellPlace = Callable[[PlaceState, str, str], None]
"""Called with a place, its present state (``ready``, ``differs`` or ``set aside``), and a reason."""


class TargetPlaces(msgspec.Struct, eq=False):
    """All places of a target.

    Attributes:
        written: What the matrix says about all of them.
        states: The places.
        began: Whether cells may be distributed.
        first: The place with which the others are compared.
    """

    written: Places
    states: tuple[PlaceState, ...]
    tell: TellPlace
    leases: Leases
    began: bool = False
    first: PlaceState | None = None
    first_environment: dict[str, Any] = {}
    prove_until: float | None = None
    told: set[tuple[str, str]] = set()

    # --- before a process ---

    def next_free(self, full: Collection[str], refused: Collection[str]) -> PlaceState | None:
        """Return a place that may get a process now; acquire places that need it.

        ``full`` are places with as many processes as they can hold, ``refused`` those that cannot serve the
        configuration.
        """
        for state in self.states:
            usable = not state.reason and state.name not in full and state.name not in refused
            if usable and self.leases.holds(state):
                return state
        return None

    def may_begin(self, refused: Collection[str]) -> bool:
        """Return whether cells may be distributed: each place has shown its environment, or had its time."""
        if not self.began and any(state.is_ready for state in self.states):
            self.began = all(state.has_answered or state.name in refused for state in self.states)
        return self.began

    # --- what happens at a place ---

    def on_ready(self, state: PlaceState, fingerprint: dict[str, Any]) -> None:
        """A process at a place is ready: compare its environment with that of the first one.

        Raises:
            UsageError: They differ, and the matrix wants identical places.
        """
        # Options vary from queue to queue, and are not part of a place.
        fingerprint = {key: value for key, value in fingerprint.items() if key != "options"}
        state.fingerprint, state.is_ready, state.waits = fingerprint, True, False
        if self.first is None:
            self.first, self.first_environment = state, fingerprint
            if not self.written.identical:
                self.prove_until = time.monotonic() + _PROOF_S
        found = environment_differences(self.first_environment, fingerprint)
        text = differences_line(found)
        if self.written.identical and found:
            what = f"place {state.name} differs from {self.first.name}: {text}"
            hint = "make them equal, or remove `identical`"
            raise UsageError.at(f"places of target {state.target}", what, hint)
        if (state.name, text) not in self.told:
            self.told.add((state.name, text))
            self.tell(state, "differs" if found else "ready", text and f"from {self.first.name}: {text}")

    def fail(self, state: PlaceState, reason: str) -> None:
        """Set a place aside, release it, and report it; harmless if it is already set aside."""
        if state.reason:
            return
        wait_s = state.fail(reason, time.monotonic())
        self.leases.give_back(state)
        if not self._ever_ready and state.failures < NEVER_USED:
            state.retry_at = time.monotonic()
            return
        self.tell(state, "set aside", f"{reason}; tried again in {wait_s:g} s")

    def on_leased(self, state: PlaceState, problem: str) -> None:
        """Process the end of an acquisition."""
        if problem:
            self.fail(state, problem)

    # --- time ---

    def next_deadline(self) -> float | None:
        """Return the monotonic time at which something is due."""
        due = [state.retry_at for state in self.states]
        due.append(None if self.began else self.prove_until)
        return min((at for at in due if at is not None), default=None)

    def expire(self, now: float) -> bool:
        """Let places be tried again whose time has come; return whether there is one, or cells may begin."""
        due = [state for state in self.states if state.retry_at is not None and state.retry_at <= now]
        for state in due:
            state.try_again()
        begins = not self.began and self.prove_until is not None and self.prove_until <= now
        self.began |= begins
        return bool(due) or begins

    def is_lost(self, refused: Collection[str]) -> bool:
        """Return whether no place is left for a configuration that some places refuse."""
        limit = GIVE_UP if self._ever_ready else NEVER_USED
        return all(
            state.name in refused or (state.reason and state.failures >= limit) for state in self.states
        )

    def reasons(self) -> str:
        """Return why places are set aside, in one line."""
        found: dict[str, list[str]] = {}
        for state in self.states:
            if state.reason:
                found.setdefault(state.reason, []).append(state.name)
        return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in found.items())

    def close(self) -> None:
        """Release all places."""
        self.leases.close()

    @property
    def _ever_ready(self) -> bool:
        return self.first is not None
