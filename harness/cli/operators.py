"""`ep-harness operators`: compare a vendor's list of operators with the evidence of a run."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cli.output import print_result, wrapped
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.record import Record
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_UNEXPECTED, UsageError, valid_names
from harness.report.changes.run_comparison import read_side
from harness.report.pages.operator_list import (
    EntryOutcome,
    EntryResult,
    ListComparison,
    compare_list,
    read_operator_list,
)

_SHOWN = 30
"""Operators without an entry that are printed; JSON has all."""

_ORDER: tuple[EntryOutcome, ...] = ("wrong", "not placed", "partly", "not tried", "right")


def operators(run: Path, listed: Path, *, target: str | None, as_json: bool) -> int:
    """Print the evidence for each entry of a list, and the operators that were computed without an entry.

    Returns:
        1 if an entry is wrong or its operator was never placed, 3 if none was tried, else 0.
    """
    entries = read_operator_list(listed)
    merged = read_side(run)
    records = [record for _, record in merged.records]
    found = compare_list(entries, records, _target(records, run, target))
    print_result(found, _lines(found), as_json=as_json)
    outcomes = {one.outcome for one in found.entries}
    if outcomes == {"not tried"}:
        return EXIT_INCOMPLETE
    return EXIT_UNEXPECTED if outcomes & {"wrong", "not placed"} else EXIT_OK


def _target(records: Sequence[Record], run: Path, wanted: str | None) -> str:
    """Return the target of the list."""
    names = list(dict.fromkeys(record.target for record in records))
    if wanted is not None:
        if wanted not in names:
            raise UsageError.at("--target", f"{run} has no target {wanted!r}", valid_names(wanted, names))
        return wanted
    others = {one.target for one in records if one.provider != CPU_PROVIDER}
    chosen = sorted(others) or names
    if len(chosen) != 1:
        what = f"the run has {len(chosen)} targets, and a list is about one"
        raise UsageError.at(run, what, f"name it: --target {chosen[0] if chosen else 'NAME'}")
    return chosen[0]


def _lines(found: ListComparison) -> Iterator[str]:
    counts = ", ".join(
        f"{sum(one.outcome == outcome for one in found.entries)} {outcome}" for outcome in _ORDER
    )
    yield f"{found.target}: {len(found.entries)} entries: {counts}"
    for outcome in _ORDER[:-1]:
        for one in found.entries:
            if one.outcome == outcome:
                yield from _about(one)
    if found.unlisted:
        yield f"computed without an entry: {len(found.unlisted)} operators"
    for other in found.unlisted[:_SHOWN]:
        opsets, types = " ".join(map(str, other.opsets)), " ".join(other.types)
        wrong = f", {other.failed} wrong" if other.failed else ""
        yield from wrapped(f"{other.operator}: opset {opsets}; {types}; {other.cells} cells{wrong}", "  ")
    if len(found.unlisted) > _SHOWN:
        yield f"  {len(found.unlisted) - _SHOWN} more: --json"


def _about(one: EntryResult) -> Sequence[str]:
    entry = one.entry
    ranks = f"rank {' '.join(map(str, entry.ranks))}" if entry.ranks else ""
    opset = f"opset {entry.opset}" if entry.opset else ""
    what = "; ".join(filter(None, (opset, " ".join(entry.types), ranks)))
    head = f"{one.outcome:<10} {entry.operator}{f' ({what})' if what else ''}"
    if one.outcome == "not tried":
        return wrapped(head, "", "           ")
    counts = f"{one.right} right, {one.wrong} wrong, {one.left} left to the CPU or refused"
    example = f"; {one.cell}: {one.reason}" if one.cell else ""
    return wrapped(f"{head}: {counts}{example}", "", "           ")
