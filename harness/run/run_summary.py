"""The totals of a run as a table of plain text, within 80 columns."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.core.findings.lacking import Lacking
from harness.core.records.verdict import Family, Verdict
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import WIDTH, visible
from harness.run.not_judged import not_judged

if TYPE_CHECKING:
    from harness.run.tally import TargetTotals

MOST_PLACES = 8
"""Number of places of a target that are listed; the report has all."""

MOST_LEAKS = 3
"""Number of a target's leaking cells that are named."""

MOST_MENDED = 3
"""Number of a target's cells that no longer fail and are named."""

MOST_TIMES = 3
"""Number of a target's cells whose time is told by operator; the report has all."""

MOST_SILENT = 3
"""Number of targets without a judged cell that are named."""

COLUMNS: "tuple[tuple[str, Callable[[TargetTotals], int]], ...]" = (
    ("cells", lambda row: row.planned),
    ("pass", lambda row: _strong(row, Verdict.PASS)),
    ("partly", lambda row: _strong(row, Verdict.PASS_PARTIAL)),
    ("weak", lambda row: row.weak.total()),
    ("untested", lambda row: row.families[Family.UNTESTED]),
    ("unsupp.", lambda row: row.families[Family.UNSUPPORTED]),
    ("failed", lambda row: row.families[Family.FAILED]),
    ("excl.", lambda row: row.families[Family.EXCLUDED]),
    ("skip", lambda row: row.families[Family.SKIPPED]),
    ("unexp.", lambda row: row.unexpected),
)
"""Heading and figure. With their spaces they leave 15 columns for the target's name."""


def totals_table(rows: "Sequence[TargetTotals]") -> list[str]:
    """Return the lines of the table, without colours; at most 80 characters each for counts below 10,000."""
    head = [title for title, _ in COLUMNS]
    body = [[str(figure(row)) for _, figure in COLUMNS] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    names = [visible(row.target) for row in rows]
    room = max(8, WIDTH - sum(widths) - len(widths))
    width = min(room, max(map(len, ["target", *names])))
    return [
        " ".join([_cut(name, width), *(cell.rjust(size) for cell, size in zip(line, widths, strict=True))])
        for name, line in zip(["target", *names], [head, *body], strict=True)
    ]


def remarks(rows: "Sequence[TargetTotals]") -> Iterator[tuple[str, str]]:
    """Yield remarks that the table does not show, as pairs of a word and a line."""
    weak = sum(row.weak.total() for row in rows)
    approximate, unconfirmed, flaky, timed, disturbed, judged, without, unchecked, alone = (
        sum(getattr(row, field) for row in rows)
        for field in (
            *("approximate", "unconfirmed", "flaky", "timed", "disturbed", "by_noise", "without_noise"),
            *("unchecked", "these_alone"),
        )
    )
    for row in rows:
        yield from _of_evidence(row)
    yield from not_judged(row.not_judged for row in rows)
    if weak:
        yield "weak", f"{plural(weak, 'right answer')}, but wrong ones would pass, too"
    if approximate:
        yield (
            "approximate",
            f"{_cells(approximate)} passed by a precision or an error that the EP documents",
        )
    if unconfirmed:
        yield (
            "unconfirmed",
            f"{_cells(unconfirmed)} failed by values, which float64 has not confirmed",
        )
    if alone:
        yield (
            "one size",
            f"{_cells(alone)} failed with generated inputs of one size or draw, and not with two others",
        )
    if flaky:
        yield "flaky", f"{_cells(flaky)} with another verdict on a retry; counted as failed"
    if judged or without:
        noise = f", {without:,} without noise" if without else ""
        yield "noise", f"{_cells(judged)} judged by rounding noise{noise}"
    if unchecked:
        yield (
            "not checked",
            f"{_cells(unchecked)} without a second run or another check; records say why",
        )
    if timed:
        by = f", {disturbed:,} disturbed by other programs" if disturbed else ""
        yield "latency", f"{_cells(timed)} measured{by}"
    yield from _of_times(rows)
    yield from _of_targets(rows)


def _of_evidence(row: "TargetTotals") -> Iterator[tuple[str, str]]:
    """Yield why nothing was learned about a target."""
    if row.says_nothing:
        excluded = ", ".join(
            f"{count:,} {verdict.value}"
            for verdict, count in row.verdicts.most_common()
            if verdict.family is Family.EXCLUDED
        )
        yield "no evidence", f"{row.target}: no cell was judged: {excluded}"


def _of_times(rows: "Sequence[TargetTotals]") -> Iterator[tuple[str, str]]:
    """Yield where the time of each target's models goes."""
    for row in rows:
        for cell, words in list(row.times.items())[:MOST_TIMES]:
            yield "time", visible(f"{cell}: {words}")
        if (rest := len(row.times) - MOST_TIMES) > 0:
            yield "time", f"{row.target}: {plural(rest, 'further cell')}: see the report's page Time"


def _of_targets(rows: "Sequence[TargetTotals]") -> Iterator[tuple[str, str]]:
    """Yield remarks on targets, devices and machines."""
    if simulated := [f"{row.target} ({one_line(row.simulated, 60)})" for row in rows if row.simulated]:
        yield "simulated", f"{', '.join(simulated)}: no accelerator"
    for row in rows:
        for feature, cells in row.lacks.most_common():
            lack = Lacking(row.target, feature, cells)
            yield "lacks", f"{row.target}: {lack.words}"
        yield from (*_of_baseline(row), *_of_exits(row), *_of_marks(row))
    for row in rows:
        yield from _of_places(row)


def _of_baseline(row: "TargetTotals") -> Iterator[tuple[str, str]]:
    """Yield which baseline fits a target and why, and its statement on the cells."""
    if row.fit is None:
        return
    if row.is_first:
        fails = f"; {_cells(row.known)} failed" if row.known else ""
        yield "first run", f"{row.target}: {row.fit.why}{fails}"
        return
    yield "baseline", f"{row.target}: {row.fit.why}; {plural(row.known, 'known failure')}"
    if mended := row.mended:
        shown = ", ".join(mended[:MOST_MENDED])
        rest = f" and {len(mended) - MOST_MENDED:,} more" if len(mended) > MOST_MENDED else ""
        yield (
            "mended",
            f"{plural(len(mended), 'known failure')} of {row.target} no longer there: {shown}{rest}",
        )


def _of_exits(row: "TargetTotals") -> Iterator[tuple[str, str]]:
    """Yield how processes of a target ended, unless they ended cleanly and as expected."""
    exits = row.exits
    if exits.reason:
        how_many = f" ({exits.unclean:,} of {exits.ended:,} processes)" if exits.ended > 1 else ""
        known = ", as the matrix expects" if exits.expected else ""
        yield (exits.verdict or "unexpected"), f"{row.target}: {exits.reason}{how_many}{known}"


def _of_marks(row: "TargetTotals") -> Iterator[tuple[str, str]]:
    """Yield facts beside the verdicts: unexpected changes by cells, leaks, and options without effect."""
    for found in row.ill_mannered.values():
        yield "manners", f"{row.target}: {_cells(found.cells)}: {found.words}, first in {found.first}"
    yield from _of_leaks(row)
    for silent in row.options.silent(row.target):
        yield "option", f"{row.target}: {silent.words}"


def _of_leaks(row: "TargetTotals") -> Iterator[tuple[str, str]]:
    """Yield the resources that a target's processes leak."""
    for what in row.lives.memory().leaked:
        yield "leak", f"{row.target}: {what}"
    for cell, leaks in list(row.leaking.items())[:MOST_LEAKS]:
        yield "leak", f"{cell}: {'; '.join(leaks)}"
    if (rest := len(row.leaking) - MOST_LEAKS) > 0:
        yield "leak", f"{row.target}: {plural(rest, 'further cell')} of the scenario sessions"


def _of_places(row: "TargetTotals") -> Iterator[tuple[str, str]]:
    """Yield remarks on the places of a target."""
    if row.places:
        shown = ", ".join(f"{place} {count:,}" for place, count in row.places.most_common(MOST_PLACES))
        rest = len(row.places) - MOST_PLACES
        more = f", and {rest:,} more" if rest > 0 else ""
        yield "places", f"{row.target}: cells of {shown}{more}"
    for place, count in sorted(row.alone.items()):
        what = f"{_cells(count)} of {row.target} fail{'s' if count == 1 else ''} there alone"
        yield "machine", f"{place}: {what}: the machine, not the EP"


def no_evidence(targets: Sequence[str]) -> str:
    """Return a text that no cell of some targets was judged."""
    shown = ", ".join(map(visible, targets[:MOST_SILENT]))
    rest = len(targets) - MOST_SILENT
    return f"no cell of {shown}{f' and {rest:,} more' if rest > 0 else ''} was judged"


def summary_lines(rows: "Sequence[TargetTotals]", missing: int) -> Iterator[str]:
    """Yield table, remarks, unavailable targets, and the number of planned cells without a record."""
    yield from totals_table(rows)
    texts = [f"{word}: {line}" for word, line in remarks(rows)]
    texts += [visible(f"{row.target} is unavailable: {row.reason}") for row in rows if row.reason]
    for text in texts:
        yield from textwrap.wrap(text, WIDTH - 1, subsequent_indent="    ")
    if missing:
        yield f"incomplete: {missing} of {sum(row.planned for row in rows)} cells have no record"


def _strong(row: "TargetTotals", verdict: Verdict) -> int:
    return row.verdicts[verdict] - row.weak[verdict]


def _cells(count: int) -> str:
    return plural(count, "cell")


def _cut(name: str, width: int) -> str:
    return name.ljust(width) if len(name) <= width else f"{name[: width - 1]}…"
