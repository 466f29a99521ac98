"""``[[latency]]`` and ``[[repeat]]`` entries: cells that run more often, to be timed or to be compared."""

from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from harness.core.cell import Cell
from harness.core.errors import Problem
from harness.core.latency import MOST_RUNS
from harness.core.scenario import SCENARIOS
from harness.core.structure import Place
from harness.plan.selector import Selector, SelectorTable, selector_from

Seconds = Annotated[float, Meta(gt=0)]
_Settings = TypeVar("_Settings", "LatencySettings", "RepeatSettings")


class LatencyTable(SelectorTable, kw_only=True):
    """How the time of the selected cells' runs is measured; later entries win."""

    warm_up: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_RUNS)],
        Meta(description="Runs that do not count, before the others."),
    ] = 10
    repeats: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_RUNS)], Meta(description="Runs that count, at most.")
    ] = 100
    budget_s: Annotated[
        Seconds,
        Meta(
            description="Seconds after which no further run begins, warm-up included; one run always counts."
        ),
    ] = 10.0


class RepeatTable(SelectorTable, kw_only=True):
    """How often the selected cells are run, to see whether they give the same; later entries win."""

    runs: Annotated[Annotated[int, Meta(ge=1, le=MOST_RUNS)], Meta(description="Runs in each session.")] = 10
    sessions: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_RUNS)], Meta(description="Sessions, one after the other.")
    ] = 2
    bit_equal: Annotated[bool, Meta(description="Whether all of them have to give the same bits.")] = False


class LatencySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How latency is measured; fields as in ``LatencyTable``."""

    warm_up: int
    repeats: int
    budget_s: float


class RepeatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a cell is repeated, with the first data set; fields as in ``RepeatTable``."""

    runs: int
    sessions: int
    bit_equal: bool


class LatencyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cells whose latency is measured, and how."""

    selector: Selector
    settings: LatencySettings


class RepeatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that are repeated, and how."""

    selector: Selector
    settings: RepeatSettings


def has_latency(cell: Cell) -> bool:
    """Return whether a cell's scenario has runs whose latency can be measured."""
    return SCENARIOS[cell.axis("scenario")].measurable


def has_repeat(cell: Cell) -> bool:
    """Return whether a cell's scenario has runs that can be repeated."""
    return SCENARIOS[cell.axis("scenario")].repeatable


def latency_request(entry: dict[str, Any]) -> LatencyRequest:
    """Return a checked ``[[latency]]`` entry in its normal form."""
    settings = _settings(msgspec.convert(entry, LatencyTable), LatencySettings)
    return LatencyRequest(selector=_selector(entry, LatencySettings), settings=settings)


def repeat_request(entry: dict[str, Any]) -> RepeatRequest:
    """Return a checked ``[[repeat]]`` entry in its normal form."""
    settings = _settings(msgspec.convert(entry, RepeatTable), RepeatSettings)
    return RepeatRequest(selector=_selector(entry, RepeatSettings), settings=settings)


def repeat_problems(entry: dict[str, Any], place: Place) -> Iterator[Problem]:
    """Yield what is wrong with a ``[[repeat]]`` entry whose values have the right types."""
    if entry.get("runs") == 1 == entry.get("sessions"):
        yield Problem(
            where=str(place),
            what="one run in one session repeats nothing",
            hint="raise `runs` or `sessions`, or remove the entry",
        )


def _settings(written: LatencyTable | RepeatTable, kind: type[_Settings]) -> _Settings:
    return kind(**{key: getattr(written, key) for key in kind.__struct_fields__})


def _selector(entry: dict[str, Any], kind: type[msgspec.Struct]) -> Selector:
    return selector_from(entry, not_keys=kind.__struct_fields__)
