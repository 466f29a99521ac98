"""How much of the tolerance a cell's error used up, and from where on a rise is a warning."""

from harness.core.output_metrics import PrecisionError
from harness.core.record import Record

HEADROOM_WARNING = 0.8
"""A share of the allowed error above which a rise is told: the next one may be a mismatch."""


def most_headroom(record: Record) -> float | None:
    """The largest error over the allowed one of all outputs; None where no output has a finite one.

    Outputs of converted models do not count that are right because they are as near as those of the CPU EP:
    no tolerance allows their error.
    """
    return max(
        (
            output.headroom
            for output in record.outputs
            if output.headroom is not None and not is_within(output.precision_error)
        ),
        default=None,
    )


def is_within(error: PrecisionError | None) -> bool:
    """Whether an output is right, whatever a tolerance says, because the CPU EP is as far off."""
    return error is not None and error.within
