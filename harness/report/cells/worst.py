"""The worst output of a cell: by delivered bits, by tolerance, by rounding noise and by lost precision."""

from harness.core.comparison.noise_limits import DEFAULT_LIMITS, rms_limit
from harness.core.comparison.output_metrics import Noise, PrecisionError
from harness.core.records.record import Record

HEADROOM_WARNING = 0.8
"""Share of the allowed error above which a rise is reported: the next rise may be a mismatch."""


def least_bits(record: Record) -> float | None:
    """Return the delivered bits of the least precise output; None if every output is exact or not a float."""
    return min((o.delivered_bits for o in record.outputs if o.delivered_bits is not None), default=None)


def most_headroom(record: Record) -> float | None:
    """Return the largest error over the allowed one; None if no output has a finite one.

    Outputs that are right because the CPU EP is equally far off do not count: no tolerance allows their
    error.
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
    """Return whether an output is right, whatever the tolerance, because the CPU EP is equally far off."""
    return error is not None and error.within


def worst_noise(record: Record) -> tuple[float, Noise] | None:
    """Return the noise of the output farthest beyond the default limits; None if no output has any.

    The first figure is the larger of its multiples over the default limit: above 1 it is beyond.
    """
    found = [
        (_excess(output.noise, output.elements), output.noise)
        for output in record.outputs
        if output.noise and output.noise.unmoved is None
    ]
    return max(found, key=lambda each: each[0], default=None)


def worst_error(record: Record) -> PrecisionError | None:
    """Return the error of the output that lost most precision.

    None if the model was not converted, or has no floating output. An unknown error is returned only if all
    are unknown.
    """
    found = [output.precision_error for output in record.outputs if output.precision_error is not None]
    return max(found, key=lambda each: -1.0 if each.error is None else each.error, default=None)


def _excess(noise: Noise, elements: int) -> float:
    return max(noise.rms / rms_limit(DEFAULT_LIMITS, elements), noise.max / DEFAULT_LIMITS.max)
