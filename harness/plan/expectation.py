"""``[[expect]]`` entries: the verdicts that cells are known to have."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from harness.core.verdict import Family, Verdict
from harness.plan.selector import Selector, SelectorTable, Text, one_or_more, selector_from


class ExpectTable(SelectorTable, kw_only=True):
    """The verdict that the selected cells are known to have; later entries win."""

    verdict: Annotated[
        Verdict | Annotated[list[Verdict], Meta(min_length=1)],
        Meta(description="The expected verdict, or several where a fault shows in more than one way."),
    ]
    reason: Annotated[Text, Meta(description="Why, or a link to it.")]
    fault: Annotated[str, Meta(description="Id of the fault, if `ep-harness triage` has found it.")] = ""


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in its normal form: any of the ``verdicts`` is expected."""

    selector: Selector
    verdicts: tuple[Verdict, ...]
    reason: str
    fault: str = ""


def expectation_from(entry: dict[str, Any]) -> Expectation:
    """Return a checked entry in its normal form."""
    return Expectation(
        selector=selector_from(entry, not_keys=("verdict", "reason", "fault")),
        verdicts=tuple(map(Verdict, one_or_more(entry["verdict"]))),
        reason=entry["reason"],
        fault=entry.get("fault", ""),
    )


def is_expected(expectation: Expectation | None, verdict: Verdict) -> bool:
    """Return whether a verdict is as expected; without an expectation, whether it is no failure.

    A skipped cell is never unexpected: nothing was tried. A target that must be there is ``required``.
    """
    if verdict.family is Family.SKIPPED:
        return True
    if expectation is not None:
        return verdict in expectation.verdicts
    return verdict.family is not Family.FAILED
