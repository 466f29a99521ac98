"""The policy file of a gate: limits, and cells that are known to be flaky."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.errors import Problem, UsageError
from harness.core.record import Record
from harness.core.structure import Place, deviations
from harness.core.verdict import Family, Verdict
from harness.plan.matrix import read_toml
from harness.plan.selector import Selector, SelectorIndex, SelectorTable, selector_from
from harness.plan.tolerance_policy import cell_of
from harness.report.diff import Change
from harness.report.gate import Limits

Count = Annotated[int, Meta(ge=0)]


class EnterTable(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Cells that may enter a family, also as new cells. A family left out has no limit, except ``failed``."""

    failed: Annotated[Count, Meta(description="The EP's failures.")] = 0
    unsupported: Annotated[Count | UnsetType, Meta(description="Clean refusals.")] = UNSET
    untested: Annotated[Count | UnsetType, Meta(description="Right answers without the EP.")] = UNSET
    excluded: Annotated[Count | UnsetType, Meta(description="Cells that say nothing about the EP.")] = UNSET
    skipped: Annotated[Count | UnsetType, Meta(description="Cells of targets that cannot be used.")] = UNSET


class LimitsTable(msgspec.Struct, kw_only=True):
    """How many cells may get worse; cells that got better do not make up for them."""

    regressed: Annotated[Count, Meta(description="Cells with a worse result than before.")] = 0
    gone: Annotated[
        Count,
        Meta(
            description="Cells that had a result and have none: not planned, not run, unavailable, excluded."
        ),
    ] = 0
    other_measure: Annotated[
        Count,
        Meta(description="Cells with another verdict under another tolerance, golden or model."),
    ] = 0
    not_run: Annotated[Count, Meta(description="Planned cells of the new run without a result.")] = 0
    required_unavailable: Annotated[
        Count, Meta(description="Required targets that are unavailable in the new run.")
    ] = 0
    slower: Annotated[
        Count, Meta(description="Cells whose latency grew by more than noise explains, on like machines.")
    ] = 0
    expected_failures: Annotated[
        bool, Meta(description="Whether cells that fail as the new matrix expects count as well.")
    ] = True
    enter: Annotated[EnterTable, Meta(description="Family -> cells that may enter it.")] = msgspec.field(
        default_factory=EnterTable
    )


class FlakyTable(SelectorTable, kw_only=True):
    """Known flaky cells, which do not count."""

    verdict: Annotated[
        Verdict | Annotated[list[Verdict], Meta(min_length=1)],
        Meta(description="The new verdict, or several, that do not count."),
    ]
    reason: Annotated[str, Meta(min_length=1, description="Why, or a link to it.")]


class PolicyFile(msgspec.Struct, kw_only=True):
    """The whole file."""

    schema: Annotated[Literal[1], Meta(description="Version of the file format.")]
    limits: Annotated[LimitsTable, Meta(description="How many cells may get worse.")] = msgspec.field(
        default_factory=LimitsTable
    )
    flaky: Annotated[list[FlakyTable], Meta(description="Known flakes; each must match a cell.")] = []


class KnownFlake(msgspec.Struct, frozen=True, kw_only=True):
    """One ``[[flaky]]`` entry. ``place`` is its file and key, for messages."""

    selector: Selector
    verdicts: tuple[Verdict, ...]
    reason: str
    place: str


class GatePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate accepts; by default nothing that got worse."""

    limits: Limits = Limits()
    flakes: tuple[KnownFlake, ...] = ()


def load_gate_policy(path: Path) -> GatePolicy:
    """Read and check a policy file.

    Raises:
        UsageError: It cannot be read, is not TOML, or has wrong keys or values; the error has all problems.
    """
    table = read_toml(path)
    place = Place(str(path))
    problems = list(deviations(table, msgspec.inspect.type_info(PolicyFile), place))
    if problems:
        raise UsageError(*problems)
    limits = msgspec.convert(table.get("limits", {}), LimitsTable)
    enter = {
        Family(name): allowed
        for name, allowed in msgspec.structs.asdict(limits.enter).items()
        if allowed is not UNSET
    }
    return GatePolicy(
        limits=Limits(**{**msgspec.structs.asdict(limits), "enter": enter}),
        flakes=tuple(
            _flake(entry, str(place.key("flaky").item(index)))
            for index, entry in enumerate(table.get("flaky", []))
        ),
    )


def flake_reasons(policy: GatePolicy, records: Iterable[Record]) -> Callable[[Change], str]:
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
    matching = {cell: bits for cell, record in cells.items() if (bits := index.matching(cell_of(record)))}
    seen = 0
    for bits in matching.values():
        seen |= bits
    unmatched = [flake for bit, flake in enumerate(policy.flakes) if not seen >> bit & 1]
    if unmatched:
        what = "matches no cell of either run"
        hint = "remove the entry, or correct its selectors"
        raise UsageError(*(Problem(where=flake.place, what=what, hint=hint) for flake in unmatched))

    def reason(change: Change) -> str:
        bits = matching.get(change.cell, 0)
        reasons = (
            flake.reason
            for bit, flake in enumerate(policy.flakes)
            if bits >> bit & 1 and change.after in flake.verdicts
        )
        return next(reasons, "")

    return reason


def _flake(entry: dict[str, Any], place: str) -> KnownFlake:
    verdicts = [entry["verdict"]] if isinstance(entry["verdict"], str) else entry["verdict"]
    return KnownFlake(
        selector=selector_from(entry, not_keys=("verdict", "reason")),
        verdicts=tuple(map(Verdict, verdicts)),
        reason=entry["reason"],
        place=place,
    )
