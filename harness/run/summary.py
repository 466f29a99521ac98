"""The totals of a run as a table of plain text, within 80 columns."""

from collections.abc import Callable, Sequence

from harness.core.text import visible
from harness.core.verdict import Family, Verdict
from harness.run.tally import TargetRow

WIDTH = 80

COLUMNS: tuple[tuple[str, Callable[[TargetRow], int]], ...] = (
    ("cells", lambda row: row.planned),
    ("pass", lambda row: _strong(row, Verdict.PASS)),
    ("partly", lambda row: _strong(row, Verdict.PASS_PARTIAL)),
    ("weak", lambda row: sum(row.weak.values())),
    ("untested", lambda row: row.families.get(Family.UNTESTED, 0)),
    ("unsupp.", lambda row: row.families.get(Family.UNSUPPORTED, 0)),
    ("failed", lambda row: row.families.get(Family.FAILED, 0)),
    ("excl.", lambda row: row.families.get(Family.EXCLUDED, 0)),
    ("skip", lambda row: row.families.get(Family.SKIPPED, 0)),
    ("unexp.", lambda row: row.unexpected),
)
"""Heading and figure; together with their spaces they leave 15 columns to the target's name."""


def table(rows: Sequence[TargetRow]) -> list[str]:
    """The table's lines, without colours, at most 80 characters each for counts below 10,000."""
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


def remarks(rows: Sequence[TargetRow]) -> list[tuple[str, str]]:
    """What else there is to say of the cells: ``(word, line)`` pairs."""
    lines = {
        "weak": weak_line(rows),
        "suspicious": suspicious_line(rows),
        "flaky": flaky_line(rows),
        "noise": noise_line(rows),
        "latency": latency_line(rows),
    }
    return [(word, line) for word, line in lines.items() if line]


def weak_line(rows: Sequence[TargetRow]) -> str:
    """What to say of passes whose golden proves little; empty where there are none."""
    count = sum(sum(row.weak.values()) for row in rows)
    if not count:
        return ""
    cells, they = ("right answer", "its golden") if count == 1 else ("right answers", "their goldens")
    return f"{count:,} {cells} counted apart: {they} could not tell them from most wrong ones"


def suspicious_line(rows: Sequence[TargetRow]) -> str:
    """What to say of passes that are far above the noise; empty where there are none."""
    count = sum(row.suspicious for row in rows)
    if not count:
        return ""
    cells = "cell passes" if count == 1 else "cells pass"
    return f"{count:,} {cells} the tolerance, far above the rounding noise of the model"


def _strong(row: TargetRow, verdict: Verdict) -> int:
    return row.verdicts.get(verdict, 0) - row.weak.get(verdict, 0)


def flaky_line(rows: Sequence[TargetRow]) -> str:
    """What to say of cells that gave another verdict when tried again; empty where there are none."""
    count = sum(row.flaky for row in rows)
    if not count:
        return ""
    cells, they = ("cell", "it counts") if count == 1 else ("cells", "they count")
    return f"{count:,} {cells} gave another verdict on a retry: {they} as failed"


def latency_line(rows: Sequence[TargetRow]) -> str:
    """What to say of cells whose latency was measured; empty where there are none."""
    timed, disturbed = sum(row.timed for row in rows), sum(row.disturbed for row in rows)
    if not timed:
        return ""
    measured = f"{timed:,} cell{'' if timed == 1 else 's'} measured"
    return f"{measured}, {disturbed:,} disturbed by other work here" if disturbed else measured


def noise_line(rows: Sequence[TargetRow]) -> str:
    """What to say of cells that the rounding noise of their models judged; empty where it judged none."""
    judged, without = sum(row.by_noise for row in rows), sum(row.without_noise for row in rows)
    if not judged and not without:
        return ""
    cells = f"{judged:,} cell{'' if judged == 1 else 's'} judged by rounding noise"
    return f"{cells}, {without:,} had none" if without else cells


def _cut(name: str, width: int) -> str:
    return name.ljust(width) if len(name) <= width else f"{name[: width - 1]}…"
