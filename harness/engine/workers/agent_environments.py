"""The environments of targets, as the agents of a run report them, and the matrix's expectations for them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.cell import Cell
from harness.core.records.facts import Placement
from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Event, Warned
from harness.plan.expectation import Expectation, open_condition
from harness.plan.plan import Plan


class Environments:
    """Keeps the first environment of each target, and of each of its places."""

    def __init__(
        self, plan: Plan, announce: Callable[[Event], None], of: dict[str, dict[str, Mapping[str, Any]]]
    ) -> None:
        self._plan = plan
        self._announce = announce
        self._of = of
        """Target -> place -> its environment."""
        self._told: set[tuple[str, str]] = set()

    def note(self, target: str, place: str, fingerprint: Mapping[str, Any]) -> None:
        """Keep the environment of a target at a place; the place is empty for a target without places."""
        self._of.setdefault(target, {}).setdefault(place, fingerprint)

    def exit_verdicts(self, target: str, place: str) -> tuple[Verdict, ...]:
        """Return the verdicts that the matrix expects for the ends of a target's processes."""
        return self._plan.exit_verdicts(target, self._of.get(target, {}).get(place, {}))

    def expectation(
        self, cell: Cell, place: str, outputs: Sequence[OutputMetrics], placement: Placement | None
    ) -> Expectation | None:
        """Return what applies to a cell where it ran; ``outputs`` and ``placement`` are its record's.

        ``outputs`` are its record's rows.

        A condition about something that is unknown there does not hold; each is reported once for a target.
        """
        environment = self._of.get(cell.target, {}).get(place)
        found, conditions = self._plan.expectation_at(cell, environment or {}, outputs, placement)
        for condition in conditions if environment else ():
            if (cell.target, condition) not in self._told:
                self._told.add((cell.target, condition))
                self._announce(Warned(message=open_condition(cell.target, condition)))
        return found
