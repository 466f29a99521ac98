"""The page *Changes*: what changed since an older run."""

from collections.abc import Iterator, Sequence

import msgspec

from harness.report.cells.paging import split
from harness.report.cells.report_cell import page_file
from harness.report.changes.run_diff import CellChange, CellChangeKind, Diff
from harness.report.view import Report

MOST_ROWS = 500
"""Largest number of changes of one kind that are listed, as far as they fit into one file.

A table that can be sorted is never split.
"""


class ChangedCells(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of one kind.

    Attributes:
        count: All of them, also those of targets that are unavailable.
        rows: Those that are listed.
        left_out: Number of further ones that could be.
    """

    kind: CellChangeKind
    count: int
    rows: tuple[CellChange, ...]
    left_out: int


class ChangesView(msgspec.Struct, frozen=True, kw_only=True):
    """The view of one file.

    Attributes:
        files: ``(file, its first kind of change)`` of all files, for links.
        kinds: The kinds in this file.
        places: Kind -> the file that has it.
    """

    file: str
    files: tuple[tuple[str, str], ...]
    diff: Diff
    kinds: tuple[ChangedCells, ...]
    places: dict[CellChangeKind, str]


def changes_view(report: Report) -> Iterator[ChangesView]:
    """Yield a view for each file, if the report has a baseline."""
    diff = report.changes
    if diff is None:
        return
    parts = _parts(diff)
    files = tuple(
        (page_file("changes", number), part[0].kind.value.replace("_", " "))
        for number, part in enumerate(parts, start=1)
    )
    places = change_places(diff)
    for (file, _), part in zip(files, parts, strict=True):
        yield ChangesView(file=file, files=files, diff=diff, kinds=tuple(part), places=places)


def change_places(diff: Diff) -> dict[CellChangeKind, str]:
    """Return kind of change -> the file of the page that lists its cells."""
    return {
        one.kind: page_file("changes", number)
        for number, part in enumerate(_parts(diff), start=1)
        for one in part
    }


def _parts(diff: Diff) -> list[list[ChangedCells]]:
    return list(split((_cells(diff, kind) for kind in diff.kinds), _chars, used=10_000))


def _cells(diff: Diff, kind: CellChangeKind) -> ChangedCells:
    found = diff.told(kind)
    rows = next(split(found[:MOST_ROWS], _row_chars), [])
    return ChangedCells(kind=kind, count=diff.kinds[kind], rows=tuple(rows), left_out=len(found) - len(rows))


def _chars(cells: ChangedCells) -> int:
    return 500 + sum(map(_row_chars, cells.rows))


def _row_chars(change: CellChange) -> int:
    """Return the approximate size of a row."""
    words: Sequence[str] = (*change.facts, *change.beside)
    return 400 + len(change.cell) + min(200, len(change.reason)) + sum(30 + len(word) for word in words)
