"""Scenario names in a matrix file, and the table ``[scenarios]`` with their settings."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harness.core.records.model_settings import MOST_SIZE
from harness.core.records.scenario import SCENARIOS
from harness.core.records.ways import WAYS, TextSettings

if TYPE_CHECKING:
    ScenarioName = str
    WayName = str
else:
    ScenarioName = Literal[tuple(SCENARIOS)]  # mypy accepts only literal types that are spelled out
    WayName = Literal[tuple(WAYS)]

LONGEST = 1 << 17
"""Largest number of positions of a text; no model here has a larger context."""

MOST_NEW = 1024
"""Largest number of single steps."""

MOST_S = 86_400
"""Largest time of a scenario in seconds, also the default: the amount of work does not depend on time."""

FIGURE = "scenario."
"""Prefix of axes that no matrix has: a setting of the scenario follows it, such as ``threads``."""


class Concurrent(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the scenario ``concurrent``."""

    threads: Annotated[int, Meta(ge=2, le=256, description="Threads that run the session at once.")] = 4
    runs: Annotated[int, Meta(ge=1, le=100_000, description="Runs of each thread.")] = 25
    budget_s: Annotated[
        int,
        Meta(
            ge=1,
            le=MOST_S,
            description="Seconds after which no further run begins, for safety; each thread makes one in any "
            "case. The record lists the missing runs.",
        ),
    ] = MOST_S


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the scenario ``sessions``."""

    count: Annotated[int, Meta(ge=2, le=100_000, description="Sessions, one after the other.")] = 20
    budget_s: Annotated[
        int,
        Meta(
            ge=1,
            le=MOST_S,
            description="Seconds after which no further session is opened, for safety; two are in any case. "
            "The record has the number of missing ones.",
        ),
    ] = MOST_S


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the scenario ``lifecycle``."""

    rounds: Annotated[
        int, Meta(ge=2, le=1000, description="How often one process registers and unregisters the library.")
    ] = 5


class Generate(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the scenario ``generate``."""

    ways: Annotated[
        list[WayName], Meta(min_length=1, description="Ways to go through the text; all without it.")
    ] = msgspec.field(default_factory=lambda: list(WAYS))
    length: Annotated[
        int, Meta(ge=2, le=LONGEST, description="Positions of the text, less if the model holds fewer.")
    ] = TextSettings().length
    longest: Annotated[
        int,
        Meta(
            ge=0,
            le=LONGEST,
            description="Positions of the longest text of the way `lengths`, less if the model holds fewer; "
            "0 for `length`.",
        ),
    ] = TextSettings().longest
    new_tokens: Annotated[
        int, Meta(ge=1, le=MOST_NEW, description="Single steps at its end, in the ways that have such.")
    ] = TextSettings().new_tokens
    prompt: Annotated[
        list[Annotated[int, Meta(ge=0, le=MOST_SIZE)]],
        Meta(description="Token ids with which the text begins; the rest is drawn from a seed."),
    ] = []

    @property
    def text(self) -> TextSettings:
        """The settings as values."""
        return msgspec.convert(self, TextSettings, from_attributes=True)


class Scenarios(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of scenarios; the others have none."""

    concurrent: Annotated[Concurrent, Meta(description="Of the scenario `concurrent`.")] = Concurrent()
    sessions: Annotated[Sessions, Meta(description="Of the scenario `sessions`.")] = Sessions()
    lifecycle: Annotated[Lifecycle, Meta(description="Of the scenario `lifecycle`.")] = Lifecycle()
    generate: Annotated[Generate, Meta(description="Of the scenario `generate`.")] = Generate()

    def settings(self, scenario: str, axes: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
        """Return the settings of one scenario as plain values; empty if it has none.

        Settings among the axes of a cell override those of the matrix.
        """
        table = getattr(self, scenario, None)
        if table is None:
            return {}
        settings = dict(msgspec.to_builtins(table))
        own = {axis.removeprefix(FIGURE): value for axis, value in axes if axis.startswith(FIGURE)}
        return settings | {key: int(value) for key, value in own.items() if key in settings}
