"""Finds the models that must run before a failing one in the same process: state leaks between sessions."""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from harness.annex.triage.failure import Failure, rerun_failure
from harness.annex.triage.time_budget import TimeBudget
from harness.core.records.record import Record
from harness.corpus.suites.suite import Suite
from harness.plan.matrix import Matrix

EARLIER = (128, 1024)
"""Numbers of earlier cells that are tried, the latest first: this many, then more."""

MOST_NEEDED = 3
"""Largest number of preceding models with which a failure is triaged further."""

MOST_RERUNS = 24
"""Largest number of attempts: each one runs all remaining earlier cells again."""

Earlier = Callable[[Record], Sequence[Record]]
"""Returns the cells that ran before a cell in its process, in their order."""


class Reruns(msgspec.Struct, frozen=True):
    """Runs the cell of a record again, as its run did."""

    matrix: Matrix
    suites: Mapping[str, Suite]
    record: Record
    earlier: Earlier
    budget: TimeBudget

    def again(self) -> Failure:
        """Run it in a fresh process."""
        return self._after(())[self.record.cell]

    def preceding(self) -> tuple[Failure, ...]:
        """Return the earlier cells without which it does not fail.

        Empty if it does not fail after many of them either.

        Each attempt runs in fresh processes. First a bisection finds the latest cell from which on all are
        needed; then the cells behind it are left out, in pieces. If more than ``MOST_NEEDED`` pieces are
        needed, more cells are needed too, and the search ends.
        """
        reruns = 0

        def fails_after(cells: Sequence[Record]) -> bool:
            nonlocal reruns
            reruns += 1
            return self._after(cells)[self.record.cell].fails_again

        earlier = _enough(self.earlier(self.record), fails_after, self.budget)
        if not earlier:
            return ()
        least, most = 0, len(earlier) - 1
        while least < most and not self.budget.spent:
            start = (least + most + 1) // 2
            if fails_after(earlier[start:]):
                least = start
            else:
                most = start - 1
        needed = list(earlier[least:])
        if len(needed) > 1 and fails_after(needed[:1]):
            needed = needed[:1]
        size = len(needed) // 2
        pieces = 1  # the first cell is needed
        while size and len(needed) > 1 and pieces <= MOST_NEEDED:
            pieces = 1
            for start in range(len(needed) - size, 0, -size):
                if reruns >= MOST_RERUNS or self.budget.spent or pieces > MOST_NEEDED:
                    break
                rest = needed[:start] + needed[start + size :]
                if fails_after(rest):
                    needed = rest
                else:
                    pieces += 1
            size //= 2
        found = self._after(needed)
        return tuple(found[one.cell] for one in needed)

    def _after(self, cells: Sequence[Record]) -> Mapping[str, Failure]:
        """Run it after other cells, in a fresh process."""
        return rerun_failure(self.matrix, self.suites, (*cells, self.record)).failures


def earlier_cells(records: Collection[Record], record: Record) -> tuple[Record, ...]:
    """Return the given cells that ran before a cell in its process, in their order."""
    own = record.process
    if own is None:
        return ()
    same = [
        other
        for other in records
        if other.target == record.target
        and other.process is not None
        and other.process.pid == own.pid
        and other.process.session < own.session
    ]
    return tuple(sorted(same, key=lambda one: one.process.session if one.process else 0))


def _enough(
    earlier: Sequence[Record], fails_after: Callable[[Sequence[Record]], bool], budget: TimeBudget
) -> Sequence[Record]:
    """Return the latest cells after which the failure appears; none if it does not."""
    for count in EARLIER:
        latest = earlier[-count:]
        if not latest or fails_after(latest):
            return latest
        if len(latest) == len(earlier) or budget.spent:
            break
    return ()
