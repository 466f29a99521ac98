"""What a person sees while a matrix runs: bars on a terminal, plain lines elsewhere, a table at the end."""

import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager

import rich.progress
from rich.console import Console
from rich.markup import escape

from harness.core.record import Record
from harness.core.text import visible
from harness.core.verdict import Family
from harness.engine.events import TargetReady
from harness.run.summary import remarks, table
from harness.run.tally import Tally, TargetRow

SHOWN_UNEXPECTED = 20
"""Unexpected cells that get a line of their own; the report has all."""

WORD_WIDTH = 12
"""Columns of the word that a line begins with."""

PLAIN_INTERVAL_S = 15.0
"""Where there is no terminal: seconds between two lines of progress."""

DRAWN_EVERY_S = 0.1
"""Counting 100,000 cells into bars one by one would take longer than judging them."""


class Progress:
    """Shows a run on a console.

    Args:
        tally: Running totals.
        console: Where to; standard output by default.
    """

    def __init__(self, tally: Tally, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=False)
        self._tally = tally
        self._told: set[tuple[str, str]] = set()
        self._spoke = self._drawn = time.monotonic()
        rows = tally.rows()
        width = max(len(row.target) for row in rows)
        self.bars = rich.progress.Progress(
            rich.progress.TextColumn(f"{{task.description:<{min(width, 28)}}}"),
            rich.progress.BarColumn(bar_width=20),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TextColumn("{task.fields[counts]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._tasks = {
            row.target: self.bars.add_task(
                escape(row.target),
                total=row.planned,
                completed=sum(row.verdicts.values()),  # of a run that is resumed
                counts=_counts(row),
            )
            for row in rows
        }

    def say(self, text: str) -> None:
        """One line, whatever is in it: providers and models have a say in some."""
        self.bars.console.print(visible(text), markup=False, soft_wrap=True)

    def explain(self, word: str, text: str) -> None:
        """A word and what there is to say of it: one line, but on a terminal none wider than that."""
        line = visible(f"{word:<{WORD_WIDTH}} {text}")
        if self.console.is_terminal:
            indent = " " * (WORD_WIDTH + 1)
            wrap = textwrap.TextWrapper(self.console.width, subsequent_indent=indent, break_long_words=False)
            line = "\n".join(wrap.wrap(line))
        self.bars.console.print(line, markup=False, soft_wrap=True)

    def ready(self, event: TargetReady) -> None:
        """A target is up, or is not going to be."""
        if event.problem:
            self.say(f"unavailable  {event.target}")  # the reason follows where it stays in view: at the end
        elif not self.console.is_terminal:
            self.say(f"ready        {event.target}")

    def finished(self, record: Record) -> None:
        """A cell has its record."""
        if not record.expected:
            self._tell(record)
        if self.console.is_terminal:
            if time.monotonic() - self._drawn > DRAWN_EVERY_S:
                self.draw()
        elif time.monotonic() - self._spoke > PLAIN_INTERVAL_S:
            self._spoke = time.monotonic()
            rows = self._tally.rows()
            planned = sum(row.planned for row in rows)
            self.say(f"progress     {self._tally.recorded:,} of {planned:,} cells")

    def draw(self) -> None:
        """Bring the bars up to date."""
        self._drawn = time.monotonic()
        for row in self._tally.rows():
            done = sum(row.verdicts.values())
            self.bars.update(self._tasks[row.target], completed=done, counts=_counts(row))

    def _tell(self, record: Record) -> None:
        """A line for an unexpected cell, unless its target has said the same already, or too many have."""
        grounds = (record.target, record.reason)
        if grounds in self._told or len(self._told) > SHOWN_UNEXPECTED:
            return
        self._told.add(grounds)
        if len(self._told) > SHOWN_UNEXPECTED:
            self.say("...          further unexpected cells are in the report only")
        else:
            self.explain(record.verdict, f"{record.cell}: {record.reason}")

    def summary(self, tally: Tally) -> None:
        """The table of all targets, and what is unusual."""
        for line in table(tally.rows()):
            self.say(line)
        for word, line in remarks(tally.rows()):
            self.explain(word, line)
        for row in tally.rows():
            if row.reason:
                self.explain("unavailable", f"{row.target}: {row.reason}")
        for target in tally.missing_required():
            self.say(f"required     {target} was not available")
        planned = sum(row.planned for row in tally.rows())
        if not tally.complete:
            self.say(f"INCOMPLETE   {tally.recorded:,} of {planned:,} cells have a record")
        elif tally.without_verdict:
            self.say(f"INCOMPLETE   {tally.without_verdict:,} of {planned:,} cells have no verdict")
        elif tally.unexpected:
            self.say(f"unexpected   {tally.unexpected:,} cells")
        elif untried := sum(row.families.get(Family.SKIPPED, 0) for row in tally.rows()):
            rest = "the others are as the matrix expects" if untried < planned else "no provider was tried"
            self.say(f"not tried    {untried:,} of {planned:,} cells; {rest}")
        else:
            self.say("every verdict is as the matrix expects")


@contextmanager
def progress(tally: Tally) -> Iterator[Progress]:
    """A live display for the time of a run."""
    shown = Progress(tally)
    with shown.bars:
        try:
            yield shown
        finally:
            shown.draw()


def _counts(row: TargetRow) -> str:
    words = (
        (Family.PASSED, "green", "passed"),
        (Family.FAILED, "red", "failed"),
        (Family.UNTESTED, "blue", "untested"),
    )
    return " ".join(
        f"[{colour}]{row.families[family]} {word}[/]"
        for family, colour, word in words
        if family in row.families
    )
