"""Running totals of a run, for the terminal and for the exit code."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from harness.catalog.option_points import OptionPoints
from harness.core.findings.lacking import lack_of
from harness.core.findings.leak import Lives, cell_leaks
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.record import Record
from harness.core.records.run_info import RunInfo, TargetExit
from harness.core.records.verdict import Family, Verdict, is_result, says_nothing
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_UNEXPECTED
from harness.core.timing.node_times import time_words
from harness.core.verdicts.ranks import rank
from harness.engine.tasks.events import ProcessEnded
from harness.plan.baselines import BaselineFit
from harness.plan.plan import Plan
from harness.plan.surroundings import surroundings_of
from harness.run.exits import with_end
from harness.run.not_judged import ModelGroup, SharedCause, add_to, says_nothing_yet


class IllMannered(msgspec.Struct):
    """Cells that have manners of one kind: the first of them with a description, and their number."""

    first: str
    words: str
    cells: int = 0


class TargetTotals(msgspec.Struct, kw_only=True):
    """The totals of one target; all counts are cells.

    Attributes:
        unexpected: Cells with a verdict that the matrix does not expect.
        known: Cells that failed as matrix or baseline expect, or without anything to compare with.
        weak: Passed cells, by verdict, whose golden most wrong answers would match, too.
        approximate: Cells that passed because of a document of the EP, with an error larger than the model's
            rounding.
        unconfirmed: Cells that failed by values which float64 has not confirmed as wrong.
        these_alone: Cells that failed with their generated inputs, and with neither of two others.
        flaky: Cells with another verdict on a retry; the first one counts.
        timed: Cells with a measured latency.
        times: Cells whose nodes were timed, with where their time goes.
        disturbed: Timed cells that were measured while other programs used the processors.
        by_noise: Cells judged by the rounding noise of their models.
        without_noise: Cells that should be judged in this way, but whose model has no noise.
        unchecked: Cells with a check that was left out.
        options: Its answers by option, which reveal options without effect.
        lives: Resources of its processes, which reveal leaks.
        leaking: Cells of the scenario ``sessions`` that leak, with what.
        ill_mannered: Kind -> cells that made unexpected changes to their process, and the first of these with
            a description.
        reason: Why the target is unavailable; empty if it is not.
        places: Cells by place; empty if the target has no places.
        alone: Place -> cells that fail there and at no other place.
        not_judged: Cells that were tried but say nothing, by cause.
        exits: How its processes ended that were asked to end.
        simulated: The program that stands for its accelerator; empty without one, or if it is not known.
        lacks: Missing feature of its device -> cells that fail, or are refused, without it.
        fit: The fitting baseline; None without baselines, or if no process of the target has started.
        results: Cell -> its verdict, for cells with a result that any baseline lists as failing.
    """

    target: str
    planned: int
    verdicts: Counter[Verdict] = msgspec.field(default_factory=Counter)
    unexpected: int = 0
    known: int = 0
    weak: Counter[Verdict] = msgspec.field(default_factory=Counter)
    approximate: int = 0
    unconfirmed: int = 0
    these_alone: int = 0
    flaky: int = 0
    timed: int = 0
    disturbed: int = 0
    times: dict[str, str] = {}
    by_noise: int = 0
    without_noise: int = 0
    unchecked: int = 0
    options: OptionPoints = msgspec.field(default_factory=OptionPoints)
    lives: Lives = msgspec.field(default_factory=Lives)
    leaking: dict[str, tuple[str, ...]] = {}
    ill_mannered: dict[str, IllMannered] = {}
    reason: str = ""
    places: Counter[str] = msgspec.field(default_factory=Counter)
    alone: Counter[str] = msgspec.field(default_factory=Counter)
    not_judged: dict[SharedCause, ModelGroup] = {}
    exits: TargetExit = TargetExit()
    simulated: str = ""
    lacks: Counter[str] = msgspec.field(default_factory=Counter)
    fit: BaselineFit | None = None
    results: dict[str, Verdict] = {}

    @property
    def is_first(self) -> bool:
        """Return whether it ran on a kind of machine that no baseline covers."""
        return self.fit is not None and self.fit.baseline is None

    @property
    def mended(self) -> tuple[str, ...]:
        """Return cells with a better result than the failure in the baseline, sorted."""
        known = {} if self.fit is None or self.fit.baseline is None else self.fit.baseline.by_cell
        found = (
            cell for cell, now in self.results.items() if cell in known and rank(now) > rank(known[cell])
        )
        return tuple(sorted(found))

    @property
    def families(self) -> Counter[Family]:
        """Cells by family."""
        families: Counter[Family] = Counter()
        for verdict, count in self.verdicts.items():
            families[verdict.family] += count
        return families

    @property
    def judged(self) -> int:
        """Return the cells that say something about the provider."""
        return sum(count for verdict, count in self.verdicts.items() if is_result(verdict))

    @property
    def says_nothing(self) -> bool:
        """Return whether its cells were tried, and none of them says anything about the provider."""
        return says_nothing([*self.verdicts])

    def add(self, record: Record) -> None:
        """Count a record."""
        self.verdicts[record.verdict] += 1
        self.unexpected += not record.expected
        self.known += record.expected and record.verdict.family is Family.FAILED
        self.weak[record.verdict] += record.rests_on_weak_golden
        self.approximate += bool(record.approximate)
        self.unconfirmed += bool(record.unconfirmed)
        self.these_alone += record.fails_with_these_alone
        self.flaky += record.flaky
        if record.place:
            self.places[record.place] += 1
            if record.fails_here_alone:
                self.alone[record.place] += 1
        self._add_times(record)
        if says_nothing_yet(record):
            add_to(self.not_judged, record)
        self.by_noise += any(
            output.noise is not None and output.noise.rms_limit is not None for output in record.outputs
        )
        self.without_noise += bool(record.no_spread)
        self.unchecked += bool(record.unchecked)
        if feature := lack_of(record):
            self.lacks[feature] += 1
        self.options.add(record)
        self.lives.add(record.process)
        if leaks := cell_leaks(record):
            self.leaking[record.cell] = leaks
        for manner in record.manners:
            known = self.ill_mannered.setdefault(manner.kind, IllMannered(record.cell, manner.words))
            known.cells += 1
        if record.lacks_target:
            output = f"; its output is in {record.artifacts}/output.txt" if record.artifacts else ""
            self.reason = self.reason or f"{record.cause}: {record.reason}{output}"

    def _add_times(self, record: Record) -> None:
        if record.latency is None:
            return
        self.timed += 1
        self.disturbed += record.latency.disturbed
        if record.node_times is not None and (words := time_words(record.node_times, record.latency.p50_ms)):
            self.times[record.cell] = words


class Tally:
    """Counts records of a plan.

    Args:
        plan: The plan of the run.
        named: Whether the user has named its targets, so that the run is about each of them.
    """

    def __init__(self, plan: Plan, *, named: bool = False) -> None:
        self._plan = plan
        self._named = named
        planned = Counter(cell.target for cell in plan.cells)
        self._rows = {target: TargetTotals(target=target, planned=count) for target, count in planned.items()}
        self._known = {cell for one in plan.matrix.baselines or () for cell in one.by_cell}

    def add(self, *records: Record) -> None:
        """Count records."""
        for record in records:
            row = self._rows[record.target]
            row.add(record)
            if record.cell in self._known and is_result(record.verdict):
                row.results[record.cell] = record.verdict

    def resume(self, before: RunInfo) -> None:
        """Begin with what the earlier part of the run has found about the targets."""
        for target, found in before.exits.items():
            self._rows[target].exits = found
        for target, environment in before.targets.items():
            self.ready(target, environment)

    def ready(self, target: str, environment: Mapping[str, Any]) -> None:
        """Note the device facts in a target's environment, and the baseline that fits it."""
        one = self._plan.target(target)
        self._rows[target].fit = self._plan.fit(target, environment)
        self._rows[target].simulated = surroundings_of(environment, one.provider, one.device).simulated_by

    def ended(self, event: ProcessEnded) -> None:
        """Count the end of a process that was asked to."""
        row = self._rows[event.target]
        row.exits = with_end(row.exits, event)

    def unexpected_exits(self) -> tuple[str, ...]:
        """Return the targets whose processes did not end as the matrix expects."""
        return tuple(row.target for row in self.rows() if not row.exits.expected)

    @property
    def matrix_path(self) -> str:
        """The matrix file, as the run was given it."""
        return self._plan.matrix.path

    @property
    def has_baselines(self) -> bool:
        """Whether the run is compared with baselines, even if there is none yet."""
        return self._plan.matrix.baselines is not UNSET

    @property
    def recorded(self) -> int:
        """Records so far."""
        return sum(row.verdicts.total() for row in self.rows())

    @property
    def complete(self) -> bool:
        """Whether every planned cell has its record."""
        return self.recorded == len(self._plan.cells)

    @property
    def unexpected(self) -> int:
        """Records with a verdict that the matrix does not expect."""
        return sum(row.unexpected for row in self.rows())

    @property
    def without_verdict(self) -> int:
        """Records without a verdict: a file changed during the run, or the harness itself failed."""
        return sum(row.families[Family.MISSING] for row in self.rows())

    def rows(self) -> tuple[TargetTotals, ...]:
        """Return one row for each target, in the order of the plan; ``add`` changes them."""
        return tuple(self._rows.values())

    def missing_required(self) -> tuple[str, ...]:
        """Return the required targets that are unavailable."""
        return tuple(
            row.target for row in self.rows() if row.reason and self._plan.target(row.target).required
        )

    def without_evidence(self) -> tuple[str, ...]:
        """Return targets that the run is about and that have no judged cell, so that the run proves nothing.

        The run is about each target that is required or that the user has named. Of all targets other than
        the CPU provider's, one with a judged cell is enough: a matrix may name providers that a machine
        lacks. A share of a plan needs no evidence: other shares may have it.
        """
        if self._plan.shard is not None:
            return ()
        rows = self.rows()
        of_providers = [
            row for row in rows if self._plan.target(row.target).provider[0] != CPU_PROVIDER
        ] or rows
        nothing = not any(row.judged for row in of_providers)
        return tuple(
            row.target
            for row in rows
            if not row.judged
            if self._named or self._plan.target(row.target).required or (nothing and row in of_providers)
        )

    def exit_code(self) -> int:
        """Return 0 as expected, 1 unexpected, 3 if a required target, a verdict or evidence is missing."""
        if self.missing_required() or not self.complete or self.without_verdict:
            return EXIT_INCOMPLETE
        if self.without_evidence():
            return EXIT_INCOMPLETE
        return EXIT_UNEXPECTED if self.unexpected or self.unexpected_exits() else EXIT_OK
