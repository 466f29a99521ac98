"""Ways to make a session, each tried on one tiny model by the engine that runs matrices."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from harness.core.record import Record
from harness.core.verdict import Family
from harness.engine.engine import Engine
from harness.engine.events import Finished, Noted, TargetReady, Warned
from harness.plan.expand import expand
from harness.plan.matrix import Matrix, Models
from harness.plan.target import Target
from harness.studies.probe import probe_suite


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way to try a provider.

    Attributes:
        target: With a name that no other way has.
        meaning: What is special about it; empty for the plain one.
    """

    target: Target
    meaning: str = ""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a way.

    Attributes:
        way: The way.
        record: Of the only model.
        printed: What the process printed.
        fingerprint: The environment as far as the agent came.
    """

    way: Way
    record: Record
    printed: str
    fingerprint: dict[str, Any]

    @property
    def nodes(self) -> int | None:
        """Nodes that the provider computed; None where nothing was run."""
        placement = self.record.placement
        return None if placement is None else placement.ep_nodes

    @property
    def works(self) -> bool:
        """Whether the answer was right, whoever computed it."""
        return self.record.family in {Family.PASSED, Family.UNTESTED}

    @property
    def worth(self) -> tuple[bool, int]:
        """The greater of two is the better one."""
        return self.works, self.nodes or 0


class Trial:
    """Several series of ways at once; in each, the next way is tried where those before compute nothing.

    Args:
        series: Name -> its ways.
        waiting: Series that are tried only if their provider is in the build: a process for each of those
            that are not would take many seconds.
        asked: The series whose process says what is in the build; not one of those that wait.
        tell: Called with a line for people where something takes its time.
    """

    def __init__(
        self,
        series: Mapping[str, tuple[Way, ...]],
        *,
        waiting: frozenset[str],
        asked: str,
        tell: Callable[[str], None],
    ) -> None:
        self._series = series
        self._waiting = waiting
        self._asked = series[asked][0].target.name
        self._tell = tell
        self._found: dict[str, Found] = {}
        self._under_way: dict[str, tuple[str, int]] = {}

    def run(self) -> dict[str, Found]:
        """Try everything; the best of each series that was tried.

        Raises:
            UsageError: The cache cannot be written.
        """
        suite = probe_suite()
        targets = tuple(way.target for ways in self._series.values() for way in ways)
        matrix = Matrix(path="doctor", schema=1, models=Models(folders=(str(suite.root),)), targets=targets)
        plan = expand(matrix, {suite.name: suite.models()})
        self._cells = {cell.target: cell for cell in plan.cells}
        self._engine = Engine(plan, {suite.name: suite})
        try:
            for name in self._series:
                if name not in self._waiting:
                    self._try(name, 0)
            self._listen()
        finally:
            self._engine.close()
        return self._found

    def _try(self, name: str, number: int) -> None:
        target = self._series[name][number].target.name
        self._under_way[target] = name, number
        self._engine.submit([self._cells[target]])

    def _listen(self) -> None:
        fingerprints: dict[str, dict[str, Any]] = {}
        for event in self._engine.events():
            if isinstance(event, TargetReady):
                fingerprints[event.target] = event.fingerprint
                if event.target == self._asked:
                    self._try_built_in(event.fingerprint.get("available_providers", ()))
            elif isinstance(event, Finished):
                self._take(event, fingerprints.get(event.record.target, {}))
            elif isinstance(event, Warned | Noted):
                self._tell(event.message)
            if not self._under_way:
                self._engine.drain()

    def _try_built_in(self, available: list[str]) -> None:
        for name in self._waiting:
            if self._series[name][0].target.provider[0] in available:
                self._try(name, 0)

    def _take(self, event: Finished, fingerprint: dict[str, Any]) -> None:
        name, number = self._under_way.pop(event.record.target)
        ways = self._series[name]
        found = Found(way=ways[number], record=event.record, printed=event.printed, fingerprint=fingerprint)
        best = self._found.get(name)
        if best is None or found.worth > best.worth:
            self._found[name] = found
        if not found.nodes and number + 1 < len(ways):
            self._try(name, number + 1)
