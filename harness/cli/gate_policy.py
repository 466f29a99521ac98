"""The policy file of a gate: limits, and cells that are known to be flaky."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harness.core.files.structure import FilePlace, deviations
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import Problem, UsageError, valid_names
from harness.core.text.globs import glob_matcher
from harness.plan.matrix import read_toml
from harness.plan.selector import Selector, SelectorIndex, SelectorTable, one_or_more, selector_from
from harness.plan.tolerance_policy import cell_of
from harness.report.changes.gate import GateLimits, TargetLimits
from harness.report.changes.run_diff import CellChange


class FlakyTable(SelectorTable, kw_only=True):
    """Known flaky cells, which do not count."""

    verdict: Annotated[
        Verdict | Annotated[list[Verdict], Meta(min_length=1)],
        Meta(description="The new verdict, or several, that do not count."),
    ]
    reason: Annotated[str, Meta(min_length=1, description="Why, or a link to it.")]


class TargetLimitsTable(msgspec.Struct, kw_only=True):
    """Limits for some targets, each on its own, and their owner."""

    target: Annotated[
        str | Annotated[list[str], Meta(min_length=1)],
        Meta(description="Globs of targets. The last entry that matches a target counts."),
    ]
    owner: Annotated[str, Meta(min_length=1, description="Who is asked when a limit is exceeded.")] = ""
    limits: Annotated[
        GateLimits, Meta(description="The target's own limits; those left out are the general ones.")
    ] = msgspec.field(default_factory=GateLimits)


class GatePolicyFile(msgspec.Struct, kw_only=True):
    """The whole file."""

    schema: Annotated[Literal[1], Meta(description="Version of the file format.")]
    limits: Annotated[GateLimits, Meta(description="How many cells may get worse.")] = msgspec.field(
        default_factory=GateLimits
    )
    target: Annotated[
        list[TargetLimitsTable], Meta(description="Targets with limits or owners of their own.")
    ] = []
    flaky: Annotated[list[FlakyTable], Meta(description="Known flakes; each must match a cell.")] = []


class KnownFlake(msgspec.Struct, frozen=True, kw_only=True):
    """One ``[[flaky]]`` entry. ``place`` is its file and key, for messages."""

    selector: Selector
    verdicts: tuple[Verdict, ...]
    reason: str
    place: str


class Apart(msgspec.Struct, frozen=True, kw_only=True):
    """One ``[[target]]`` entry. ``place`` is its file and key, for messages."""

    globs: tuple[str, ...]
    its: TargetLimits
    place: str


class GatePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate accepts; by default nothing that got worse."""

    limits: GateLimits = GateLimits()
    targets: tuple[Apart, ...] = ()
    flakes: tuple[KnownFlake, ...] = ()


def load_gate_policy(path: Path) -> GatePolicy:
    """Read and check a policy file.

    Raises:
        UsageError: It cannot be read, is not TOML, or has wrong keys or values; the error has all problems.
    """
    table = read_toml(path)
    place = FilePlace(str(path))
    problems = list(deviations(table, msgspec.inspect.type_info(GatePolicyFile), place))
    if problems:
        raise UsageError(*problems)
    general = table.get("limits", {})
    return GatePolicy(
        limits=msgspec.convert(general, GateLimits),
        targets=tuple(
            _apart(entry, general, str(place.key("target").item(index)))
            for index, entry in enumerate(table.get("target", []))
        ),
        flakes=tuple(
            _flake(entry, str(place.key("flaky").item(index)))
            for index, entry in enumerate(table.get("flaky", []))
        ),
    )


def limits_apart(policy: GatePolicy, targets: Iterable[str]) -> dict[str, TargetLimits]:
    """Return target -> its own limits, for targets with some.

    Raises:
        UsageError: An entry matches no target.
    """
    names = sorted(set(targets))
    found: dict[str, TargetLimits] = {}
    for entry in policy.targets:
        its = list(filter(glob_matcher(entry.globs), names))
        if not its:
            what = f"no target of either run is like {', '.join(map(repr, entry.globs))}"
            raise UsageError.at(entry.place, what, valid_names(entry.globs[0], names))
        found |= dict.fromkeys(its, entry.its)
    return found


def flake_reasons(policy: GatePolicy, records: Iterable[Record]) -> Callable[[CellChange], str]:
    """Return a function from a change to the reason why it does not count; empty if it counts.

    ``records`` are the cells of both runs.

    Raises:
        UsageError: An entry matches no cell.
    """
    if not policy.flakes:
        return lambda _: ""
    cells = {record.cell: record for record in records}
    index = SelectorIndex(
        [flake.selector for flake in policy.flakes],
        {record.target: record.provider for record in cells.values()},
    )
    matching: dict[str, list[KnownFlake]] = {}
    for cell, record in cells.items():
        if bits := index.matching(cell_of(record)):
            matching[cell] = [flake for bit, flake in enumerate(policy.flakes) if bits >> bit & 1]
    if idle := index.idle(map(cell_of, cells.values())):
        what = "matches no cell of either run"
        hint = "remove the entry, or correct its selectors"
        raise UsageError(*(Problem(where=policy.flakes[bit].place, what=what, hint=hint) for bit in idle))

    def reason(change: CellChange) -> str:
        its = matching.get(change.cell, ())
        return next((flake.reason for flake in its if change.after in flake.verdicts), "")

    return reason


def _apart(entry: dict[str, Any], general: dict[str, Any], place: str) -> Apart:
    own = entry.get("limits", {})
    enter = {**general.get("enter", {}), **own.get("enter", {})}
    limits = msgspec.convert({**general, **own, "enter": enter}, GateLimits)
    return Apart(
        globs=tuple(one_or_more(entry["target"])),
        its=TargetLimits(limits=limits, owner=entry.get("owner", "")),
        place=place,
    )


def _flake(entry: dict[str, Any], place: str) -> KnownFlake:
    return KnownFlake(
        selector=selector_from(entry, not_keys=("verdict", "reason")),
        verdicts=tuple(map(Verdict, one_or_more(entry["verdict"]))),
        reason=entry["reason"],
        place=place,
    )
