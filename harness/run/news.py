"""What events tell of cells and targets, and where that is kept: run folder, totals, durations."""

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from harness.core.records.record import Record
from harness.engine.tasks.events import Event, PlaceChanged, ProcessEnded, TargetReady
from harness.plan.plan import Plan
from harness.run.durations import Durations
from harness.run.run_folder import RunFolder
from harness.run.tally import Tally


class News(msgspec.Struct):
    """Records, and what became known of targets, that are not kept yet."""

    records: list[Record] = msgspec.field(default_factory=list)
    ready: list[TargetReady] = msgspec.field(default_factory=list)
    places: list[PlaceChanged] = msgspec.field(default_factory=list)
    ended: list[ProcessEnded] = msgspec.field(default_factory=list)

    def note(self, event: Event) -> None:
        """Take an event about a target; others have nothing to keep."""
        if isinstance(event, TargetReady):
            self.ready.append(event)
        elif isinstance(event, PlaceChanged):
            self.places.append(event)
        elif isinstance(event, ProcessEnded):
            self.ended.append(event)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not (self.records or self.ready or self.places or self.ended)


Folder = TypeVar("Folder", bound=RunFolder | None)


class RunResults(Generic[Folder]):
    """What is known of a run: its totals, the durations of its cells, and its folder, if it has one.

    Args:
        plan: What is run.
        folder: Where it is written; None for nowhere.
        named: Whether the user has named its targets, as for ``Tally``.
    """

    def __init__(self, plan: Plan, folder: Folder, *, named: bool = False) -> None:
        self.folder = folder
        self.tally = Tally(plan, named=named)
        self.durations = Durations(Path(plan.matrix.path))

    def add(self, news: News) -> tuple[Record, ...]:
        """Keep news; return the records as they are written.

        Raises:
            UsageError: The folder cannot be written, or the run began in another environment.
        """
        records = tuple(news.records)
        if self.folder is not None:
            for ready in news.ready:
                self.folder.ready(ready)
            for place in news.places:
                self.folder.place(place)
            for ended in news.ended:
                self.folder.ended(ended)
            records = self.folder.add(*records)
        for ready in news.ready:
            self.tally.ready(ready.target, ready.fingerprint)
        for ended in news.ended:
            self.tally.ended(ended)
        self.tally.add(*records)
        self.durations.note(records)
        return records

    def finish(self) -> None:
        """Close the folder, and save the durations for the next run.

        Raises:
            UsageError: The folder cannot be written.
        """
        self.durations.save()
        if self.folder is not None:
            self.folder.finish()
