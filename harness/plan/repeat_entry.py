"""``[[repeat]]`` entries: cells that are run more than once, to see whether they give the same every time."""

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.core.cell import Cell
from harness.core.errors import Problem
from harness.core.scenario import SCENARIOS
from harness.core.structure import Place
from harness.plan.file_format import RepeatTable
from harness.plan.selector import Selector, selector_from


class RepeatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a cell is repeated.

    Attributes:
        runs: Of the first data set in each session.
        sessions: Opened one after the other.
        bit_equal: Whether all runs have to give the same bits, and not only results within the tolerance.
    """

    runs: int
    sessions: int
    bit_equal: bool


class RepeatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that are repeated, and how."""

    selector: Selector
    settings: RepeatSettings


def has_repeat(cell: Cell) -> bool:
    """Whether there is anything to repeat in a cell's scenario."""
    return SCENARIOS[cell.axis("scenario")].repeatable


def repeat_request(entry: dict[str, Any]) -> RepeatRequest:
    """A checked entry in its normal form."""
    settings = _settings(entry)
    return RepeatRequest(
        selector=selector_from(entry, not_keys=RepeatSettings.__struct_fields__), settings=settings
    )


def repeat_problems(entry: dict[str, Any], place: Place) -> Iterator[Problem]:
    """What an entry of the right types may not say."""
    if entry.get("runs") == 1 == entry.get("sessions"):
        yield Problem(
            where=str(place),
            what="one run in one session repeats nothing",
            hint="raise `runs` or `sessions`, or remove the entry",
        )


def _settings(entry: dict[str, Any]) -> RepeatSettings:
    keys = RepeatSettings.__struct_fields__
    written = msgspec.convert({key: entry[key] for key in keys if key in entry}, RepeatTable)
    return RepeatSettings(**{key: getattr(written, key) for key in keys})
