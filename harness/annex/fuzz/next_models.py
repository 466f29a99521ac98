"""The next models: those of the suite in order, without models that would show nothing new."""

from collections.abc import Collection, Iterator

from harness.annex.fuzz.coverage import ENOUGH, Coverage, choice_in
from harness.annex.fuzz.findings import Findings
from harness.annex.made.forms.numbered_forms import full_name
from harness.annex.made.fuzz_suite import CYCLE, MOST, choice_of, fuzz_name, fuzz_suite_name, is_graph
from harness.core.records.cell import AXIS_DEFAULTS, Cell

AXES = tuple(sorted(AXIS_DEFAULTS.items()))
"""The axes of each cell."""

_LUCKY = 4
"""If a choice was tried often enough, one in so many of its models is still made."""


class Candidates:
    """The cells of a seed, in order.

    Args:
        start: The first number.
        operators: Only these operators are used; all if there are none.
    """

    def __init__(
        self, seed: int, start: int, targets: tuple[str, ...], operators: Collection[str] = ()
    ) -> None:
        self._seed = seed
        self._targets = targets
        self._operators = frozenset(operators)
        self.next = start
        self.passed_over = 0
        """Return the number of cells that were skipped because they would have shown nothing new."""

    def drop(self, target: str) -> None:
        """Make no more cells of a target."""
        self._targets = tuple(name for name in self._targets if name != target)

    def take(self, count: int, coverage: Coverage, findings: Findings) -> Iterator[Cell]:
        """Yield the cells of the next models, at most ``count``; fewer only at the end of the seed."""
        suite = fuzz_suite_name(self._seed)
        made = 0
        while made < count and self.next < MOST and self._targets:
            number = self.next
            self.next += 1
            if not self._is_asked(number):
                continue
            name = fuzz_name(self._seed, number)
            choice = choice_in(name)
            wanted = [
                one
                for one in self._targets
                # No two graphs are alike.
                if is_graph(number) or not self._is_old(one, choice, number, coverage, findings)
            ]
            self.passed_over += len(self._targets) - len(wanted)
            made += bool(wanted)
            for target in wanted:
                yield Cell(suite=suite, model=name, target=target, axes=AXES)

    def _is_asked(self, number: int) -> bool:
        if not self._operators:
            return True
        return not is_graph(number) and full_name(choice_of(self._seed, number).operator) in self._operators

    def _is_old(self, target: str, choice: str, number: int, coverage: Coverage, findings: Findings) -> bool:
        if findings.explains(target, choice):
            return True
        return coverage.tried(target, choice) >= ENOUGH and number // CYCLE % _LUCKY != 0
