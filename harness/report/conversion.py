"""What the conversion of models to a lower precision costs: on each lane's provider, and on the CPU EP."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from harness.core.output_metrics import PrecisionError
from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.report.figures import Spread, spread
from harness.report.lane import Lane


class LaneConversion(msgspec.Struct, frozen=True, kw_only=True):
    """Errors against the goldens of the models as they came, each cell with its worst output.

    Attributes:
        lane: Which.
        cells: Cells with a figure.
        error: Median of the relative error on the provider.
        cpu_error: Median of that on the CPU EP with the same converted model; null without any.
        ratios: The provider's error over the CPU EP's, of the cells that have one.
        unknown: Why cells lack one of the numbers -> how many, the most frequent first; such a cell counts
            among ``cells`` where it has the others.
    """

    lane: Lane
    cells: int
    error: float
    cpu_error: float | None
    ratios: Spread | None
    unknown: tuple[tuple[str, int], ...]


def worst_error(record: Record) -> PrecisionError | None:
    """Of the output that loses most; None where the model was not converted, or has no floating output.

    One whose error is unknown stands only for a cell in which all are.
    """
    found = [output.precision_error for output in record.outputs if output.precision_error is not None]
    return max(found, key=lambda each: -1.0 if each.error is None else each.error, default=None)


def lane_conversion(lane: Lane, records: Iterable[Record]) -> LaneConversion | None:
    """Measure one lane; None where none of its cells has a figure."""
    worst = [
        error
        for record in records
        if (record.verdict.family is Family.PASSED or record.verdict is Verdict.MISMATCH)
        and (error := worst_error(record)) is not None
    ]
    found = [each for each in worst if each.error is not None]
    errors = spread([each.error for each in found if each.error is not None])
    if errors is None:
        return None
    cpu = spread([each.cpu_error for each in found if each.cpu_error is not None])
    return LaneConversion(
        lane=lane,
        cells=len(found),
        error=errors.median,
        cpu_error=cpu.median if cpu else None,
        ratios=spread([each.ratio for each in found if each.ratio is not None]),
        unknown=tuple(Counter(each.unknown for each in worst if each.unknown).most_common()),
    )
