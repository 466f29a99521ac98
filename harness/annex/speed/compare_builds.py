"""The comparison: pairs of all cells in turns, until each has an answer or the time is over."""

import time
from collections import defaultdict
from typing import TypeAlias

import msgspec

from harness.annex.speed.in_turns import SIDES, Interleaved, SideName
from harness.annex.speed.looks import (
    FALSE_ALARMS,
    FOUND_FROM,
    MOST_MISSED,
    SeenPairs,
    TimedPair,
    first_look,
    look,
    pairs_needed,
)
from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.core.text.errors import one_line
from harness.core.timing.signed_rank import MOST_PAIRS
from harness.core.timing.speed_change import SpeedChange, SpeedComparison
from harness.engine.prepare import RunnablePlan
from harness.engine.processes.launch import is_local
from harness.engine.workers.device import device_of
from harness.studies.ask import Notify

BuildNames: TypeAlias = tuple[str, str]


class BuildComparison:
    """Compares two builds.

    Args:
        plans: The same cells for each build.
        names: The builds as they were given.
        seed: Of the order within the pairs.
        minutes: After which no pair begins.
        notify: Shows one line.
    """

    def __init__(
        self,
        plans: dict[SideName, RunnablePlan],
        names: BuildNames,
        seed: int,
        minutes: float,
        notify: Notify,
    ) -> None:
        self.fingerprints: dict[SideName, dict[str, dict[str, object]]] = {}
        self.pairs: dict[str, list[TimedPair]] = {}
        self._plans = plans
        self._names = names
        self._seed = seed
        self._minutes = minutes
        self._notify = notify
        self._found: dict[str, SpeedChange] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def run(self) -> SpeedComparison:
        """Return the answers; those so far if it is interrupted."""
        began = time.monotonic()
        complete = True
        with Interleaved(self._plans, self._seed, self._notify) as builds:
            self.fingerprints = builds.fingerprints
            try:
                self._compare(builds, began + 60 * self._minutes)
            except KeyboardInterrupt:
                complete = False
        cells = (cell.id for cell in self._plans["base"].cells)
        missing = "interrupted before its first look"
        return SpeedComparison(
            base=self._names[0],
            new=self._names[1],
            seed=self._seed,
            found_from=FOUND_FROM,
            false_alarms=FALSE_ALARMS,
            missed=MOST_MISSED,
            minutes=round((time.monotonic() - began) / 60, 2),
            complete=complete,
            cells=tuple(
                self._found.get(cell, SpeedChange(cell=cell, verdict="not_measured", reason=missing))
                for cell in cells
            ),
        )

    def _compare(self, builds: Interleaved, until: float) -> None:
        opened = {cell.id: cell for cell in self._plans["base"].cells if self._can_be_timed(builds, cell)}
        if not opened:
            return
        self.pairs = {name: [] for name in opened}
        wanted = first_look(len(opened))
        number = 0
        while opened:
            in_time = self._take_pairs(builds, opened, wanted, until)
            seen = {name: self.seen(cell) for name, cell in opened.items() if self.pairs[name]}
            same = sum(one.verdict == "not_slower" for one in self._found.values())
            for name, change in look(number, seen, same).items():
                self._found[name] = self._with_minutes(change)
                if change.verdict != "too_noisy":
                    del opened[name]
            self._notify(f"look {number + 1:<7} {len(opened)} of {len(self.pairs)} cells are open")
            if not in_time or wanted == MOST_PAIRS:
                break
            number, wanted = number + 1, min(2 * wanted, MOST_PAIRS)

    def _can_be_timed(self, builds: Interleaved, cell: Cell) -> bool:
        """Return whether both builds give a right answer, by their provider; the runs do not count."""
        for side in SIDES:
            record = builds.once(side, cell)
            if record.latency is None:
                self._give_up(cell, side, record)
                return False
        return True

    def _give_up(self, cell: Cell, side: SideName, record: Record) -> None:
        reason = one_line(f"with the {side} build: {record.verdict}: {record.reason}", 300)
        self._found[cell.id] = SpeedChange(cell=cell.id, verdict="not_measured", reason=reason)

    def _take_pairs(self, builds: Interleaved, opened: dict[str, Cell], wanted: int, until: float) -> bool:
        """Take pairs of all open cells in turns; return whether there was time for all of them."""
        while least := [name for name in opened if len(self.pairs[name]) < wanted]:
            for name in least:
                now = time.monotonic()
                if now >= until:
                    return False
                pair = builds.pair(opened[name])
                if isinstance(pair, tuple):
                    self._give_up(opened.pop(name), *pair)
                    continue
                self.pairs[name].append(pair)
                self._seconds[name] += time.monotonic() - now
        return True

    def seen(self, cell: Cell) -> SeenPairs:
        """Return the pairs of a cell."""
        target = self._plans["base"].target(cell.target)
        here = device_of(target, cell) is None and is_local(target.runtime)
        return SeenPairs(pairs=tuple(self.pairs[cell.id]), computes_here=here)

    def _with_minutes(self, change: SpeedChange) -> SpeedChange:
        if change.verdict != "too_noisy":
            return change
        more = max(pairs_needed(change), first_look(len(self.pairs))) - change.pairs
        minutes = more * self._seconds[change.cell] / change.pairs / 60
        return msgspec.structs.replace(change, more_minutes=round(minutes, 1))
