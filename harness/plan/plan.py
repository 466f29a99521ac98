"""A plan: the cells of a matrix in their order, and what the matrix says about each."""

import hashlib
from collections.abc import Callable
from functools import cached_property

import msgspec

from harness.core.cell import Cell
from harness.core.errors import Problem, UsageError
from harness.core.model_settings import ModelSettings
from harness.core.run_info import ShardInfo
from harness.core.verdict import Family, Verdict
from harness.plan.matrix import Expectation, LatencySettings, Matrix, has_latency
from harness.plan.repeat_entry import RepeatSettings, has_repeat
from harness.plan.selector import SelectorIndex, glob_matcher, model_matcher
from harness.plan.target import Target
from harness.plan.tolerance_entry import ToleranceEntry
from harness.plan.unmatched import nearest_names


class Plan(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """The cells to run. ``dict`` lets the indices be made on first use.

    Attributes:
        matrix: Where the cells come from.
        cells: By target, by configuration (option axes), by model, by the other axes.
        shard: Where these are a share of a larger plan.
    """

    matrix: Matrix
    cells: tuple[Cell, ...]
    shard: ShardInfo | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hexadecimal) of ``listing``: equal plans, equal digests."""
        return hashlib.sha256(self.listing().encode()).hexdigest()

    def listing(self) -> str:
        """The sorted ids, a line feed after each."""
        return "".join(f"{cell_id}\n" for cell_id in sorted(cell.id for cell in self.cells))

    def target(self, name: str) -> Target:
        """The target of that name.

        Raises:
            KeyError: The matrix has none.
        """
        return self._targets[name]

    def model_settings(self, suite: str, model: str) -> ModelSettings:
        """What the matrix says about one model; nothing where no entry selects it."""
        settings = ModelSettings()
        for matches, said in self._model_entries:
            if matches(suite, model):
                settings = said.over(settings)
        return settings

    def tolerance(self, cell: Cell) -> ToleranceEntry | None:
        """The last tolerance entry that matches, or None where the built-in tolerances hold."""
        last = self._tolerances.matching(cell).bit_length()
        return self.matrix.tolerance[last - 1] if last else None

    def expectation(self, cell: Cell) -> Expectation | None:
        """The last expect entry that matches, or None where nothing special is expected."""
        last = self._expectations.matching(cell).bit_length()
        return self.matrix.expect[last - 1] if last else None

    def latency(self, cell: Cell) -> LatencySettings | None:
        """How a cell's latency is measured, by the last latency entry that matches; None where it is not."""
        if not self.matrix.latency or not has_latency(cell):  # the former nearly always, and of every cell
            return None
        last = self._latencies.matching(cell).bit_length()
        return self.matrix.latency[last - 1].settings if last else None

    def repeat(self, cell: Cell) -> RepeatSettings | None:
        """How a cell is repeated, by the last repeat entry that matches; None where it is not."""
        if not self.matrix.repeat or not has_repeat(cell):
            return None
        last = self._repeats.matching(cell).bit_length()
        return self.matrix.repeat[last - 1].settings if last else None

    def only(self, target_glob: str | None = None, model_glob: str | None = None) -> "Plan":
        """A part of this plan, in the same order.

        Args:
            target_glob: On the target's name; None for all.
            model_glob: On ``suite/model``; without a slash also on the model alone; None for all.

        Raises:
            UsageError: A glob matches nothing, or the two match nothing together.
        """
        on_target = glob_matcher(() if target_glob is None else (target_glob,))
        on_model = model_matcher(() if model_glob is None else (model_glob,))
        targets = {name for name in {cell.target: None for cell in self.cells} if on_target(name)}
        models = {pair for pair in {(cell.suite, cell.model) for cell in self.cells} if on_model(*pair)}
        left = tuple(
            cell for cell in self.cells if cell.target in targets and (cell.suite, cell.model) in models
        )
        problems = []
        if target_glob is not None and not targets:
            problems.append(self._nothing("target", target_glob))
        if model_glob is not None and not models:
            problems.append(self._nothing("model", model_glob))
        if not left and not problems:
            what = f"no cell has both a target like {target_glob!r} and a model like {model_glob!r}"
            problems.append(Problem(where="--target, --model", what=what))
        if problems:
            raise UsageError(*problems)
        return Plan(matrix=self.matrix, cells=left)

    def _nothing(self, key: str, glob: str) -> Problem:
        hint = nearest_names(key, (glob,), self.cells, self.matrix.first_providers)
        return Problem(where=f"--{key}", what=f"no {key} of the plan matches {glob!r}", hint=hint)

    @cached_property
    def _targets(self) -> dict[str, Target]:
        return {target.name: target for target in self.matrix.targets}

    @cached_property
    def _model_entries(self) -> list[tuple[Callable[[str, str], bool], ModelSettings]]:
        return [(model_matcher(entry.models), entry.settings) for entry in self.matrix.model]

    @cached_property
    def _tolerances(self) -> SelectorIndex:
        selectors = [entry.selector for entry in self.matrix.tolerance]
        return SelectorIndex(selectors, self.matrix.first_providers)

    @cached_property
    def _expectations(self) -> SelectorIndex:
        selectors = [entry.selector for entry in self.matrix.expect]
        return SelectorIndex(selectors, self.matrix.first_providers)

    @cached_property
    def _latencies(self) -> SelectorIndex:
        selectors = [entry.selector for entry in self.matrix.latency]
        return SelectorIndex(selectors, self.matrix.first_providers)

    @cached_property
    def _repeats(self) -> SelectorIndex:
        selectors = [entry.selector for entry in self.matrix.repeat]
        return SelectorIndex(selectors, self.matrix.first_providers)


def is_expected(expectation: Expectation | None, verdict: Verdict) -> bool:
    """Whether a verdict is no news: one that is expected or, where nothing special is, none that failed.

    A skipped cell is never unexpected: nothing was tried, and ``required`` targets speak for themselves.
    """
    if verdict.family is Family.SKIPPED:
        return True
    if expectation is not None:
        return verdict in expectation.verdicts
    return verdict.family is not Family.FAILED
