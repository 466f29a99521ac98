"""The fastest configuration that passes, by best-first search within a time budget.

Every target is tried unchanged, then with one change at a time, beginning at the fastest. Changes that made a
target faster are combined, and the fastest candidates are tried once more at the end. Each candidate is a
cell: it is judged by all rules, and its latency is measured while no other cell runs.
"""

import contextlib
import heapq
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from harness.core.record import Record
from harness.core.scenario import GENERATE, PLAIN
from harness.core.verdict import Family, Verdict
from harness.corpus.graph import graph_in
from harness.corpus.suites import Suite
from harness.engine.engine import Engine
from harness.engine.events import Finished, TargetReady
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.runs_entry import LatencySettings, RunsRequest
from harness.plan.selector import Selector
from harness.plan.surroundings import surroundings_of
from harness.plan.target import Target
from harness.studies.ask import Notify, matrix_for, results
from harness.studies.candidates import Candidate, Changes, base_of, changes_of

MEASURED = LatencySettings(warm_up=3, repeats=300, budget_s=1.0)
"""How each candidate is timed: enough runs for a stable median, and one second at most."""

MEASURED_TEXT = LatencySettings(warm_up=2, repeats=100, budget_s=0.25)
"""How each figure of generated text is timed: a candidate has some ten, for prompts and batches."""

_FASTER_BY = 0.05
"""Share by which a change must shorten the median to count as faster; less is within the usual noise."""

NEAR = 1.5
_SECOND_ROUND = 5
_FOR_SECOND_ROUND = 0.15
"""Up to 5 candidates within 1.5 times the fastest are tried once more in the last 15 % of the time.

The machine may have been busy the first time, and a recommended candidate must pass twice."""

_SHARE_OF_BUDGET = 0.25
"""Share of the time that a session, or a run, may take at most: a slow device must leave time for others."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its result."""

    candidate: Candidate
    record: Record

    @property
    def p50_ms(self) -> float | None:
        """Median time of a run, in milliseconds; None if it is rejected."""
        return None if self.fell_out else self.record.latency.p50_ms if self.record.latency else None

    @property
    def bits(self) -> float:
        """Delivered bits of its worst output; infinite if all are exact."""
        return min(
            (output.delivered_bits for output in self.record.outputs if output.delivered_bits is not None),
            default=float("inf"),
        )

    @property
    def fell_out(self) -> str:
        """Why it is rejected; empty if it is not."""
        record = self.record
        if record.family is not Family.PASSED:
            word = "too slow" if record.verdict in {Verdict.HANG, Verdict.TIMEOUT} else str(record.verdict)
            return f"{word}: {record.reason}" if record.reason else word
        if record.effect is not None and not record.effect.seen:
            return "no effect: the outputs are bit-identical without it"
        return "" if record.latency is not None else "its time was not measured"

    @property
    def may_be_changed(self) -> bool:
        """Whether changes are worth trying: False if it could not run, or is far too slow."""
        hopeless = {Family.SKIPPED, Family.EXCLUDED}
        return self.record.family not in hopeless and self.record.verdict is not Verdict.HANG

    def and_again(self, again: "Tried") -> "Tried":
        """Return the result of two tries: a rejected one if there is one, else the faster one."""
        if self.p50_ms is None or again.p50_ms is None:
            return self if self.p50_ms is None else again
        return self if self.p50_ms <= again.p50_ms else again


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search.

    Attributes:
        ranked: Candidates that passed, the fastest first, those on simulated devices last.
        fell_out: Rejected candidates, in the order of trying.
        not_tried: Candidates left, the most promising first.
        targets: The unchanged targets, by name.
        fingerprints: Their environments, by name.
        stopped_by: ``end`` if all were tried, ``budget``, or ``interrupt``.
        elapsed_s: Duration of the search, in seconds.
        simulated: Target -> the program that stands for its accelerator, of those where one does. What is
            fast there says nothing about a device, so it is never the winner.
    """

    ranked: tuple[Tried, ...]
    fell_out: tuple[Tried, ...]
    not_tried: tuple[Candidate, ...]
    targets: dict[str, Target]
    fingerprints: dict[str, dict[str, object]]
    stopped_by: str
    elapsed_s: float
    simulated: dict[str, str] = {}

    @property
    def front(self) -> frozenset[Candidate]:
        """The Pareto front: no other candidate is both faster and more exact than one of these."""
        return frozenset(
            one.candidate
            for place, one in enumerate(self.ranked)
            if one.candidate.target not in self.simulated
            and all(one.bits > other.bits for other in self.ranked[:place])
        )

    @property
    def winner(self) -> Tried | None:
        """The best of the fastest within noise: wholly on its target, then simple, then exact."""
        real = [one for one in self.ranked if one.candidate.target not in self.simulated]
        limit_ms = (real[0].p50_ms or 0.0) * (1 + _FASTER_BY) if real else 0.0
        equal = [one for one in real if (one.p50_ms or 0.0) <= limit_ms]
        return min(equal, key=_merits, default=None)


class Search:
    """The queue of candidates, the most promising first; results add further candidates.

    ``bases`` are the targets, ready for timing.
    """

    def __init__(
        self, targets: Sequence[Target], bases: Sequence[Target], operators: Collection[str]
    ) -> None:
        self._changes = {
            base.name: tuple(changes_of(target, base, operators))
            for target, base in zip(targets, bases, strict=True)
        }
        self._seen: set[Candidate] = set()
        self._waiting: list[tuple[float, int, Candidate]] = []
        self._faster: dict[str, list[Changes]] = {base.name: [] for base in bases}
        self._base_ms: dict[str, float] = {}
        self._best: dict[str, tuple[Candidate, float]] = {}
        for base in bases:
            self._add(0.0, Candidate(target=base.name))

    def next(self) -> Candidate | None:
        """Return the next candidate; None if none is left."""
        return heapq.heappop(self._waiting)[2] if self._waiting else None

    def waiting(self) -> tuple[Candidate, ...]:
        """Return the candidates left, in the order of trying."""
        return tuple(candidate for _, _, candidate in sorted(self._waiting))

    def learn(self, tried: Tried) -> None:
        """Add the candidates that follow from a result."""
        candidate = tried.candidate
        # A target that fails unchanged may pass in another precision: its changes come last.
        p50_ms = float("inf") if tried.p50_ms is None else tried.p50_ms
        if not candidate.changes:
            self._best[candidate.target] = candidate, p50_ms
            self._base_ms[candidate.target] = p50_ms
            for changes in self._changes[candidate.target] if tried.may_be_changed else ():
                self._add(p50_ms, candidate.with_changes(changes))
            return
        best, best_ms = self._best[candidate.target]
        faster = self._faster[candidate.target]
        if p50_ms < best_ms * (1 - _FASTER_BY):
            self._best[candidate.target] = candidate, p50_ms
            for changes in faster:
                self._combine(candidate, changes, p50_ms)
        if len(candidate.changes) == 1 and p50_ms < self._base_ms[candidate.target] * (1 - _FASTER_BY):
            faster.append(candidate.changes)
            self._combine(best, candidate.changes, best_ms)

    def _combine(self, candidate: Candidate, changes: Changes, expected_ms: float) -> None:
        if not dict(changes).keys() & dict(candidate.changes).keys():
            self._add(expected_ms, candidate.with_changes(changes))

    def _add(self, expected_ms: float, candidate: Candidate) -> None:
        if candidate not in self._seen:
            self._seen.add(candidate)
            heapq.heappush(self._waiting, (expected_ms, len(self._seen), candidate))


class Course:
    """The order of trying: the search, then a second round of the fastest candidates.

    The second round begins at ``search_until`` at the latest, on the monotonic clock, in seconds.
    """

    def __init__(self, search: Search, search_until: float) -> None:
        self.results: dict[Candidate, Tried] = {}
        self._search = search
        self._search_until = search_until
        self._second_round: list[Candidate] | None = None

    def next(self) -> Candidate | None:
        """Return the next candidate; None if none is left."""
        if self._second_round is None:
            if time.monotonic() < self._search_until and (candidate := self._search.next()) is not None:
                return candidate
            self._second_round = [one.candidate for one in self._near_the_fastest()]
        return self._second_round.pop(0) if self._second_round else None

    def take(self, result: Tried) -> None:
        """Enter a result, of a candidate's first or second try."""
        before = self.results.get(result.candidate)
        if before is None:
            self._search.learn(result)
        self.results[result.candidate] = result if before is None else before.and_again(result)

    def ranked(self) -> list[Tried]:
        """Return those that passed, the fastest first; of equal ones the more exact, then the simpler."""
        passed = (one for one in self.results.values() if one.p50_ms is not None)
        return sorted(passed, key=lambda one: (one.p50_ms or 0.0, -one.bits, len(one.candidate.changes)))

    def _near_the_fastest(self) -> list[Tried]:
        """Return the candidates of the second round; none if only one is near the fastest."""
        ranked = self.ranked()
        limit_ms = (ranked[0].p50_ms or 0.0) * NEAR if ranked else 0.0
        near = [one for one in ranked if (one.p50_ms or 0.0) <= limit_ms][:_SECOND_ROUND]
        return near if len(near) > 1 else []


def advise(
    suite: Suite,
    matrix: Matrix,
    *,
    until: float,
    notify: Notify,
    show: Callable[[Tried], None],
    scenario: str = PLAIN,
) -> Advice:
    """Search until all candidates are tried, the time is used up, or Ctrl-C is pressed.

    The suite holds one model. Targets, tolerances and dimensions are those of the matrix. ``until`` is on the
    monotonic clock, in seconds. In the scenario ``generate`` a run is that of one token.

    Raises:
        UsageError: The model cannot be read.
    """
    began = time.monotonic()
    budget_s = max(until - began, 0.0)
    bases = [base_of(target, max(1.0, budget_s * _SHARE_OF_BUDGET)) for target in matrix.targets]
    (model,) = suite.models()
    search = Search(matrix.targets, bases, graph_in(suite, model).op_types)
    course = Course(search, until - budget_s * _FOR_SECOND_ROUND)
    fingerprints: dict[str, dict[str, object]] = {}
    cells = tuple(candidate.cell(suite.name, model, scenario) for candidate in search.waiting())
    engine = Engine(Plan(matrix=_timed(matrix, bases, scenario), cells=cells), {suite.name: suite})
    stopped_by, candidate = "budget", course.next()
    with _closing(engine, budget_s):
        try:
            if candidate is not None:
                engine.submit([candidate.cell(suite.name, model, scenario)])
            for event in results(engine, notify):
                if isinstance(event, TargetReady):
                    fingerprints[event.target] = event.fingerprint
                elif isinstance(event, Finished) and candidate is not None:
                    result = Tried(candidate=candidate, record=event.record)
                    course.take(result)
                    show(result)
                    candidate = course.next()
                    if candidate is None:
                        stopped_by = "budget" if search.waiting() else "end"
                        break
                    engine.submit([candidate.cell(suite.name, model, scenario)])
        except KeyboardInterrupt:
            stopped_by = "interrupt"
    under_way = () if candidate is None or candidate in course.results else (candidate,)
    simulated = _simulated(bases, fingerprints)
    return Advice(
        # Stable: each part keeps its order.
        ranked=tuple(sorted(course.ranked(), key=lambda one: one.candidate.target in simulated)),
        fell_out=tuple(one for one in course.results.values() if one.p50_ms is None),
        not_tried=under_way + search.waiting(),
        targets={base.name: base for base in bases},
        fingerprints=fingerprints,
        simulated=simulated,
        stopped_by=stopped_by,
        elapsed_s=time.monotonic() - began,
    )


def _simulated(targets: Sequence[Target], fingerprints: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    found = {
        one.name: surroundings_of(fingerprints[one.name], one.provider, one.device).simulated_by
        for one in targets
        if one.name in fingerprints
    }
    return {name: by for name, by in found.items() if by}


@contextlib.contextmanager
def _closing(engine: Engine, budget_s: float) -> Iterator[None]:
    """Close an engine at the end, or after some time; that ends its events, whatever is running."""
    alarm = threading.Timer(budget_s, engine.close)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()
        engine.close()


def _timed(matrix: Matrix, targets: Sequence[Target], scenario: str) -> Matrix:
    settings = MEASURED_TEXT if scenario == GENERATE else MEASURED
    every = RunsRequest(selector=Selector(), settings=settings)
    return msgspec.structs.replace(matrix_for(matrix, targets), latency=(every,))


def _merits(one: Tried) -> tuple[bool, int, float]:
    return one.record.verdict is Verdict.PASS_PARTIAL, len(one.candidate.changes), -one.bits
