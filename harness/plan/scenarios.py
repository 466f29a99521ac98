"""Scenario names in a matrix file, and the table ``[scenarios]`` with their settings."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from harness.core.scenario import SCENARIOS

if TYPE_CHECKING:
    Scenario = str
else:
    Scenario = Literal[tuple(SCENARIOS)]  # mypy takes literal types only as they are spelled out


FIGURE = "scenario."
"""Prefix of axes that no matrix has: what follows is a setting of the scenario, such as ``threads``."""


class Concurrent(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the scenario ``concurrent``."""

    threads: Annotated[int, Meta(ge=2, le=256, description="Threads that run the session at once.")] = 4
    runs: Annotated[int, Meta(ge=1, le=100_000, description="Runs of each thread.")] = 25
    budget_s: Annotated[
        int,
        Meta(
            ge=1,
            le=86_400,
            description="Seconds after which no further run begins; each thread makes one in any case.",
        ),
    ] = 20


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the scenario ``sessions``."""

    count: Annotated[int, Meta(ge=2, le=100_000, description="Sessions, one after the other.")] = 20
    budget_s: Annotated[
        int,
        Meta(
            ge=1,
            le=86_400,
            description="Seconds after which no further session is opened; two are in any case.",
        ),
    ] = 60


class Scenarios(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of scenarios; the others have none."""

    concurrent: Annotated[Concurrent, Meta(description="Of the scenario `concurrent`.")] = Concurrent()
    sessions: Annotated[Sessions, Meta(description="Of the scenario `sessions`.")] = Sessions()

    def settings(self, scenario: str, axes: Iterable[tuple[str, str]] = ()) -> dict[str, int]:
        """Return the settings of one scenario as plain values; empty if it has none.

        Args:
            scenario: Its name.
            axes: Those of a cell; settings among them come before those of the matrix.
        """
        settings = dict(msgspec.to_builtins(getattr(self, scenario, {})))
        own = {axis.removeprefix(FIGURE): value for axis, value in axes if axis.startswith(FIGURE)}
        return settings | {key: int(value) for key, value in own.items() if key in settings}
