"""The order in which configurations of one model are tried: a best-first search, then a final in turns."""

import heapq
import time
from collections.abc import Collection, Sequence

from harness.annex.advise.candidates import AxisChanges, Candidate, changes_of
from harness.annex.advise.search_result import TriedCandidate
from harness.core.findings.compute_share import is_the_cpus
from harness.core.records.verdict import WRONG_NUMBERS
from harness.core.timing.pace import NEAR_FASTEST, is_reliable
from harness.plan.target import Target

_FASTER_BY = 0.05
"""Share by which a change must shorten the median to count as faster; less is within the usual noise."""

_FINALISTS = 4
"""Largest number of candidates within ``NEAR_FASTEST`` times the fastest that are tried in turns.

The machine may have been busy the first time, and a recommended candidate must pass each time."""


class CandidateQueue:
    """The queue of candidates, the most promising first; results add further candidates.

    Args:
        targets: The targets as the matrix has them.
        bases: The same, ready for timing.
        operators: Types of the model's nodes.
        remedies_first: Whether precisions of a target with wrong numbers come before what may be faster.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        bases: Sequence[Target],
        operators: Collection[str],
        *,
        remedies_first: bool = False,
    ) -> None:
        self._remedies_first = remedies_first
        self._changes = {
            base.name: tuple(changes_of(target, base, operators))
            for target, base in zip(targets, bases, strict=True)
        }
        self._seen: set[Candidate] = set()
        self._waiting: list[tuple[float, int, Candidate]] = []
        self._faster: dict[str, list[AxisChanges]] = {base.name: [] for base in bases}
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

    def learn(self, tried: TriedCandidate) -> None:
        """Add the candidates that follow from a result."""
        candidate = tried.candidate
        # A target that fails unchanged may pass in another precision: its changes come last.
        p50_ms = float("inf") if tried.p50_ms is None else tried.p50_ms
        if not candidate.changes:
            self._best[candidate.target] = candidate, p50_ms
            self._base_ms[candidate.target] = p50_ms
            wrong = self._remedies_first and tried.record.verdict in WRONG_NUMBERS
            for changes in self._changes[candidate.target] if tried.may_be_changed else ():
                is_remedy = wrong and changes[0][0] == "precision"
                self._add(0.0 if is_remedy else p50_ms, candidate.with_changes(changes))
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

    def _combine(self, candidate: Candidate, changes: AxisChanges, expected_ms: float) -> None:
        if not dict(changes).keys() & dict(candidate.changes).keys():
            self._add(expected_ms, candidate.with_changes(changes))

    def _add(self, expected_ms: float, candidate: Candidate) -> None:
        if candidate not in self._seen:
            self._seen.add(candidate)
            heapq.heappush(self._waiting, (expected_ms, len(self._seen), candidate))


class Course:
    """The order of trying: the search, then a final of the fastest candidates, forth and back.

    The final begins at ``search_until`` at the latest, on the monotonic clock, in seconds.
    """

    def __init__(self, search: CandidateQueue, search_until: float) -> None:
        self.results: dict[Candidate, TriedCandidate] = {}
        self.simulated: dict[str, str] = {}
        """Target -> the program that stands for its accelerator: no finalist."""
        self.search = search
        self.search_until = search_until
        self._final: list[Candidate] | None = None

    def next(self) -> Candidate | None:
        """Return the next candidate; None if none is left."""
        if self._final is None:
            if time.monotonic() < self.search_until and (candidate := self.search.next()) is not None:
                return candidate
            finalists = [one.candidate for one in self._finalists()]
            self._final = [*finalists, *reversed(finalists)]
        return self._final.pop(0) if self._final else None

    def take(self, result: TriedCandidate) -> None:
        """Enter a result, of the search or of the final."""
        before = self.results.get(result.candidate)
        if before is None:
            self.search.learn(result)
        self.results[result.candidate] = result if before is None else before.and_again(result)

    def ranked(self) -> list[TriedCandidate]:
        """Return those that passed, the fastest first.

        Equally fast ones are ordered by exactness, then by simplicity.
        """
        passed = (one for one in self.results.values() if one.p50_ms is not None)
        return sorted(passed, key=lambda one: (one.p50_ms or 0.0, -one.bits, len(one.candidate.changes)))

    def _finalists(self) -> list[TriedCandidate]:
        """Return those near the fastest, and of other targets the best if its time was disturbed; or none.

        In turns with the fastest it shows whether it is slower, however busy the machine.
        """
        ranked = [
            one
            for one in self.ranked()
            if one.candidate.target not in self.simulated and not is_the_cpus(one.record)
        ]
        limit_ms = (ranked[0].p50_ms or 0.0) * NEAR_FASTEST if ranked else 0.0
        near = [one for one in ranked if (one.p50_ms or 0.0) <= limit_ms][:_FINALISTS]
        best = {one.candidate.target: one for one in reversed(ranked)}
        for one in near:
            best.pop(one.candidate.target, None)
        disturbed = [one for one in ranked if one in best.values() and not is_reliable(one.rounds)]
        found = (near + disturbed)[:_FINALISTS]
        return found if len(found) > 1 else []
