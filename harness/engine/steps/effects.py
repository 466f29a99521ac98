"""Effects of options: outputs compared with those of the same target without these options.

A provider can accept an option and ignore it, or compute that way anyway. Only the result shows this:
bit-identical outputs although the option should change the arithmetic.
"""

from typing import NamedTuple

import msgspec

from harness.catalog.option import Option, PrecisionMode
from harness.catalog.provider import Provider
from harness.core.lru_cache import LruCache
from harness.core.records.cell import Cell
from harness.core.records.facts import Facts, OptionEffect
from harness.core.records.precision import COMPUTE_HEAVY
from harness.core.records.variant_use import NO_USES, Uses
from harness.core.records.verdict import Family, Verdict
from harness.core.values.value_digest import values_digest
from harness.engine.tasks.configuration import Configuration, configuration
from harness.engine.tasks.measurement import Measurement
from harness.engine.tasks.outcome import Outcome, Ran
from harness.engine.tasks.task import CellTask
from harness.plan.known_provider import EP, known_provider
from harness.plan.plan import Plan
from harness.plan.target import Target, fixed_axes

UNCHANGED = frozenset({"float32", "as_model"})
"""Computing precisions of modes that follow the model."""

NO_ANSWER = ""
"""Replaces a digest if the model does not run without the options, or if two runs differ."""

MOST_DIGESTS = 1 << 16
"""Number of baselines whose digest is kept; an older one is computed again for a cell that needs it."""

_TRUTH = {"1": "true", "0": "false", "true": "true", "false": "false"}
_NOTHING: frozenset[str] = frozenset()
_EXACT_TYPES = ("int", "uint", "bool", "string")
_Axes = tuple[tuple[str, str], ...]


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a configuration that should change the computation, and the configuration without them."""

    options: tuple[str, ...]
    without: Configuration


class BaselineKey(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies outputs without the options.

    ``session`` has the axes that are no part of a configuration.
    """

    configuration: Configuration
    session: _Axes
    suite: str
    model: str


class WaitingCell(NamedTuple):
    """A cell that waits for its baseline, with the digest of its own outputs."""

    task: CellTask
    measured: Measurement
    outcome: Ran
    doubt: Doubt
    digest: str


class Effects:
    """The outputs without the options, for the cells of a plan.

    If two targets differ only in such options, the cells of one are the baselines of the other, and run only
    once.
    """

    def __init__(self, plan: Plan, baselines: int = MOST_DIGESTS, uses: Uses = NO_USES) -> None:
        """Begin without baselines; digests of so many ``baselines`` are kept.

        ``uses`` say which options a variant of a package brings.
        """
        self._plan = plan
        self._uses = uses
        self._doubts: dict[tuple[str, _Axes, frozenset[str]], Doubt | None] = {}
        self._digests: LruCache[BaselineKey, str] = LruCache(baselines)
        self._coming: set[BaselineKey] = set()
        # All cells of a configuration share a few tuples of axes, so this is far smaller than the plan.
        points = {(cell.target, cell.axes, self._brought(cell)): cell for cell in plan.cells}.values()
        doubts = [doubt for cell in points if (doubt := self.doubt(cell)) is not None]
        wanted = {doubt.without for doubt in doubts}
        self._serving = {
            (cell.target, cell.axes): own
            for cell in (points if wanted else ())
            if (own := configuration(plan.target(cell.target), cell)) in wanted
        }

    def doubt(self, cell: Cell) -> Doubt | None:
        """Return the options of a cell that should change the computation; None without any."""
        key = cell.target, cell.axes, self._brought(cell)
        if key not in self._doubts:
            self._doubts[key] = _doubt(self._plan.target(cell.target), cell, key[-1])
        return self._doubts[key]

    def _brought(self, cell: Cell) -> frozenset[str]:
        """Return the keys of the options that a variant of a package brings."""
        of_suite = self._uses.get(cell.suite)
        use = of_suite.get(cell.model) if of_suite else None
        return frozenset(use.options) if use is not None else _NOTHING

    def digest(self, baseline: BaselineKey) -> str | None:
        """Return the digest of a baseline's outputs; ``NO_ANSWER`` if it has none, None if unknown."""
        return self._digests.get(baseline)

    def is_coming(self, baseline: BaselineKey) -> bool:
        """Return whether a submitted cell that has not ended is this baseline."""
        return baseline in self._coming

    def expect(self, cell: Cell) -> None:
        """Note that a cell was submitted; it may be a baseline of others."""
        if own := self._serving.get((cell.target, cell.axes)):
            self._coming.add(baseline_of(own, cell))

    def serves(self, cell: Cell) -> BaselineKey | None:
        """Return the baseline that a cell provides for others; None if it provides none."""
        own = self._serving.get((cell.target, cell.axes))
        return baseline_of(own, cell) if own else None

    def keep(self, baseline: BaselineKey, outcome: object) -> str:
        """Keep the outcome of a baseline; return the digest of its outputs."""
        self._coming.discard(baseline)
        steady = isinstance(outcome, Ran) and outcome.second is None
        digest = outputs_digest(outcome) if steady else NO_ANSWER  # type: ignore[arg-type]
        self._digests.put(baseline, digest, 0)
        return digest


def baseline_of(own: Configuration, cell: Cell) -> BaselineKey:
    """Return the baseline that a cell provides in a configuration."""
    fixed = fixed_axes(cell)
    session = tuple(pair for pair in cell.axes if pair not in fixed)
    return BaselineKey(configuration=own, session=session, suite=cell.suite, model=cell.model)


def can_tell(facts: Facts, verdict: Verdict, outcome: Outcome) -> bool:
    """Return whether a cell's outputs can show an effect, or the lack of one.

    The provider has computed, two runs agree, and there is rounding: a floating output differs from the
    golden, or comes from an operator that sums products. Exact results (integers, Relu, Identity) are the
    same in every arithmetic.
    """
    if not isinstance(outcome, Ran) or outcome.second is not None or not outcome.placement.ep_nodes:
        return False
    floating = [output for output in facts.outputs if not output.dtype.startswith(_EXACT_TYPES)]
    rounds = COMPUTE_HEAVY & outcome.placement.ep_ops.keys() or any(output.max_abs for output in floating)
    return bool(floating and rounds) and verdict.family in (Family.PASSED, Family.FAILED)


def with_effect(facts: Facts, doubt: Doubt, digest: str, without: str) -> Facts:
    """Return facts that say whether the options had an effect."""
    if without == NO_ANSWER:
        return facts
    effect = OptionEffect(options=doubt.options, seen=digest != without)
    return msgspec.structs.replace(facts, effect=effect)


def outputs_digest(outcome: Ran) -> str:
    """Return SHA-256 over all outputs of all data sets, bit by bit."""
    return values_digest(outcome.outputs)


def _doubt(target: Target, cell: Cell, brought: frozenset[str]) -> Doubt | None:
    provider = known_provider(target.provider)
    if provider is None and not brought:
        return None
    plugin = target.plugin is not None
    mode = target.mode_at(cell)
    asks = provider is not None and mode is not None and _asks(provider, mode, plugin=plugin)
    left = _in_model_precision(cell) if asks else cell
    options = target.options_at(left)
    suspects = [
        key
        for key, value in options.items()
        if _should_matter(provider, key, value, plugin=plugin, brought=key in brought)
    ]
    if not asks and not suspects:
        return None
    without = msgspec.structs.replace(
        configuration(target, left),
        options=tuple(sorted((key, value) for key, value in options.items() if key not in suspects)),
    )
    modes = (f"{EP}{mode.name}",) if asks and mode is not None else ()
    return Doubt(options=(*modes, *sorted(suspects)), without=without)


def _in_model_precision(cell: Cell) -> Cell:
    axes = tuple((axis, "fp32" if axis == "precision" else value) for axis, value in cell.axes)
    return msgspec.structs.replace(cell, axes=axes)


def _asks(provider: Provider, mode: PrecisionMode, *, plugin: bool) -> bool:
    """Return whether a mode should change the arithmetic: the model's own mode and the default do not."""
    options = ((provider.option(key, plugin=plugin), value) for key, value in mode.options.items())
    chosen = mode.session or mode.env or any(not _is_default(option, value) for option, value in options)
    return mode.computes not in UNCHANGED and bool(chosen)


def _should_matter(provider: Provider | None, key: str, value: str, *, plugin: bool, brought: bool) -> bool:
    """Return whether an option should change the computation, or has an unknown purpose.

    Of an unknown provider only what a package ``brought`` is asked for: an author put it there for a purpose.
    """
    if provider is None:
        return brought
    option = provider.option(key, plugin=plugin)
    if option is None:
        return brought or provider.unknown_options == "ignored"
    return option.changes_numerics and not _is_default(option, value)


def _is_default(option: Option | None, value: str) -> bool:
    if option is None or option.default is None:
        return False
    if option.type == "bool":
        return _TRUTH.get(value.casefold(), value) == _TRUTH.get(option.default.casefold(), option.default)
    return value == option.default
