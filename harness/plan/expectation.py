"""``[[expect]]`` entries: the verdicts that cells are known to have."""

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.files.structure import OPTION, FilePlace
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import Problem
from harness.plan.selector import Selector, SelectorTable, SelectorText, one_or_more, selector_from
from harness.plan.surroundings import Surroundings
from harness.plan.where import Where, WhereTable, holds, where_from

_OF_EXITS = (Verdict.UNCLEAN_EXIT, Verdict.PASS)
"""Verdicts of an entry about the ends of processes."""

_SELECTS_CELLS = frozenset(SelectorTable.__struct_fields__) - {"target", "provider"}

ALL_CLEAN = "the matrix expects unclean_exit, and each process ended cleanly; remove the [[expect]] entry"
"""The reason why clean ends are unexpected."""


class ExpectTable(SelectorTable, kw_only=True):
    """The verdict that the selected cells are known to have; later entries win."""

    verdict: Annotated[
        Verdict | Annotated[list[Verdict], Meta(min_length=1)],
        Meta(
            description="The expected verdict, or several where a fault shows in more than one way. "
            "`unclean_exit` is that of a target, in an entry of its own that selects by target or provider."
        ),
    ]
    reason: Annotated[SelectorText, Meta(description="Why, or a link to it.")]
    fault: Annotated[str, Meta(description="Id of the fault, if `ep-harness triage` has found it.")] = ""
    where: Annotated[
        WhereTable | UnsetType,
        Meta(description="Only where the fingerprint of the target that ran meets these conditions."),
    ] = UNSET


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in its normal form: any of the ``verdicts`` is expected, ``where`` its conditions hold."""

    selector: Selector
    verdicts: tuple[Verdict, ...]
    reason: str
    fault: str = ""
    where: Where | UnsetType = UNSET

    @property
    def of_target(self) -> bool:
        """Return whether it is about the ends of a target's processes, not about cells."""
        return Verdict.UNCLEAN_EXIT in self.verdicts

    @property
    def wanted(self) -> str:
        """The expected verdicts in words."""
        return " or ".join(self.verdicts)

    def allows(self, verdict: Verdict) -> bool:
        """Return whether a verdict is as expected."""
        return verdict in self.verdicts

    def why(self, verdict: Verdict) -> str:  # noqa: ARG002 - others have a reason for each verdict
        """Return why an expected verdict is expected."""
        return self.reason


def expectation_from(entry: dict[str, Any]) -> Expectation:
    """Return a checked entry in its normal form."""
    return Expectation(
        selector=selector_from(entry, not_keys=("verdict", "reason", "fault", "where")),
        verdicts=tuple(map(Verdict, one_or_more(entry["verdict"]))),
        reason=entry["reason"],
        fault=entry.get("fault", ""),
        where=where_from(entry["where"]) if "where" in entry else UNSET,
    )


def exit_problems(entry: dict[str, Any], place: FilePlace) -> Iterator[Problem]:
    """Yield contradictions in an entry about the ends of a target's processes."""
    written = entry.get("verdict")
    verdicts = [written] if isinstance(written, str) else written if isinstance(written, list) else []
    if Verdict.UNCLEAN_EXIT not in verdicts:
        return
    of_cells = [str(one) for one in verdicts if one not in _OF_EXITS]
    if of_cells:
        what = f"unclean_exit is a verdict of a target, and {', '.join(of_cells)} of a cell"
        hint = 'give each an entry of its own; "pass" beside unclean_exit allows clean ends, too'
        yield place.key("verdict").problem(what, hint)
    for key in entry:
        if key in _SELECTS_CELLS or key.startswith(OPTION):
            what = f"unclean_exit is a verdict of a target, and {key} selects cells"
            yield place.key(key).problem(what, "select by target or provider")


def is_expected_exit(expected: Collection[Verdict], *, unclean: bool) -> bool:
    """Return whether the ends of a target's processes match its entry.

    Without an entry, whether they are clean.

    An entry that expects ``unclean_exit`` is outdated if all ends are clean, unless it also allows ``pass``.
    """
    return (Verdict.UNCLEAN_EXIT if unclean else Verdict.PASS) in (expected or (Verdict.PASS,))


def applying(
    entries: Iterable[Expectation], seen: Surroundings, delivered: str
) -> tuple[Expectation | None, tuple[str, ...]]:
    """Return the first entry whose conditions hold, or None, and the open conditions.

    Args:
        entries: The entries that select a cell, in descending order of priority.
        seen: The target where the cell ran.
        delivered: The precision that the provider delivered in the cell; empty if none is known.

    Returns:
        Keys of ``where`` about unknown facts are the open conditions: their entries do not apply.
    """
    unknown: dict[str, None] = {}
    for entry in entries:
        if entry.where is UNSET:
            return entry, tuple(unknown)
        applies, open_keys = holds(entry.where, seen, delivered)
        unknown |= dict.fromkeys(open_keys)
        if applies:
            return entry, tuple(unknown)
    return None, tuple(unknown)


def open_condition(target: str, condition: str) -> str:
    """Return a line about a condition on a fact that the target's fingerprint lacks."""
    return (
        f"target {target}: its fingerprint does not tell `{condition}`, so [[expect]] entries whose `where` "
        "asks for it do not apply"
    )


def is_expected(expectation: Expectation | None, verdict: Verdict) -> bool:
    """Return whether a verdict is as expected.

    Without an expectation, every verdict is expected except failures and a missing result.

    A cell in which nothing was tried is never unexpected. A target that must be available is ``required``. A
    cell that lost its verdict to an exception of the harness is never expected.
    """
    if verdict is Verdict.HARNESS_ERROR:
        return False
    if verdict.family is Family.SKIPPED and verdict is not Verdict.TIMEOUT:
        return True
    if expectation is not None:
        return expectation.allows(verdict)
    return verdict.family not in (Family.FAILED, Family.MISSING)
