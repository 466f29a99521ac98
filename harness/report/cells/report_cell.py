"""The cells of the report: each record with its column, its run folder, and the place of its details."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from harness.core.records.cell import parse_cell_id
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.report.cells.column import Column, column_of
from harness.report.cells.paging import split

REASON_CHARS = 600
"""Longest reason in the details of a cell."""

SHOWN_OUTPUTS = 8
"""How many outputs the details of a cell list."""

SHOWN_RETRIES = 10
"""How many retries of one cell are listed."""

MAX_DETAILS_CHARS = 190_000
"""Largest number of characters of details in one file, beside captured output."""

MAX_DETAIL_PAGES = 32
"""Largest number of pages of details.

They serve readers without scripts, and links; the table of models holds every record.
"""

UNKNOWN_MATRIX = "MATRIX"
"""Replaces the matrix file in commands for a run that does not name it."""

_GLOB = re.compile(r"[*?\[]")


class FaultLink(msgspec.Struct, frozen=True, kw_only=True):
    """Link to the fault on the page *Faults* that explains a cell."""

    id: str
    href: str
    sentence: str


FaultOf = Callable[[Path, Record], FaultLink | None]
"""``(run folder, record) -> fault``; null if no fault explains the cell."""


class ReportCell(msgspec.Struct, frozen=True, kw_only=True):
    """One record with its place in the report.

    Attributes:
        href: Link to its details, such as ``cells.html#c12``; empty if they are not shown.
        fault: The fault that explains it; null if none is known.
        known: Why the matrix expects its failure; empty if it does not.
    """

    record: Record
    column: Column
    folder: Path
    href: str
    fault: FaultLink | None = None
    known: str = ""


def sorted_cells(
    records: Sequence[tuple[Path, Record]],
    fault_of: FaultOf,
    known_of: Mapping[Path, Mapping[str, str]],
) -> tuple[ReportCell, ...]:
    """Return the cells, sorted by suite, model and column; the most urgent ones have a link to details.

    ``known_of`` maps run folder -> cell -> why the matrix expects its failure.
    """
    ordered = sorted(records, key=lambda pair: (pair[1].suite, pair[1].model, pair[1].cell))
    hrefs = _hrefs(record for _, record in ordered)
    # A run has many cells and few columns: equal ones become one object.
    known: dict[Column, Column] = {}
    return tuple(
        ReportCell(
            record=record,
            column=known.setdefault(column, column),
            folder=folder,
            href=hrefs.get(index, ""),
            fault=fault_of(folder, record),
            known=known_of.get(folder, {}).get(record.cell, ""),
        )
        for index, (folder, record) in enumerate(ordered)
        for column in [column_of(record)]
    )


def details_rank(record: Record) -> int | None:
    """Return the index of a record's section of details, 0 being the most urgent; None without details."""
    if not record.expected:
        return 0
    if record.verdict is Verdict.PASS_PARTIAL:
        return 2
    rank = {Family.FAILED: 1, Family.UNSUPPORTED: 3, Family.EXCLUDED: 4}.get(record.verdict.family)
    return 5 if rank is None and record.unchecked else rank


def page_file(stem: str, number: int) -> str:
    """Return the name of a page's file: ``cells.html``, then ``cells-2.html``; ``number`` counts from 1."""
    return f"{stem}-{number}.html" if number > 1 else f"{stem}.html"


def command_of(record: Record, matrix_path: str) -> str:
    """Return ``ep-harness run MATRIX --target NAME --model SUITE/MODEL``, quoted, for one cell's model."""
    model = _literal(f"{record.suite}/{record.model}")
    return f"{_beginning(matrix_path, _target(record))} --model {shlex.quote(model)}"


def _hrefs(records: Iterable[Record]) -> dict[int, str]:
    """Return index -> link of the records with details, the most urgent first, until the pages are full."""
    ranked = sorted(
        (rank, index, _details_chars(record))
        for index, record in enumerate(records)
        if (rank := details_rank(record)) is not None
    )
    found = {}
    files = split(ranked, lambda one: one[2], MAX_DETAILS_CHARS)
    for number, part in enumerate(islice(files, MAX_DETAIL_PAGES), start=1):
        for _, index, _ in part:
            found[index] = f"{page_file('cells', number)}#c{index}"
    return found


def _details_chars(record: Record) -> int:
    """Return the approximate size of the details of a cell: markup, command, reason and metrics."""
    return 1000 + min(len(record.reason), REASON_CHARS) + 250 * min(len(record.outputs), SHOWN_OUTPUTS)


@lru_cache
def _beginning(matrix_path: str, target: str) -> str:
    return shlex.join(["ep-harness", "run", matrix_path, "--target", _literal(target)])


def _target(record: Record) -> str:
    # If runs contradict each other, the target is named with its run; the id has the matrix's name for it.
    if " @ " not in record.target:
        return record.target
    try:
        return parse_cell_id(record.cell)[2]
    except ValueError:
        return record.target


def _literal(name: str) -> str:
    """Return a glob that matches only this name."""
    return _GLOB.sub(r"[\g<0>]", name)
