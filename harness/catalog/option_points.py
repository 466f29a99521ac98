"""Options that do nothing: cells that differ in one option alone, and whose answers differ in no bit.

Nothing runs for this; of options that the catalogue has, ``harness.engine.steps.effects`` asks more exactly.
A record has, of each output, how far it is from the golden in several figures. Where they are equal for every
output, and the golden is, the outputs have the same bits: surely so where these are the golden's, and but for
a chance of no account elsewhere.
"""

import functools
import statistics
from collections.abc import Hashable, Iterator

import msgspec

from harness.catalog.catalog import find_provider
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.operators.book import operators_with

LEAST_ANSWERS = 3
"""Number of answers that have to agree: a single model may give an option nothing to do."""

SAME_LATENCY = 0.05
"""Relative difference up to which two latencies count as the same."""


class SilentOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option of a target that changed no answer.

    Attributes:
        option: Its key.
        values: The values that were compared.
        answers: Answers that have the same bits with all values.
        latency: Ratio of the medians, slowest over fastest value; null if not measured with every value.
    """

    target: str
    option: str
    values: tuple[str, ...]
    answers: int
    latency: float | None = None

    @property
    def words(self) -> str:
        """What was seen, in one line."""
        values = " and ".join(self.values) if len(self.values) < 3 else ", ".join(self.values)  # noqa: PLR2004
        told = f"option {self.option}: {values} changed no bit of {self.answers:,} answers"
        if self.latency is None:
            return told
        if self.latency <= 1 + SAME_LATENCY:
            return f"{told}; latency the same"
        return f"{told}; the slowest takes {self.latency:.2f} x the time of the fastest"


class OptionPoints:
    """The answers of one target, grouped by everything except one option."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[Hashable, dict[str, tuple[Hashable, float | None]]]] = {}

    def add(self, record: Record) -> None:
        """Add a cell."""
        options = [axis for axis in record.axes if _is_in_question(record.provider, axis)]
        if not options or not _can_differ(record):
            return
        bits = record.golden_digest, tuple(map(_figures, record.outputs))
        p50_ms = None if record.latency is None else record.latency.p50_ms
        for axis in options:
            rest = tuple(sorted((key, value) for key, value in record.axes.items() if key != axis))
            place = self._answers.setdefault(axis, {}).setdefault((record.suite, record.model, rest), {})
            place[record.axes[axis]] = bits, p50_ms

    def silent(self, target: str) -> Iterator[SilentOption]:
        """Yield the options that changed none of several answers."""
        for axis, places in self._answers.items():
            compared = [place for place in places.values() if len(place) > 1]
            if len(compared) < LEAST_ANSWERS:
                continue
            if any(len({bits for bits, _ in place.values()}) > 1 for place in compared):
                continue
            yield SilentOption(
                target=target,
                option=axis.removeprefix("option."),
                values=tuple(dict.fromkeys(value for place in compared for value in place)),
                answers=len(compared),
                latency=_ratio(compared),
            )


@functools.cache
def _is_in_question(provider: str, axis: str) -> bool:
    """Return whether an axis sets an option of the EP that the catalogue lacks."""
    kind, _, key = axis.partition(".")
    if kind != "option":
        return False
    known = find_provider(provider)
    return known is None or all(option.key != key for option in known.options)


def _can_differ(record: Record) -> bool:
    """Return whether the cell ran on the EP and has an answer that rounding changes."""
    return (
        record.verdict.family in {Family.PASSED, Family.FAILED}
        and record.placement is not None
        and record.placement.ep_nodes > 0
        and any(output.dtype in _ROUNDED and output.elements > 1 for output in record.outputs)
        and not _ROUNDING.isdisjoint(record.placement.ep_ops)
    )


_ROUNDED = frozenset({"float32", "float64"})
"""Element types that a coarser arithmetic changes."""

_ROUNDING = operators_with(lambda row: row.differs_in_float16)
"""Operators whose float32 and float16 results differ for ordinary values."""


def _figures(output: OutputMetrics) -> Hashable:
    figures = output.max_abs, output.max_rel, output.rmse, output.cosine, output.mismatched
    return output.name, output.dtype, tuple(output.shape), figures


def _ratio(places: list[dict[str, tuple[Hashable, float | None]]]) -> float | None:
    """Return the ratio of the slowest value to the fastest: the median over the models."""
    ratios = []
    for place in places:
        known = [p50_ms for _, p50_ms in place.values() if p50_ms]
        if len(known) < len(place):
            return None
        ratios.append(max(known) / min(known))
    return statistics.median(ratios)
