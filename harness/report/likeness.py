"""Whether two runs of a target are alike: its environment, and what the matrix says of it."""

from collections.abc import Sequence

import msgspec

from harness.core.errors import one_line
from harness.report.environment import environment_table
from harness.report.latency_change import unlike
from harness.report.merge import Environment, MergedRun, target_settings

SHOWN_DIFFERENCES = 8
"""How many differences of one kind are named."""


class Unlike(msgspec.Struct, frozen=True, kw_only=True):
    """Where the two runs of a target are not alike.

    Attributes:
        target: Its name.
        environment: ``key: old -> new`` of its environment.
        settings: The same of what the matrix says of it.
    """

    target: str
    environment: tuple[str, ...]
    settings: tuple[str, ...]


class Likeness:
    """What differs around the cells: environments and settings of the targets."""

    def __init__(self, old: MergedRun, new: MergedRun) -> None:
        self._comparable: dict[str, bool] = {}
        self._environments = tuple(_by_target(run.environments) for run in (old, new))
        self._settings = tuple(target_settings(run.matrix) for run in (old, new))

    def comparable(self, target: str) -> bool:
        """Whether latencies of a target may be compared: like machines, devices and threads."""
        if target not in self._comparable:
            old, new = (sides.get(target) for sides in self._environments)
            self._comparable[target] = old is not None and new is not None and not unlike(old, new)
        return self._comparable[target]

    def told(self) -> tuple[Unlike, ...]:
        """The targets of both runs in which something differs."""
        found = []
        for target in self._environments[0].keys() & self._environments[1].keys():
            environment = differences(*(sides[target] for sides in self._environments))
            settings = differences(*(sides.get(target, {}) for sides in self._settings))
            if environment or settings:
                found.append(Unlike(target=target, environment=environment, settings=settings))
        return tuple(sorted(found, key=lambda each: each.target))


def differences(old: dict[str, object], new: dict[str, object]) -> tuple[str, ...]:
    """Where two trees of facts differ, ``key: old -> new`` each, one line each and bounded."""
    if old == new:
        return ()
    sides = [Environment(target="", run="", fingerprint=side) for side in (old, new)]
    rows = [row for row in environment_table(sides).rows if not row.same]
    shown = [
        one_line(f"{row.key}: {row.values[0] or '(absent)'} -> {row.values[1] or '(absent)'}", 160)
        for row in rows[:SHOWN_DIFFERENCES]
    ]
    more = [f"{len(rows) - SHOWN_DIFFERENCES:,} more"] if len(rows) > SHOWN_DIFFERENCES else []
    return (*shown, *more)


def _by_target(environments: Sequence[Environment]) -> dict[str, dict[str, object]]:
    return {environment.target: environment.fingerprint for environment in environments}
