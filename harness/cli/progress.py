"""The display of a running matrix: bars on a terminal, plain lines elsewhere, a table at the end."""

import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager

import rich.progress
from rich.console import Console
from rich.markup import escape

from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.core.text.visible_text import visible
from harness.engine.tasks.events import PlaceChanged, TargetReady
from harness.report.cells.report_cell import command_of
from harness.run.run_summary import no_evidence, remarks, totals_table
from harness.run.tally import Tally, TargetTotals

_SHOWN_UNEXPECTED = 20
"""Unexpected cells with a line of their own; the report has all."""

_WORD_WIDTH = 12
"""Columns of a line's first word."""

_PLAIN_INTERVAL_S = 15.0
"""Seconds between two lines of progress where there is no terminal."""

_DRAWN_EVERY_S = 0.1
"""Seconds between two updates of the bars: updating for each cell would take longer than judging it."""


class Progress:
    """Shows a run on a console, by default on standard output; every line is also added to ``told``."""

    def __init__(self, tally: Tally, console: Console | None = None, told: list[str] | None = None) -> None:
        self._told = [] if told is None else told
        self.console = console or Console(highlight=False, soft_wrap=False)
        # the property asks the system each time, and each cell needs it
        self._is_terminal = self.console.is_terminal
        self._tally = tally
        self._reported: set[tuple[str, str]] = set()
        self._printed = self._drawn = time.monotonic()
        rows = tally.rows()
        width = max(len(row.target) for row in rows)
        self.bars = rich.progress.Progress(
            rich.progress.TextColumn(f"{{task.description:<{min(width, 28)}}}"),
            rich.progress.BarColumn(bar_width=20),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TextColumn("{task.fields[counts]}"),
            console=self.console,
            disable=not self._is_terminal,
        )
        self._tasks = {
            row.target: self.bars.add_task(
                escape(row.target),
                total=row.planned,
                completed=row.verdicts.total(),  # cells of a run that is resumed
                counts=_counts(row),
            )
            for row in rows
        }

    def say(self, text: str) -> None:
        """Print one line; control characters become visible."""
        self._print(visible(text))

    def explain(self, word: str, text: str) -> None:
        """Print a word and its explanation: one line, or wrapped to the width of a terminal."""
        line = visible(f"{word:<{_WORD_WIDTH}} {text}")
        if self._is_terminal:
            indent = " " * (_WORD_WIDTH + 1)
            wrap = textwrap.TextWrapper(self.console.width, subsequent_indent=indent, break_long_words=False)
            line = "\n".join(wrap.wrap(line))
        self._print(line)

    def _print(self, text: str) -> None:
        self._told.append(text)
        self.bars.console.print(text, markup=False, soft_wrap=True)

    def ready(self, event: TargetReady) -> None:
        """Show that a target started, or is unavailable."""
        if event.problem:
            self.say(f"unavailable  {event.target}")  # the reason follows in the summary
        elif not self._is_terminal:
            self.say(f"ready        {event.target}")

    def place(self, event: PlaceChanged) -> None:
        """Show that a place started, is not equal to the others, or was set aside."""
        if event.state != "ready" or not self._is_terminal:
            told = f": {event.reason}" if event.reason else ""
            self.explain(event.state, f"place {event.place} of {event.target}{told}")

    def finished(self, record: Record) -> None:
        """Show the record of a cell."""
        if not record.expected:
            self._report(record)
        if self._is_terminal:
            if time.monotonic() - self._drawn > _DRAWN_EVERY_S:
                self.draw()
        elif time.monotonic() - self._printed > _PLAIN_INTERVAL_S:
            self._printed = time.monotonic()
            rows = self._tally.rows()
            planned = sum(row.planned for row in rows)
            self.say(f"progress     {self._tally.recorded:,} of {planned:,} cells")

    def draw(self) -> None:
        """Update the bars."""
        self._drawn = time.monotonic()
        for row in self._tally.rows():
            self.bars.update(self._tasks[row.target], completed=row.verdicts.total(), counts=_counts(row))

    def _report(self, record: Record) -> None:
        """Print an unexpected cell, unless its target already had the same reason or the limit is reached."""
        key = (record.target, record.reason)
        if key in self._reported or len(self._reported) > _SHOWN_UNEXPECTED:
            return
        self._reported.add(key)
        if len(self._reported) > _SHOWN_UNEXPECTED:
            self.say("...          further unexpected cells are in the report only")
        else:
            self.explain(record.verdict, f"{record.cell}: {record.reason}")
            # Not wrapped: it is meant to be copied.
            self.say(f"{'':<{_WORD_WIDTH}} {command_of(record, self._tally.matrix_path)}")

    def summary(self, tally: Tally) -> None:
        """Print the table of all targets, then anything unusual."""
        for line in totals_table(tally.rows()):
            self.say(line)
        for word, line in remarks(tally.rows()):
            self.explain(word, line)
        for row in tally.rows():
            if row.reason:
                self.explain("unavailable", f"{row.target}: {row.reason}")
        for target in tally.missing_required():
            self.say(f"required     {target} is unavailable")
        self.say(_conclusion(tally))


@contextmanager
def progress(tally: Tally, told: list[str] | None = None) -> Iterator[Progress]:
    """Show a live display during a run; its lines are also added to ``told``."""
    shown = Progress(tally, told=told)
    with shown.bars:
        try:
            yield shown
        finally:
            shown.draw()


def _conclusion(tally: Tally) -> str:
    """Return the last line of a summary: the value of the run as a whole."""
    planned = sum(row.planned for row in tally.rows())
    late = sum(row.verdicts[Verdict.TIMEOUT] for row in tally.rows())
    untried = sum(row.families[Family.SKIPPED] for row in tally.rows()) - late
    excluded = sum(row.families[Family.EXCLUDED] for row in tally.rows())
    if not tally.complete:
        return f"INCOMPLETE   {tally.recorded:,} of {planned:,} cells have a record"
    if tally.without_verdict:
        return f"INCOMPLETE   {tally.without_verdict:,} of {planned:,} cells have no verdict"
    exits = tally.unexpected_exits()
    if tally.unexpected or exits:
        cells = [f"{tally.unexpected:,} cells"] if tally.unexpected else []
        ends = [f"the end of processes of {', '.join(exits)}"] if exits else []
        return f"unexpected   {', and '.join([*cells, *ends])}"
    if silent := tally.without_evidence():
        return f"NO EVIDENCE  {no_evidence(silent)}; the report has the reasons"
    counts = ((excluded, "excluded"), (late, "still at work at their limit"))
    unjudged = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    unjudged = f"; not judged: {unjudged}, of {planned:,} cells" if unjudged else ""
    failed = sum(row.known for row in tally.rows() if not row.is_first)
    known = f", {failed:,} known failures among them" if failed else ""
    expected = f"as {'matrix and baselines expect' if tally.has_baselines else 'the matrix expects'}"
    fresh = sum(row.known for row in tally.rows() if row.is_first)
    rest = f"{expected}{known}{f'; {fresh:,} failures are compared with nothing' if fresh else ''}{unjudged}"
    if untried:
        return f"not tried    {untried:,} of {planned:,} cells; the others are {rest}"
    return f"every verdict is {rest}"


def _counts(row: TargetTotals) -> str:
    colours = {Family.PASSED: "green", Family.FAILED: "red", Family.UNTESTED: "blue"}
    families = row.families
    return " ".join(
        f"[{colour}]{families[family]} {family.value}[/]"
        for family, colour in colours.items()
        if families[family]
    )
