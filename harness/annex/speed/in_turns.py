"""Both builds in turns: one fresh process after the other, in an order by chance.

Two engines, one for each build, have the same cells; only one of them works at any time.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Literal, Self

from harness.annex.speed.looks import TimedPair
from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.core.timing.latency import Latency
from harness.engine.engine import Engine, StudySettings
from harness.engine.prepare import RunnablePlan
from harness.engine.tasks.events import Finished, NotRun, TargetReady
from harness.studies.ask import Notify, results

SideName = Literal["base", "new"]
SIDES: tuple[SideName, SideName] = ("base", "new")


class Interleaved:
    """Runs cells on both builds.

    Args:
        plans: The same cells for each build.
        seed: Of the order within the pairs.
        notify: Shows one line.
    """

    def __init__(self, plans: dict[SideName, RunnablePlan], seed: int, notify: Notify) -> None:
        self.fingerprints: dict[SideName, dict[str, dict[str, object]]] = {side: {} for side in SIDES}
        self._coin = random.Random(seed)  # noqa: S311 - no secret
        self._stack = ExitStack()
        self._engines: dict[SideName, Engine] = {}
        self._events: dict[SideName, Iterator[object]] = {}
        for side in SIDES:
            # Verdicts only show that there is something to time: no questions beyond the golden.
            engine = Engine(
                plans[side], plans[side].suites, study=StudySettings(needs=frozenset(), is_small=False)
            )
            self._stack.enter_context(closing(engine))
            self._engines[side] = engine
            self._events[side] = results(engine, notify)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def once(self, side: SideName, cell: Cell) -> Record:
        """Run a cell once, in a fresh process of a build."""
        self._engines[side].submit([cell])
        for event in self._events[side]:
            if isinstance(event, TargetReady):
                self.fingerprints[side][event.target] = event.fingerprint
            elif isinstance(event, Finished):
                return event.record
            elif isinstance(event, NotRun):
                break
        raise RuntimeError("the engine ended while a cell was open")

    def pair(self, cell: Cell) -> TimedPair | tuple[SideName, Record]:
        """Time a cell on both builds; return a side without latency, with its record."""
        base_first = self._coin.random() < 0.5  # noqa: PLR2004 - a coin
        found: dict[SideName, Latency] = {}
        for side in SIDES if base_first else SIDES[::-1]:
            record = self.once(side, cell)
            if record.latency is None:
                return side, record
            found[side] = record.latency
        return TimedPair(base_first=base_first, base=found["base"], new=found["new"])
