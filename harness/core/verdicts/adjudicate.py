"""Adjudication: whether golden or EP is nearer to a more precise answer; and distances from references."""

from collections.abc import Collection, Iterable
from typing import Literal

from harness.core.comparison.metrics import OutputFigures, measure_error
from harness.core.comparison.output_metrics import OutputMetrics, relative_error
from harness.core.comparison.tolerance import EXACT, Tolerance, ToleranceFor
from harness.core.records.reference_answer import Adjudication, ReferenceDistance
from harness.core.values.value import STRING, Tensor, Value, leaves_of
from harness.core.verdicts.compare import OutputComparison

CLEARLY = 2.0
"""An answer is nearer to the truth if its distance, times this factor, is at most the other's.

Healthy results that round in another order are 0.6 to 1.8 times as far from float64 as the golden. Measured
on outputs of the zoo's small models, by the CPU EP without optimizations and by ``onnx.reference``.
"""

UNCERTAINTY_FACTOR = 10.0
"""The golden's own uncertainty does not explain an error of more than this multiple of it."""

_KEPT = (
    *("name", "dtype", "elements", "max_abs", "delivered_bits", "mismatched"),
    *("rtol", "atol", "headroom", "frontier", "noise", "details"),
)
"""Fields of a row that a record keeps for a reference."""

NamedOutputs = Iterable[tuple[str, Value]]
"""Outputs by name."""


def failed_only(
    adjudications: Iterable[Adjudication], outputs: Iterable[OutputMetrics]
) -> tuple[Adjudication, ...]:
    """Return the adjudications of the outputs that fail."""
    failed = {output.name for output in outputs if output.mismatched}
    return tuple(row for row in adjudications if row.output in failed)


def reference_distances(
    comparison: OutputComparison, outputs: Collection[str]
) -> tuple[ReferenceDistance, ...]:
    """Return the rows of some outputs as a record keeps them for a reference."""
    return tuple(
        ReferenceDistance(**{field: getattr(row, field) for field in _KEPT})
        for row in comparison.outputs
        if row.name in outputs
    )


def beyond_uncertainty(doubt: OutputComparison, *errors: OutputComparison) -> tuple[str, ...]:
    """Return the outputs in which the EP's error is beyond what the golden's uncertainty explains.

    An infinite error is always beyond it; an infinite uncertainty explains any error. ``doubt`` compares the
    golden with another computation by the golden's own implementation. The errors are the EP's distances from
    each of the two, in one unit.
    """
    limits = {
        row.name: UNCERTAINTY_FACTOR * row.headroom for row in doubt.outputs if row.headroom is not None
    }
    headrooms = [{row.name: row.headroom for row in error.outputs} for error in errors]
    return tuple(
        name
        for name, limit in limits.items()
        if all((error := of.get(name)) is None or error >= limit for of in headrooms)
    )


def adjudicate(
    truth: NamedOutputs, golden: NamedOutputs, actual: NamedOutputs, tolerance_for: ToleranceFor, by: str
) -> tuple[Adjudication, ...]:
    """Measure how far golden and result lie from a more precise answer, output by output.

    Distances are ``norm(x - truth) / norm(truth)`` over the elements where both are finite. The nearer side
    is nearer in this mean *and* in the worst element, whose error counts in units of what the tolerance
    allows: many good elements do not make up for a few bad ones. Where only one answer is right (integers,
    booleans), the nearer side gives it and the other does not.

    These have no adjudication: strings; outputs that truth, golden and result do not have in one shape and
    type; outputs in which golden and truth differ in NaN or infinity (float64 need not overflow where float32
    does); and those whose distance is undefined, such as for a truth of zeros.

    The truth is in float64, and ``by`` is its source; the element types are those of the golden.
    """
    true, right, found = (dict(leaves_of(outputs)) for outputs in (truth, golden, actual))
    rows = (
        _of_output(name, true.get(name), right[name], found.get(name), tolerance_for, by) for name in right
    )
    return tuple(row for row in rows if row is not None)


def _of_output(
    name: str,
    truth: Tensor | None,
    golden: Tensor | None,
    actual: Tensor | None,
    tolerance_for: ToleranceFor,
    by: str,
) -> Adjudication | None:
    if truth is None or golden is None or actual is None or golden.dtype != actual.dtype:
        return None
    shapes = {truth.array.shape, golden.array.shape, actual.array.shape}
    if len(shapes) > 1 or STRING in {truth.dtype, golden.dtype}:
        return None
    tolerance = tolerance_for(golden.dtype)
    of_golden, of_ep = measure_error(truth, golden, tolerance), measure_error(truth, actual, tolerance)
    distances = _distance(of_golden), _distance(of_ep)
    if of_golden.special or distances[0] is None or distances[1] is None:
        return None
    return Adjudication(
        output=name,
        by=by,
        golden=distances[0],
        ep=distances[1],
        nearer=_nearer(of_golden, of_ep, distances[0], distances[1], tolerance),
    )


def _distance(measured: OutputFigures) -> float | None:
    if measured.max_abs == 0.0:
        return 0.0
    bits = measured.delivered_bits
    return None if bits is None else relative_error(bits)


def _nearer(
    of_golden: OutputFigures, of_ep: OutputFigures, golden: float, ep: float, tolerance: Tolerance
) -> Literal["golden", "ep", "equal"]:
    if of_ep.special:  # NaN where the truth has a number, or the reverse
        return "golden"
    if tolerance == EXACT:
        if (golden == 0.0) == (ep == 0.0):
            return "equal"
        return "golden" if golden == 0.0 else "ep"
    worst_golden, worst_ep = _worst(of_golden), _worst(of_ep)
    if ep < golden and CLEARLY * ep <= golden and CLEARLY * worst_ep <= worst_golden:
        return "ep"
    if golden < ep and CLEARLY * golden <= ep and CLEARLY * worst_golden <= worst_ep:
        return "golden"
    return "equal"


def _worst(measured: OutputFigures) -> float:
    return float("inf") if measured.headroom is None else measured.headroom
