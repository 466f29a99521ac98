"""A plan: the cells of a matrix in their order, and the matrix's settings for each."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec import UNSET

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.findings.compute_share import share_on_ep
from harness.core.findings.delivered_precision import delivered_precision
from harness.core.records.cell import Cell
from harness.core.records.facts import Placement
from harness.core.records.model_settings import ModelSettings
from harness.core.records.run_info import ShardInfo
from harness.core.records.scenario import SHAPED
from harness.core.records.verdict import Verdict
from harness.core.text.errors import Problem, UsageError
from harness.core.text.globs import glob_matcher
from harness.plan.baselines import BaselineFit, fitting, with_baseline
from harness.plan.expectation import Expectation, applying
from harness.plan.matrix import Matrix
from harness.plan.runs_entry import (
    LatencySettings,
    RepeatSettings,
    RunsRequest,
    has_latency,
    has_repeat,
    own_repeat,
)
from harness.plan.selector import LastMatch, model_matcher
from harness.plan.surroundings import surroundings_of
from harness.plan.target import Target
from harness.plan.tolerance_entry import ToleranceEntry
from harness.plan.unmatched import nearest_names


class Plan(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """The cells to run. The option ``dict`` allows cached properties.

    Attributes:
        cells: By target, by configuration (option axes), by model, by the other axes.
        shard: Set if these cells are a share of a larger plan.
    """

    matrix: Matrix
    cells: tuple[Cell, ...]
    shard: ShardInfo | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hexadecimal) of ``listing``: equal plans, equal digests."""
        return hashlib.sha256(self.listing().encode()).hexdigest()

    def listing(self) -> str:
        """Return the sorted ids, a line feed after each."""
        return "".join(f"{cell_id}\n" for cell_id in sorted(cell.id for cell in self.cells))

    def target(self, name: str) -> Target:
        """Return the target of that name.

        Raises:
            KeyError: The matrix has none.
        """
        return self._targets[name]

    def model_settings(self, suite: str, model: str) -> ModelSettings:
        """Return the settings of one model; empty if no entry selects it."""
        settings = ModelSettings()
        for matches, entry in self._model_entries:
            if matches(suite, model):
                settings = entry.over(settings)
        return settings

    def tolerance(self, cell: Cell) -> ToleranceEntry | None:
        """Return the last tolerance entry that matches, or None: the built-in tolerances apply."""
        return self._tolerances.find(cell)

    def expectations(self, cell: Cell) -> Iterator[Expectation]:
        """Yield the expect entries that match, the last one first; the first whose ``where`` holds counts."""
        return self._expectations.all(cell)

    def expectation(self, cell: Cell) -> Expectation | None:
        """Return the last expect entry that matches and has no ``where``, or None."""
        return next((entry for entry in self.expectations(cell) if entry.where is UNSET), None)

    def expectation_at(
        self,
        cell: Cell,
        environment: Mapping[str, Any],
        outputs: Sequence[OutputMetrics],
        placement: Placement | None = None,
    ) -> tuple[Expectation | None, tuple[str, ...]]:
        """Return the expectation of a cell, None if it is no failure, and other entries' open conditions.

        The applying expect entry decides, and, in a run with baselines, the baselines decide, too.

        Args:
            cell: The cell.
            environment: The fingerprint of the target where it ran; empty if there is none.
            outputs: The rows of its record, which show what precision was delivered.
            placement: That of its record, which a baseline may know as well.
        """
        entries = self.expectations(cell)
        first = next(entries, None)
        found, unknown = first, tuple[str, ...]()
        if first is not None and first.where is not UNSET:
            target = self.target(cell.target)
            seen = surroundings_of(environment, target.provider, target.device)
            found, unknown = applying((first, *entries), seen, delivered_precision(outputs))
        fit = self.fit(cell.target, environment)
        if fit is None:
            return found, unknown
        return with_baseline(found, cell.id, fit, share_on_ep(placement)), unknown

    def fit(self, target: str, environment: Mapping[str, Any]) -> BaselineFit | None:
        """Return the baseline that fits a target in an environment; None in a run without baselines."""
        if self.matrix.baselines is UNSET:
            return None
        if (known := self._fits.get(target)) is None or known[0] != environment:
            one = self.target(target)
            seen = surroundings_of(environment, one.provider, one.device)
            known = environment, fitting(self.matrix.baselines, target, one.provider[0], seen)
            self._fits[target] = known
        return known[1]

    def exit_verdicts(self, target: str, environment: Mapping[str, Any]) -> tuple[Verdict, ...]:
        """Return the verdicts that the matrix expects for the ends of a target's processes, if any.

        ``environment`` is the fingerprint of the target; empty if there is none.
        """
        one = self.target(target)
        entries = self._exit_expectations.all(Cell(suite="", model="", target=target, axes=()))
        seen = surroundings_of(environment, one.provider, one.device)
        found, _ = applying(entries, seen, "")
        if found is None:
            return ()
        # If the list is used on other machines, one without failures must not fail the run.
        also = () if self.matrix.baselines is UNSET else (Verdict.PASS,)
        return (*found.verdicts, *also)

    def latency(self, cell: Cell) -> LatencySettings | None:
        """Return how a cell's latency is measured, by the last latency entry that matches, or None."""
        if not self.matrix.latency or not has_latency(cell):
            return None
        request = self._latencies.find(cell)
        return request.settings if request else None

    def grid(self, suite: str, model: str) -> dict[str, tuple[int, ...]]:
        """Return the sizes of each symbol for which a model is timed; empty without a grid.

        All targets run all of them, so that their times can be compared.
        """
        return self._grids.get((suite, model), {})

    def repeat(self, cell: Cell) -> RepeatSettings | None:
        """Return how a cell is repeated, by its own axes or the last repeat entry that matches, or None."""
        if not has_repeat(cell):
            return None
        if own := own_repeat(cell):
            return own
        if not self.matrix.repeat:
            return None
        request = self._repeats.find(cell)
        return request.settings if request else None

    def only(self, targets: Sequence[str] = (), models: Sequence[str] = ()) -> "Plan":
        """Return a part of this plan, in its order, by globs on the target's name and on ``suite/model``.

        Without globs of a kind everything matches; of several, one has to match. Without a slash, a glob on
        the model is tried on the model's name alone, too.

        Raises:
            UsageError: A glob matches nothing, or targets and models match nothing together.
        """
        chosen_targets, chosen_models = self._with_target(targets), self._with_model(models)
        chosen = tuple(
            cell
            for cell in self.cells
            if cell.target in chosen_targets and (cell.suite, cell.model) in chosen_models
        )
        problems = [
            *(self._nothing("target", glob) for glob in targets if not self._with_target([glob])),
            *(self._nothing("model", glob) for glob in models if not self._with_model([glob])),
        ]
        if not chosen and not problems:
            named = (" or ".join(map(repr, globs)) for globs in (targets, models))
            what = "no cell matches both the target {} and the model {}".format(*named)
            problems.append(Problem(where="--target, --model", what=what))
        if problems:
            raise UsageError(*problems)
        return Plan(matrix=self.matrix, cells=chosen)

    def _with_target(self, globs: Sequence[str]) -> set[str]:
        matches = glob_matcher(globs)
        return {name for name in {cell.target: None for cell in self.cells} if matches(name)}

    def _with_model(self, globs: Sequence[str]) -> set[tuple[str, str]]:
        matches = model_matcher(globs)
        return {pair for pair in {(cell.suite, cell.model) for cell in self.cells} if matches(*pair)}

    def _nothing(self, key: str, glob: str) -> Problem:
        hint = nearest_names(key, (glob,), self.cells, self.matrix.first_providers)
        return Problem(where=f"--{key}", what=f"no {key} of the plan matches {glob!r}", hint=hint)

    @cached_property
    def _fits(self) -> dict[str, tuple[Mapping[str, Any], BaselineFit]]:
        """Target -> the last environment, and its answer."""
        return {}

    @cached_property
    def _targets(self) -> dict[str, Target]:
        return {target.name: target for target in self.matrix.targets}

    @cached_property
    def _model_entries(self) -> list[tuple[Callable[[str, str], bool], ModelSettings]]:
        return [(model_matcher(entry.models), entry.settings) for entry in self.matrix.model]

    @cached_property
    def _tolerances(self) -> LastMatch[ToleranceEntry]:
        return LastMatch(self.matrix.tolerance, self.matrix.first_providers)

    @cached_property
    def _expectations(self) -> LastMatch[Expectation]:
        entries = [entry for entry in self.matrix.expect if not entry.of_target]
        return LastMatch(entries, self.matrix.first_providers)

    @cached_property
    def _exit_expectations(self) -> LastMatch[Expectation]:
        entries = [entry for entry in self.matrix.expect if entry.of_target]
        return LastMatch(entries, self.matrix.first_providers)

    @cached_property
    def _grids(self) -> dict[tuple[str, str], dict[str, tuple[int, ...]]]:
        found: dict[tuple[str, str], dict[str, tuple[int, ...]]] = {}
        if any(entry.settings.grid for entry in self.matrix.latency):
            for cell in self.cells:
                settings = self.latency(cell) if cell.axis("scenario") == SHAPED else None
                for symbol, sizes in (settings.grid if settings else {}).items():
                    known = found.setdefault((cell.suite, cell.model), {})
                    known[symbol] = tuple(sorted({*known.get(symbol, ()), *sizes}))
        return found

    @cached_property
    def _latencies(self) -> LastMatch[RunsRequest[LatencySettings]]:
        return LastMatch(self.matrix.latency, self.matrix.first_providers)

    @cached_property
    def _repeats(self) -> LastMatch[RunsRequest[RepeatSettings]]:
        return LastMatch(self.matrix.repeat, self.matrix.first_providers)
