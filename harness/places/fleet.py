"""All places of a run, by target."""

from collections.abc import Callable

from harness.places.leases import Leases, OnLeased
from harness.places.of_target import TargetPlaces, TellPlace
from harness.places.place_list import list_places
from harness.places.place_state import PlaceState, states_of
from harness.plan.plan import Plan
from harness.plan.target import Runtime


class Fleet:
    """The places of all targets of a plan that have some.

    Args:
        plan: The plan; targets without cells are left out.
        tell: Called with each change of a place.
        warn: Called with a line for people, from other threads, too.
        on_leased: Called from another thread once a place is acquired.

    Raises:
        UsageError: The places of a target cannot be listed.
    """

    def __init__(self, plan: Plan, tell: TellPlace, warn: Callable[[str], None], on_leased: OnLeased) -> None:
        named = {cell.target for cell in plan.cells}
        self._of: dict[str, TargetPlaces] = {}
        for target in plan.matrix.targets:
            name = target.runtime.places  # that of several targets, if a study varies one
            if target.places is None or name is None or name in self._of or target.name not in named:
                continue
            states = states_of(name, list_places(target.places, name))
            self._of[name] = TargetPlaces(target.places, states, tell, Leases(target.places, on_leased, warn))

    def of(self, runtime: Runtime) -> TargetPlaces | None:
        """Return the places for processes of a runtime; None if it has none."""
        return None if runtime.places is None else self._of.get(runtime.places)

    def at(self, state: PlaceState) -> TargetPlaces:
        """Return the places of the target of one of them."""
        return self._of[state.target]

    def next_deadline(self) -> float | None:
        """Return the monotonic time at which something is due."""
        due = [places.next_deadline() for places in self._of.values()]
        return min((at for at in due if at is not None), default=None)

    def expire(self, now: float) -> bool:
        """Return whether the dispatcher has to check a place again."""
        due = [places.expire(now) for places in self._of.values()]  # each of them, not only the first
        return any(due)

    def close(self) -> None:
        """Release all places."""
        for places in self._of.values():
            places.close()
