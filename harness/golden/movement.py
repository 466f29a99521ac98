"""Differences between two goldens of one model: the outputs that moved, and how far."""

from collections.abc import Iterator, Sequence

import msgspec

from harness.core.comparison.metrics import EXACT_FRONTIER
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.tolerance import computing_precision, default_tolerance
from harness.core.values.value import NamedValues
from harness.core.verdicts.compare import compare_all
from harness.corpus.case import Case


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """One output, or one part of it, that differs.

    Attributes:
        metrics: Its error against the old value, with the default tolerance of its model.
        message: The difference, if it is outside that tolerance; otherwise empty.
    """

    data_set: str
    metrics: OutputMetrics
    message: str = ""


def movements(case: Case, before: Sequence[NamedValues], now: Sequence[NamedValues]) -> Iterator[Movement]:
    """Yield every output with another value or on one side only; -0.0 equals +0.0, NaN equals NaN."""
    precision = computing_precision(case.facts.float_types, "float32")
    tolerance_for = lambda dtype: default_tolerance(dtype, precision)  # noqa: E731
    for data_set, old, new in zip(case.data_sets, before, now, strict=True):
        kept, computed = dict(old), dict(new)
        for name in kept | computed:
            sides = [[(name, side[name])] if name in side else [] for side in (kept, computed)]
            comparison = compare_all(sides[0], sides[1], tolerance_for)
            for row in comparison.outputs:
                # The frontier is exact only if all elements are equal.
                if row.frontier != EXACT_FRONTIER:
                    message = comparison.message if row.mismatched else ""
                    yield Movement(data_set=data_set.name, metrics=row, message=message)
