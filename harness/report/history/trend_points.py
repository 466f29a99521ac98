"""The elements of a history's trends: runs, targets in runs, and cells that fail or come close."""

import msgspec

from harness.core.records.verdict import Verdict
from harness.report.changes.run_diff import CellChangeKind
from harness.report.words.figures import Share, brief


class RunPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the history; ``first`` is the UTC time of its first cell."""

    id: int
    name: str
    matrix: str
    first: str
    planned: int
    not_run: int
    complete: bool


class TrendPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One target at one point of its axes in one run.

    Attributes:
        median_bits: Median of the delivered bits of compute-heavy cells.
        headroom_high: Share of the allowed error that 95% of its right answers stay below.
        median_p50_ms: Median over its cells of their median latency.
        changed: ``key: before -> now`` of its environment since the last run that could use it.
        unavailable: Why the run could not use it; empty if it could.
    """

    run: RunPoint
    tried: int
    passed: int
    passed_in_part: int
    untested: int
    unsupported: int
    failed: int
    not_run: int
    cells: int
    median_bits: float | None
    headroom_high: float | None
    headroom_most: float | None
    median_p50_ms: float | None
    changed: tuple[str, ...]
    unavailable: str = ""

    @property
    def share(self) -> Share:
        """Return the share of passed cells, including those in part, among the tried ones."""
        return Share(self.passed + self.passed_in_part, self.tried, not self.run.complete)

    @property
    def passed_text(self) -> str:
        """This share, and the cells that were not run."""
        return self.share.text + (f", {self.not_run:,} not run" if self.not_run else "")

    @property
    def latency_text(self) -> str:
        """The median latency, or a dash."""
        return brief(self.median_p50_ms) + ("" if self.median_p50_ms is None else " ms")


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One target at one point of its axes, in the runs of one matrix; oldest first."""

    matrix: str
    label: str
    target: str
    points: tuple[TrendPoint, ...]


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that fails in the newest run of its matrix.

    Attributes:
        since: The first of the successive runs in which it fails.
        runs: Number of these runs.
        before: The run before them; null if the history begins with them.
        changed: Differences between the environments of its target in ``before`` and ``since``.
    """

    cell: str
    label: str
    verdict: Verdict
    expected: bool
    since: RunPoint
    runs: int
    before: RunPoint | None
    verdict_before: Verdict | None
    changed: tuple[str, ...]


class Rising(msgspec.Struct, frozen=True, kw_only=True):
    """A right answer whose error is close to the allowed one, and closer than before.

    Attributes:
        before: Median of its earlier errors, relative to the allowed one.
        runs: Number of results for the median ``before``.
    """

    cell: str
    label: str
    before: float
    now: float
    runs: int


class Turned(msgspec.Struct, frozen=True, kw_only=True):
    """A cell whose verdict in the newest run of its matrix differs from the previous run.

    Attributes:
        kind: The word of ``harness.report.changes.run_diff``.
        before: Its verdict in the previous run; null if that did not plan it.
        after: The same in the newest run.
        facts: The differences of its measure, or why it has no result on one side.
    """

    cell: str
    label: str
    kind: CellChangeKind
    before: Verdict | None
    after: Verdict | None
    facts: tuple[str, ...]


class CellPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one cell in one run."""

    run: RunPoint
    verdict: Verdict
    expected: bool
    headroom: float | None
    bits: float | None
    p50_ms: float | None


class Flake(msgspec.Struct, frozen=True, kw_only=True):
    """A cell whose verdict occasionally differs.

    Attributes:
        nights: Runs in which a retry had another verdict, or whose verdict differs from the runs before and
            after.
        judged: Runs with a result.
    """

    cell: str
    label: str
    nights: int
    judged: int


class LatencyStep(msgspec.Struct, frozen=True, kw_only=True):
    """A night from which on a cell's latency has another level.

    Attributes:
        since: The first run with the new level.
        before: The run before it with a latency.
        ratio: New level over the old one.
        low: Lower end of its interval of 95 %.
        high: Upper end.
        p: Probability of such a step, if all nights of its part are alike.
        nights: Runs with the new level.
        changed: Differences between the environments of its target in ``before`` and ``since``.
    """

    cell: str
    label: str
    since: RunPoint
    before: RunPoint
    ratio: float
    low: float
    high: float
    p: float
    nights: int
    changed: tuple[str, ...]

    @property
    def text(self) -> str:
        """The step in one sentence."""
        way = f"{self.ratio - 1:.0%} slower" if self.ratio > 1 else f"{1 - self.ratio:.0%} faster"
        runs = "the newest run" if self.nights == 1 else f"{self.nights:,} runs"
        sure = f"{self.low:.3g} to {self.high:.3g} times, p = {self.p:.2g}"
        why = f"; then changed: {', '.join(self.changed)}" if self.changed else "; no version changed then"
        return f"{way} since {self.since.first} ({runs}; {sure}){why}"


class Trends(msgspec.Struct, frozen=True, kw_only=True):
    """All trends.

    Attributes:
        failing: Cells that fail in the newest run of their matrix, the newest failures first.
        rising: Warnings, the closest to the limit first.
        turned: Cells with another verdict than in the run before, by kind.
        flakes: Flaky cells, the flakiest first.
        steps: Where the latency of a cell changed its level, the newest first.
    """

    schema: int
    runs: tuple[RunPoint, ...]
    series: tuple[Series, ...]
    failing: tuple[Failing, ...]
    rising: tuple[Rising, ...]
    turned: tuple[Turned, ...] = ()
    flakes: tuple[Flake, ...] = ()
    steps: tuple[LatencyStep, ...] = ()
