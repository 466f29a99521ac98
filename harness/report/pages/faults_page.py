"""The page *Faults*: what triage found out about failing cells, each cause once."""

from collections.abc import Collection, Iterator, Mapping
from itertools import accumulate, groupby

import msgspec

from harness.core.records.verdict import Family, Verdict
from harness.report.changes.run_diff import Diff
from harness.report.drawings.fault_graph import GraphDrawing, draw
from harness.report.history.trend_points import Failing
from harness.report.pages.fault_words import ConditionRow, ShownFrame, condition_rows, facts, frames, title
from harness.report.runs.fault_merge import SHOWN_FAULT_CELLS, FaultCell, ReportFault
from harness.report.view import Report

_SHOWN_CONDITIONS = 60


class ShownFault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault in full.

    Attributes:
        title: The operators that contain it.
        conditions: What was varied; the first that fit on the page.
        frames: Native stack of a crash, the innermost first.
        culprit: The library in which it died; may be empty.
    """

    shown: ReportFault
    anchor: str
    title: str
    verdict: Verdict
    facts: tuple[tuple[str, str], ...]
    drawing: GraphDrawing | None
    conditions: tuple[ConditionRow, ...]
    frames: tuple[ShownFrame, ...]
    culprit: str
    cells: tuple[FaultCell, ...]
    cells_left_out: int


class FaultsPage(msgspec.Struct, frozen=True, kw_only=True):
    """The view of one file.

    Attributes:
        files: ``(file, number of its first fault in words)`` of all files, for links.
        faults: Faults with a result.
        inconclusive: Faults about which nothing more is known.
        known: Faults with a result in all files.
        unknown: Number of the other faults in all files.
        explained: Failed cells that a fault with a result explains.
    """

    file: str
    files: tuple[tuple[str, str], ...]
    faults: tuple[ShownFault, ...]
    inconclusive: tuple[ShownFault, ...]
    known: int
    unknown: int
    explained: int
    failed: int


def fault_pages(report: Report) -> Iterator[FaultsPage]:
    """Yield a view for each file; none if no run was triaged."""
    known = {each.link.href for each in report.faults if not each.fault.inconclusive}
    parts = [
        (file, list(its))
        for file, its in groupby(report.faults, key=lambda each: each.link.href.partition("#")[0])
    ]
    firsts = accumulate((len(its) for _, its in parts), initial=1)
    files = tuple((file, f"from fault {first:,}") for (file, _), first in zip(parts, firsts, strict=False))
    failed = [cell for cell in report.cells if cell.record.verdict.family is Family.FAILED]
    fresh = None if report.changes is None else _not_failed_before(report.changes)
    for file, its in parts:
        shown = [_shown(each, report, fresh) for each in its]
        yield FaultsPage(
            file=file,
            files=files,
            faults=tuple(each for each in shown if not each.shown.fault.inconclusive),
            inconclusive=tuple(each for each in shown if each.shown.fault.inconclusive),
            known=len(known),
            unknown=len(report.faults) - len(known),
            explained=sum(cell.fault is not None and cell.fault.href in known for cell in failed),
            failed=len(failed),
        )


def _shown(shown: ReportFault, report: Report, fresh: Collection[str] | None) -> ShownFault:
    fault = shown.fault
    told = list(facts(shown, len(report.run.names)))
    if report.changes is not None and fresh is not None:
        told.insert(1, ("Since when", _since(shown.cells, fresh, report.changes.old)))
    if report.failing is not None:
        told.insert(1, ("In the history", _in_history(shown.cells, report.failing)))
    return ShownFault(
        shown=shown,
        anchor=shown.link.href.rpartition("#")[2],
        title=title(fault),
        verdict=fault.signature.verdict,
        facts=tuple(told),
        drawing=None if fault.reduced is None else draw(fault.reduced),
        conditions=condition_rows(fault.conditions)[:_SHOWN_CONDITIONS],
        frames=frames(fault),
        culprit=fault.crash.culprit if fault.crash else "",
        cells=shown.cells[:SHOWN_FAULT_CELLS],
        cells_left_out=max(0, len(shown.cells) - SHOWN_FAULT_CELLS),
    )


def _not_failed_before(diff: Diff) -> frozenset[str]:
    """Return the cells that fail in the new run and did not fail in the old one."""
    return frozenset(
        change.cell
        for change in diff.changes
        if change.after is not None
        and change.after.family is Family.FAILED
        and (change.before is None or change.before.family is not Family.FAILED)
    )


def _in_history(cells: Collection[FaultCell], failing: Mapping[str, Failing]) -> str:
    """Return the run of a history since which the first of some cells fails without a break."""
    known = [failing[cell.cell] for cell in cells if cell.cell in failing]
    if not known:
        return "new: none of its cells fails in the newest run"
    first = min(known, key=lambda one: (one.since.first, one.cell))
    told = f"since {first.since.first}, in {first.since.name}"
    if first.before is None or first.verdict_before is None:
        told += ", where the history begins"
    else:
        told += f"; {first.verdict_before} in {first.before.name} before"
        told += f" ({'; '.join(first.changed)})" if first.changed else ""
    new = len(cells) - len(known)
    return told + (f"; {new:,} of its {len(cells):,} cells are new" if new else "")


def _since(cells: Collection[FaultCell], fresh: Collection[str], old: str) -> str:
    new = sum(cell.cell in fresh for cell in cells)
    if not new:
        return f"its cells failed in {old} as well"
    if new == len(cells):
        return f"after {old}, in which none of its cells failed"
    return f"{new:,} of its {len(cells):,} cells did not fail in {old}, the others did"
