"""``[[latency]]`` and ``[[repeat]]`` entries: cells that run more often, for timing or comparison."""

import functools
import math
from collections.abc import Iterator
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from harness.core.files.structure import FilePlace
from harness.core.records.cell import Cell
from harness.core.records.model_settings import MOST_SIZE, SettingName
from harness.core.records.scenario import SCENARIOS
from harness.core.records.shape_times import MOST_SHAPES
from harness.core.text.errors import Problem
from harness.core.timing.latency import MOST_TIMED_RUNS
from harness.plan.selector import Selector, SelectorTable, selector_from

REPEAT = "repeat."
"""Prefix of axes that no matrix has: a field of ``RepeatSettings`` for this cell alone follows it."""

LONGEST_S = 604_800.0
"""A week: the longest limit, which every system can wait for."""

Seconds = Annotated[float, Meta(gt=0, le=LONGEST_S)]
_Size = Annotated[int, Meta(ge=1, le=MOST_SIZE)]
_Settings = TypeVar("_Settings", bound=msgspec.Struct)


class LatencyTable(SelectorTable, kw_only=True):
    """How the time of the selected cells' runs is measured; later entries win."""

    warm_up: Annotated[
        int, Meta(ge=0, le=MOST_TIMED_RUNS, description="Runs that do not count, before the others.")
    ] = 10
    repeats: Annotated[int, Meta(ge=1, le=MOST_TIMED_RUNS, description="Runs that count, at most.")] = 100
    budget_s: Annotated[
        Seconds,
        Meta(
            description="Seconds after which no further run begins, warm-up included; one run always counts."
        ),
    ] = 10.0
    nodes: Annotated[
        bool, Meta(description="Whether three more sessions tell the time of each node, by their profiles.")
    ] = False
    grid: Annotated[
        dict[SettingName, Annotated[list[_Size], Meta(min_length=1)]],
        Meta(description="Symbolic dimension -> sizes that the scenario dynamic_shapes runs and times."),
    ] = msgspec.field(default_factory=dict)


class RepeatTable(SelectorTable, kw_only=True):
    """How often the selected cells are run, to see whether their results agree; later entries win."""

    runs: Annotated[int, Meta(ge=1, le=MOST_TIMED_RUNS, description="Runs in each session.")] = 10
    sessions: Annotated[int, Meta(ge=1, le=MOST_TIMED_RUNS, description="Sessions, one after the other.")] = 2
    bit_equal: Annotated[bool, Meta(description="Whether all of them have to give the same bits.")] = False


class LatencySettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How latency is measured; fields as in ``LatencyTable``."""

    warm_up: int
    repeats: int
    budget_s: float
    nodes: bool = False
    grid: dict[str, list[int]] = {}


class RepeatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a cell is repeated, with the first data set; fields as in ``RepeatTable``."""

    runs: int
    sessions: int
    bit_equal: bool


class RunsRequest(msgspec.Struct, Generic[_Settings], frozen=True, kw_only=True):
    """Cells that run more often, and how."""

    selector: Selector
    settings: _Settings


def has_latency(cell: Cell) -> bool:
    """Return whether a cell's scenario has runs whose latency can be measured."""
    return SCENARIOS[cell.axis("scenario")].measurable


def has_repeat(cell: Cell) -> bool:
    """Return whether a cell's scenario has runs that can be repeated."""
    return SCENARIOS[cell.axis("scenario")].repeatable


def own_repeat(cell: Cell) -> RepeatSettings | None:
    """Return how a cell is repeated according to its own axes; None if they do not set it."""
    return _own_repeat(cell.axes)


@functools.lru_cache(maxsize=1024)  # asked three times for each cell, and many have the same axes
def _own_repeat(axes: tuple[tuple[str, str], ...]) -> RepeatSettings | None:
    own = {axis.removeprefix(REPEAT): int(value) for axis, value in axes if axis.startswith(REPEAT)}
    if not own:
        return None
    return RepeatSettings(
        runs=own.get("runs", 1), sessions=own.get("sessions", 1), bit_equal=bool(own.get("bit_equal", 0))
    )


def repeat_axes(settings: RepeatSettings) -> tuple[tuple[str, str], ...]:
    """Return the axes that make a cell repeat with these settings."""
    return tuple(
        (f"{REPEAT}{key}", str(int(value))) for key, value in msgspec.structs.asdict(settings).items()
    )


def repeat_problems(entry: dict[str, Any], place: FilePlace) -> Iterator[Problem]:
    """Yield what is wrong with a ``[[repeat]]`` entry whose values have the right types."""
    if entry.get("runs") == 1 == entry.get("sessions"):
        yield place.problem(
            "one run in one session repeats nothing", "raise `runs` or `sessions`, or remove the entry"
        )


def latency_problems(entry: dict[str, Any], place: FilePlace) -> Iterator[Problem]:
    """Yield what is wrong with a ``[[latency]]`` entry whose values have the right types."""
    grid = entry.get("grid") or {}
    points = math.prod(len(sizes) for sizes in grid.values())
    if points > MOST_SHAPES:
        what = f"the grid has {points:,} combinations; at most {MOST_SHAPES}"
        yield place.key("grid").problem(what, "remove sizes")


def runs_request(
    entry: dict[str, Any], table: type[SelectorTable], kind: type[_Settings]
) -> RunsRequest[_Settings]:
    """Return a checked entry, of a table with the fields of some settings, in its normal form."""
    keys = kind.__struct_fields__
    written = msgspec.convert(entry, table)
    settings = kind(**{key: getattr(written, key) for key in keys})
    return RunsRequest(selector=selector_from(entry, not_keys=keys), settings=settings)
