"""A tolerance policy: a file of ``[[tolerance]]`` entries, as in a matrix."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harness.core.comparison.metrics import ATOL_GRID
from harness.core.comparison.policy import Policy
from harness.core.files.structure import FilePlace, deviations
from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.core.text.errors import Problem, UsageError
from harness.plan.matrix import read_toml
from harness.plan.selector import LastMatch
from harness.plan.tolerance_entry import (
    ToleranceEntry,
    ToleranceItem,
    policy_of,
    tolerance_entry,
    tolerance_problems,
)


class TolerancePolicyFile(msgspec.Struct, kw_only=True):
    """The whole file."""

    schema: Annotated[Literal[1], Meta(description="Version of the file format.")]
    tolerance: Annotated[list[ToleranceItem], Meta(min_length=1, description="Later entries win.")]


def load_policy(path: Path) -> tuple[ToleranceEntry, ...]:
    """Return the entries of a policy, in their order.

    Raises:
        UsageError: The file cannot be read or is invalid, or records lack what an entry needs, as for most
            values of ``atol``. The error has every problem.
    """
    table = read_toml(path)
    place = FilePlace(str(path))
    problems = [*deviations(table, msgspec.inspect.type_info(TolerancePolicyFile), place)]
    if not problems:
        here = place.key("tolerance")
        for index, entry in enumerate(table["tolerance"]):
            problems += tolerance_problems(entry, here.item(index))
    if not problems:
        problems = [*_without_record(table["tolerance"], place.key("tolerance"))]
    if problems:
        raise UsageError(*problems)
    return tuple(tolerance_entry(entry) for entry in table["tolerance"])


def _without_record(entries: list[dict[str, Any]], place: FilePlace) -> Iterator[Problem]:
    """Yield settings that a matrix may have but that cannot be judged from records."""
    valid = ", ".join(f"{atol:g}" for atol in ATOL_GRID)
    for index, entry in enumerate(entries):
        if "atol" in entry and float(entry["atol"]) not in ATOL_GRID:
            here = place.item(index).key("atol")
            what = f"{entry['atol']:g} cannot be judged from records"
            yield here.problem(what, f"valid: {valid}; rtol may be any number")


def policy_rule(
    entries: tuple[ToleranceEntry, ...], records: Iterable[Record]
) -> Callable[[Record], Policy | None]:
    """Return a function that gives a record's policy, by the last entry that selects it, or None.

    Raises:
        UsageError: An entry selects none of the records.
    """
    records = tuple(records)
    providers = {record.target: record.provider for record in records}
    last = LastMatch(entries, providers)
    if idle := last.index.idle(map(cell_of, records)):
        raise UsageError(
            *(Problem(where=f"tolerance[{at}]", what="matches no cell of the run") for at in idle)
        )

    def rule(record: Record) -> Policy | None:
        entry = last.find(cell_of(record))
        return policy_of(entry, record.precision, converted=record.converted) if entry else None

    return rule


def cell_of(record: Record) -> Cell:
    """Return the cell of a record."""
    axes = tuple(sorted(record.axes.items()))
    return Cell(suite=record.suite, model=record.model, target=record.target, axes=axes)
