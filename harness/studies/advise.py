"""The fastest configuration that passes, found best first within a limit of time.

Every target is tried as it is, then with one change at a time, beginning at the fastest; changes that made a
target faster are tried together, and those near the fastest once more in the end. What is tried is a cell
like any other: judged by all rules, its latency measured while nothing else of this harness computes.
"""

import heapq
import threading
import time
from collections.abc import Callable, Collection, Sequence

import msgspec

from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.corpus.graph import graph_in
from harness.corpus.suites import Suite
from harness.engine.engine import Engine
from harness.engine.events import Finished, Noted, TargetReady, Warned
from harness.plan.matrix import LatencyRequest, LatencySettings, Matrix
from harness.plan.plan import Plan
from harness.plan.selector import Selector
from harness.plan.target import Target
from harness.studies.candidates import Candidate, Changes, base_of, changes_of

MEASURED = LatencySettings(warm_up=3, repeats=300, budget_s=1.0)
"""How each candidate is timed: enough runs for a median that stands still, and one second at most."""

FASTER_BY = 0.05
"""Share by which a change must shorten the median to be built upon; less is within the noise of a machine."""

NEAR = 1.5
SECOND_ROUND = 5
FOR_SECOND_ROUND = 0.15
"""Up to 5 candidates within 1.5 times the fastest are tried once more in the last 15 % of the time.

A machine may have been busy the first time; and what does not pass twice is no advice."""

SHARE_OF_BUDGET = 0.25
"""No session, and no run, may take more than this part of the time: one slow device must not use it up."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with what came of it."""

    candidate: Candidate
    record: Record

    @property
    def p50_ms(self) -> float | None:
        """Median time of a run; None where it did not pass, or changed nothing."""
        return None if self.fell_out else self.record.latency.p50_ms if self.record.latency else None

    @property
    def bits(self) -> float:
        """Delivered bits of its worst output; infinite where all are exact."""
        return min(
            (output.delivered_bits for output in self.record.outputs if output.delivered_bits is not None),
            default=float("inf"),
        )

    @property
    def fell_out(self) -> str:
        """Why it is no candidate; empty where it is one."""
        record = self.record
        if record.family is not Family.PASSED:
            word = "too slow" if record.verdict is Verdict.HANG else str(record.verdict)
            return f"{word}: {record.reason}" if record.reason else word
        if record.effect is not None and not record.effect.seen:
            return "no effect: the outputs are bit-identical without it"
        return "" if record.latency is not None else "its time was not measured"

    @property
    def may_be_changed(self) -> bool:
        """Whether it may pass with a change: not where nothing was tried, nor where it is far too slow."""
        hopeless = {Family.SKIPPED, Family.EXCLUDED}
        return self.record.family not in hopeless and self.record.verdict is not Verdict.HANG

    def and_again(self, again: "Tried") -> "Tried":
        """The same after a second try: what fails once is out, else the less disturbed time counts."""
        if self.p50_ms is None or again.p50_ms is None:
            return self if self.p50_ms is None else again
        return self if self.p50_ms <= again.p50_ms else again


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What is known in the end.

    Attributes:
        ranked: Those that passed, the fastest first.
        fell_out: Those that did not, in the order of trying.
        not_tried: What was still to be tried, the most promising first.
        targets: The targets as they were tried first, by name.
        fingerprints: Their environments, by name.
        stopped_by: ``end`` where all was tried, ``budget``, or ``interrupt``.
        elapsed_s: Seconds that it took.
    """

    ranked: tuple[Tried, ...]
    fell_out: tuple[Tried, ...]
    not_tried: tuple[Candidate, ...]
    targets: dict[str, Target]
    fingerprints: dict[str, dict[str, object]]
    stopped_by: str
    elapsed_s: float

    @property
    def front(self) -> frozenset[Candidate]:
        """The Pareto front: candidates than which no other is both faster and more exact."""
        return frozenset(
            one.candidate
            for place, one in enumerate(self.ranked)
            if all(one.bits > other.bits for other in self.ranked[:place])
        )

    @property
    def winner(self) -> Tried | None:
        """Of those that are as fast as the fastest but for noise: wholly on its target, simple, exact."""
        limit_ms = (self.ranked[0].p50_ms or 0.0) * (1 + FASTER_BY) if self.ranked else 0.0
        equal = [one for one in self.ranked if (one.p50_ms or 0.0) <= limit_ms]
        return min(equal, key=_merits, default=None)


class Search:
    """Tries candidates in a given order, and thinks of further ones.

    Args:
        targets: The targets of the matrix.
        bases: The same as they are tried first.
        operators: Operator types of the model.
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
        """What to try next; None where nothing is left."""
        return heapq.heappop(self._waiting)[2] if self._waiting else None

    def waiting(self) -> tuple[Candidate, ...]:
        """What is left, in the order in which it would be tried."""
        return tuple(candidate for _, _, candidate in sorted(self._waiting))

    def learn(self, tried: Tried) -> None:
        """Think of what to try after this result."""
        candidate = tried.candidate
        # A target that fails as it is may pass in another precision: there is hope, after all others.
        p50_ms = float("inf") if tried.p50_ms is None else tried.p50_ms
        if not candidate.changes:
            self._best[candidate.target] = candidate, p50_ms
            self._base_ms[candidate.target] = p50_ms
            for changes in self._changes[candidate.target] if tried.may_be_changed else ():
                self._add(p50_ms, candidate.with_changes(changes))
            return
        best, best_ms = self._best[candidate.target]
        faster = self._faster[candidate.target]
        if p50_ms < best_ms * (1 - FASTER_BY):
            self._best[candidate.target] = candidate, p50_ms
            for changes in faster:
                self._combine(candidate, changes, p50_ms)
        if len(candidate.changes) == 1 and p50_ms < self._base_ms[candidate.target] * (1 - FASTER_BY):
            faster.append(candidate.changes)
            self._combine(best, candidate.changes, best_ms)

    def _combine(self, candidate: Candidate, changes: Changes, promise_ms: float) -> None:
        if not dict(changes).keys() & dict(candidate.changes).keys():
            self._add(promise_ms, candidate.with_changes(changes))

    def _add(self, promise_ms: float, candidate: Candidate) -> None:
        if candidate not in self._seen:
            self._seen.add(candidate)
            heapq.heappush(self._waiting, (promise_ms, len(self._seen), candidate))


class Course:
    """What was tried, and what comes next: the search, then those near the fastest once more.

    Args:
        search: Where candidates come from.
        search_until: When the second round begins at the latest, on the monotonic clock, in seconds.
    """

    def __init__(self, search: Search, search_until: float) -> None:
        self.results: dict[Candidate, Tried] = {}
        self._search = search
        self._search_until = search_until
        self._second_round: list[Candidate] | None = None

    def next(self) -> Candidate | None:
        """What to try next; None where nothing is left."""
        if self._second_round is None:
            if time.monotonic() < self._search_until and (candidate := self._search.next()) is not None:
                return candidate
            self._second_round = [one.candidate for one in self.near_the_fastest()]
        return self._second_round.pop(0) if self._second_round else None

    def take(self, result: Tried) -> None:
        """A candidate was tried, for the first time or once more."""
        before = self.results.get(result.candidate)
        if before is None:
            self._search.learn(result)
        self.results[result.candidate] = result if before is None else before.and_again(result)

    def ranked(self) -> list[Tried]:
        """Those that passed, the fastest first; among equally fast ones the more exact, then the simpler."""
        passed = (one for one in self.results.values() if one.p50_ms is not None)
        return sorted(passed, key=lambda one: (one.p50_ms or 0.0, -one.bits, len(one.candidate.changes)))

    def near_the_fastest(self) -> list[Tried]:
        """The first few, if there is more than one to choose from."""
        ranked = self.ranked()
        limit_ms = (ranked[0].p50_ms or 0.0) * NEAR if ranked else 0.0
        near = [one for one in ranked if (one.p50_ms or 0.0) <= limit_ms][:SECOND_ROUND]
        return near if len(near) > 1 else []


def advise(
    suite: Suite, matrix: Matrix, *, until: float, tell: Callable[[str], None], show: Callable[[Tried], None]
) -> Advice:
    """Search until everything that is worth it was tried, or the time is up.

    Ctrl-C ends it early; what is known then is told.

    Args:
        suite: Holds one model.
        matrix: Its targets, tolerances and dimensions count.
        until: When to stop, on the monotonic clock, in seconds.
        tell: Called with a line for people where something takes its time.
        show: Called with each result.

    Raises:
        UsageError: The model cannot be read.
    """
    began = time.monotonic()
    budget_s = max(until - began, 0.0)
    bases = [base_of(target, max(1.0, budget_s * SHARE_OF_BUDGET)) for target in matrix.targets]
    (model,) = suite.models()
    search = Search(matrix.targets, bases, graph_in(suite, model).op_types)
    course = Course(search, until - budget_s * FOR_SECOND_ROUND)
    fingerprints: dict[str, dict[str, object]] = {}
    every = LatencyRequest(selector=Selector(), settings=MEASURED)
    plan = Plan(
        matrix=msgspec.structs.replace(
            matrix, targets=tuple(bases), axes={}, exclude=(), expect=(), latency=(every,), repeat=()
        ),
        cells=tuple(candidate.cell(suite.name, model) for candidate in search.waiting()),
    )
    engine = Engine(plan, {suite.name: suite})
    # The engine's events end when it is closed, whatever it is busy with.
    alarm = threading.Timer(budget_s, engine.close)
    alarm.daemon = True
    alarm.start()
    stopped_by, candidate = "budget", course.next()
    try:
        if candidate is not None:
            engine.submit([candidate.cell(suite.name, model)])
        for event in engine.events():
            if isinstance(event, TargetReady):
                fingerprints[event.target] = event.fingerprint
            elif isinstance(event, Warned | Noted):
                tell(event.message)
            elif isinstance(event, Finished) and candidate is not None:
                result = Tried(candidate=candidate, record=event.record)
                course.take(result)
                show(result)
                candidate = course.next()
                if candidate is None:
                    stopped_by = "budget" if search.waiting() else "end"
                    break
                engine.submit([candidate.cell(suite.name, model)])
    except KeyboardInterrupt:
        stopped_by = "interrupt"
    finally:
        alarm.cancel()
        engine.close()
    under_way = () if candidate is None or candidate in course.results else (candidate,)
    return Advice(
        ranked=tuple(course.ranked()),
        fell_out=tuple(one for one in course.results.values() if one.p50_ms is None),
        not_tried=under_way + search.waiting(),
        targets={base.name: base for base in bases},
        fingerprints=fingerprints,
        stopped_by=stopped_by,
        elapsed_s=time.monotonic() - began,
    )


def _merits(one: Tried) -> tuple[bool, int, float]:
    return one.record.verdict is Verdict.PASS_PARTIAL, len(one.candidate.changes), -one.bits
