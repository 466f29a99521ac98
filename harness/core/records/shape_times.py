"""The time of a run for each of several shapes of the inputs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import msgspec

from harness.core.records.scenario import Observation

MOST_SHAPES = 60
"""Combinations of sizes that one cell times."""

_SHAPES = "shapes"

_Ms = Annotated[float, msgspec.Meta(ge=0, le=1e15)]  # neither NaN nor infinite, which pass no limit


class ShapeTime(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a run with one shape, in milliseconds.

    Attributes:
        runs: Runs that count.
        p50_ms: Median.
        low_ms: Lower quartile.
        high_ms: Upper quartile.
        waiting_threads: As in ``harness.core.timing.latency.Latency``.
    """

    runs: Annotated[int, msgspec.Meta(ge=1, le=1 << 31)]
    p50_ms: _Ms
    low_ms: _Ms
    high_ms: _Ms
    waiting_threads: _Ms | None = None


def times_by_shape(scenario: Mapping[str, Observation], times: Sequence[ShapeTime]) -> dict[str, ShapeTime]:
    """Return shape -> its time, without the given shape, which runs first and last; empty without a grid.

    Shapes are in words, such as ``batch=2, sequence=8``; the observations of a scenario have them.
    """
    names = scenario.get(_SHAPES, ())
    if not isinstance(names, tuple) or len(names) != len(times):
        return {}
    return {str(name): one for name, one in zip(names, times, strict=True) if "=" in str(name)}


def sizes_in(shape: str) -> Iterator[tuple[str, int]]:
    """Yield symbol and size of a shape in words; nothing for one that is none."""
    for part in shape.split(", "):
        symbol, _, size = part.rpartition("=")
        if symbol and size.isdigit():
            yield symbol, int(size)
