"""Running totals of a run, for the terminal and for the exit code."""

from collections import Counter

import msgspec

from harness.core.exit_code import EXIT_INCOMPLETE, EXIT_OK, EXIT_UNEXPECTED
from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.plan.plan import Plan


class TargetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target's totals.

    Attributes:
        target: Its name.
        planned: Cells of the plan.
        verdicts: Verdict -> cells.
        families: Family -> cells.
        unexpected: Cells whose verdict the matrix does not expect.
        weak: Cells of the family passed, by verdict, whose golden could not tell a right answer from most
            wrong ones.
        suspicious: Cells that pass although their error is far above the rounding noise of their model.
        flaky: Cells that gave another verdict when tried again; their first one counts.
        timed: Cells whose latency was measured.
        disturbed: Those of them that something else was in the way of.
        by_noise: Cells judged by the rounding noise of their models.
        without_noise: Cells that were to be, but whose model has none.
        reason: Why the target is unavailable; empty where it is not.
    """

    target: str
    planned: int
    verdicts: dict[Verdict, int]
    families: dict[Family, int]
    unexpected: int
    weak: dict[Verdict, int] = {}
    suspicious: int = 0
    flaky: int = 0
    timed: int = 0
    disturbed: int = 0
    by_noise: int = 0
    without_noise: int = 0
    reason: str = ""


class Tally:
    """Counts records against a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._planned = Counter(cell.target for cell in plan.cells)
        self._verdicts: dict[str, Counter[Verdict]] = {target: Counter() for target in self._planned}
        self._unexpected: Counter[str] = Counter()
        self._weak: dict[str, Counter[Verdict]] = {target: Counter() for target in self._planned}
        self._suspicious: Counter[str] = Counter()
        self._flaky: Counter[str] = Counter()
        self._timed: Counter[str] = Counter()
        self._disturbed: Counter[str] = Counter()
        self._by_noise: Counter[str] = Counter()
        self._without_noise: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}

    def add(self, *records: Record) -> None:
        """Count records."""
        for record in records:
            self._verdicts[record.target][record.verdict] += 1
            self._unexpected[record.target] += not record.expected
            self._weak[record.target][record.verdict] += record.rests_on_weak_golden
            self._suspicious[record.target] += bool(record.suspicious)
            self._flaky[record.target] += record.flaky
            if record.latency is not None:
                self._timed[record.target] += 1
                self._disturbed[record.target] += record.latency.disturbed
            self._by_noise[record.target] += any(
                output.noise is not None and output.noise.rms_limit is not None for output in record.outputs
            )
            self._without_noise[record.target] += bool(record.no_spread)
            if record.verdict is Verdict.UNAVAILABLE:
                self._reasons.setdefault(record.target, f"{record.cause}: {record.reason}")

    @property
    def recorded(self) -> int:
        """Records so far."""
        return sum(verdicts.total() for verdicts in self._verdicts.values())

    @property
    def complete(self) -> bool:
        """Whether every planned cell has its record."""
        return self.recorded == len(self._plan.cells)

    @property
    def unexpected(self) -> int:
        """Records whose verdict the matrix does not expect."""
        return self._unexpected.total()

    @property
    def without_verdict(self) -> int:
        """Cells that an exception of the harness's own has cost their verdict."""
        return sum(verdicts[Verdict.HARNESS_ERROR] for verdicts in self._verdicts.values())

    def rows(self) -> tuple[TargetRow, ...]:
        """One row for each target, in the order of the plan."""
        return tuple(
            TargetRow(
                target=target,
                planned=planned,
                verdicts=dict(self._verdicts[target]),
                families=_families(self._verdicts[target]),
                unexpected=self._unexpected[target],
                weak=dict(self._weak[target]),
                suspicious=self._suspicious[target],
                flaky=self._flaky[target],
                timed=self._timed[target],
                disturbed=self._disturbed[target],
                by_noise=self._by_noise[target],
                without_noise=self._without_noise[target],
                reason=self._reasons.get(target, ""),
            )
            for target, planned in self._planned.items()
        )

    def missing_required(self) -> tuple[str, ...]:
        """Targets that the matrix requires and that turned out to be unavailable."""
        return tuple(target for target in self._reasons if self._plan.target(target).required)

    def exit_code(self) -> int:
        """0 as expected, 1 unexpected verdicts, 3 a target or a verdict that is missing."""
        if self.missing_required() or not self.complete or self.without_verdict:
            return EXIT_INCOMPLETE
        return EXIT_UNEXPECTED if self.unexpected else EXIT_OK


def _families(verdicts: Counter[Verdict]) -> dict[Family, int]:
    families: Counter[Family] = Counter()
    for verdict, count in verdicts.items():
        families[verdict.family] += count
    return dict(families)
