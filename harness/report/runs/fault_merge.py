"""The faults of the report: faults that several representatives or runs share are merged."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from harness.core.records.fault import Fault
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.report.cells.paging import split
from harness.report.cells.report_cell import FaultLink, ReportCell, page_file
from harness.report.runs.fault_bundle import BundleArchive, BundleOf
from harness.report.runs.merged_run import MergedRun, RunFault

SHOWN_FAULT_CELLS = 60
"""How many cells of one fault are listed."""

_USUAL_MOST = 100
"""Nodes, frames and conditions that count for the size of a fault; a page cuts longer lists."""


class FaultCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that a fault explains; without ``href`` its details are not shown."""

    cell: str
    href: str


class ReportFault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault.

    Attributes:
        fault: The fault of the first representative with a reduced model, else of the first.
        found: Every occurrence of the fault, in the order of the runs.
        cells: The cells that these occurrences explain; at least the representative.
        bundle: The first existing bundle.
    """

    link: FaultLink
    fault: Fault
    found: tuple[RunFault, ...]
    cells: tuple[FaultCell, ...]
    bundle: BundleArchive | None

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs in which it was found."""
        return tuple(dict.fromkeys(each.run for each in self.found))

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets on which it was found."""
        return tuple(dict.fromkeys(each.fault.target for each in self.found))


class KnownFaults:
    """The faults of a run, in the order in which they are shown, and the cells that each explains.

    Faults with a result come first, those that explain the most cells before the others.
    """

    def __init__(self, run: MergedRun) -> None:
        by_id: dict[str, list[RunFault]] = {}
        for found in run.faults:
            by_id.setdefault(found.fault.id, []).append(found)
        self._groups = sorted(by_id.values(), key=_order)
        self._links = list(_links(self._groups))
        self._exact: dict[tuple[Path, str], FaultLink] = {}
        self._by_cell: dict[str, FaultLink] = {}
        # The results of a target whose runs conflict are shown separately, so a fault of one run explains
        # only that run.
        apart = {conflict.target for conflict in run.conflicts}
        for group, link in zip(self._groups, self._links, strict=True):
            for found in group:
                for cell in _cells([found]):
                    self._exact.setdefault((found.folder, cell), link)
                    if found.fault.target not in apart:
                        self._by_cell.setdefault(cell, link)

    def link(self, folder: Path, record: Record) -> FaultLink | None:
        """Return the fault that explains a failed cell; null if none does."""
        if not self._links or record.verdict.family is not Family.FAILED:
            return None
        return self._exact.get((folder, record.cell)) or self._by_cell.get(record.cell)

    def shown(self, cells: Iterable[ReportCell], bundle_of: BundleOf) -> Iterator[ReportFault]:
        """Yield the faults with links to the details of their cells."""
        if not self._groups:
            return
        hrefs: dict[tuple[Path, str], str] = {}
        anywhere: dict[str, str] = {}
        for cell in cells:
            hrefs[cell.folder, cell.record.cell] = cell.href
            anywhere.setdefault(cell.record.cell, cell.href)
        for group, link in zip(self._groups, self._links, strict=True):
            places = {cell: found.folder for found in reversed(group) for cell in _cells([found])}
            bundles = (bundle_of(found.folder, found.fault) for found in group)
            yield ReportFault(
                link=link,
                fault=_first(group).fault,
                found=tuple(group),
                cells=tuple(
                    FaultCell(cell=cell, href=hrefs.get((places[cell], cell)) or anywhere.get(cell, ""))
                    for cell in _cells(group)
                ),
                bundle=next((bundle for bundle in bundles if bundle is not None), None),
            )


def _links(groups: Iterable[Sequence[RunFault]]) -> Iterator[FaultLink]:
    number = 0
    for page, part in enumerate(split(groups, _chars), start=1):
        for group in part:
            number += 1
            fault = _first(group).fault
            # The id of the element counts: an id from a file could equal that of another element.
            href = f"{page_file('faults', page)}#f{number}"
            yield FaultLink(id=fault.id, href=href, sentence=fault.sentence)


def _chars(group: Sequence[RunFault]) -> int:
    """Return the approximate size of a fault in its page."""
    fault = _first(group).fault
    drawn = 0 if fault.reduced is None else len(fault.reduced.nodes) + len(fault.reduced.tensors)
    frames = 0 if fault.crash is None else min(_USUAL_MOST, len(fault.crash.frames))
    conditions = min(_USUAL_MOST, len(fault.conditions))
    cells = min(SHOWN_FAULT_CELLS, len(_cells(group)))
    rows = 150 * (frames + cells) + 250 * conditions
    return 4000 + 3 * min(1000, len(fault.sentence)) + 1000 * min(_USUAL_MOST, drawn) + rows


def _first(group: Sequence[RunFault]) -> RunFault:
    return next((found for found in group if not found.fault.inconclusive), group[0])


def _order(group: Sequence[RunFault]) -> tuple[bool, int]:
    return bool(_first(group).fault.inconclusive), -len(_cells(group))


def _cells(group: Sequence[RunFault]) -> tuple[str, ...]:
    found = (cell for each in group for cell in (each.fault.representative, *each.fault.cells))
    return tuple(dict.fromkeys(found))
