"""How much of the tolerance a cell's error used up, and from where on a rise is a warning."""

from harness.core.record import Record

HEADROOM_WARNING = 0.8
"""A share of the allowed error above which a rise is told: the next one may be a mismatch."""


def most_headroom(record: Record) -> float | None:
    """The largest error over the allowed one of all outputs; None where no output has a finite one."""
    return max((output.headroom for output in record.outputs if output.headroom is not None), default=None)
