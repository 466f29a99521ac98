"""Who is wrong where a result and its golden differ: references take sides, and float64 says who is nearer.

A golden is what one implementation computed, and may be the worse of the two. But a faulty result must never
find an excuse, so whatever is not plain leaves the verdict as it is.
"""

from collections.abc import Collection, Iterable
from collections.abc import Sequence as Seq
from typing import Literal

import msgspec

from harness.core.compare import Comparison, ToleranceFor
from harness.core.lost import LOST, relative_error
from harness.core.metrics import Measured, measure
from harness.core.output_metrics import OutputMetrics
from harness.core.reference import REFERENCE, Adjudication, Apart, Reference
from harness.core.tolerance import EXACT, Tolerance
from harness.core.value import STRING, Tensor, Value, leaves
from harness.core.verdict import Verdict

CLEARLY = 2.0
"""An answer is nearer to the truth where its distance is at most the other's by this factor.

Healthy results that round in another order are 0.6 to 1.8 times as far from float64 as the golden is: outputs
of the zoo's small models, by the CPU EP without optimizations and by ``onnx.reference``.
"""

DWARFS = 10.0
"""An error so many times as large as the golden's own uncertainty is not explained by that."""

Named = Seq[tuple[str, Value]]
"""Outputs by name."""

Nearer = Literal["golden", "ep", "equal"]


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a verdict that rests on a golden.

    Attributes:
        disputed: Why the golden judges nobody here; empty where the verdict stands.
        far: By how much the golden differs from the reference that disputes it; empty where none does.
        note: What is odd nevertheless; may be empty.
    """

    disputed: str = ""
    far: str = ""
    note: str = ""


def of_failed(adjudication: Seq[Adjudication], outputs: Iterable[OutputMetrics]) -> tuple[Adjudication, ...]:
    """What is told of the outputs that fail."""
    failed = {output.name for output in outputs if output.mismatched}
    return tuple(row for row in adjudication if row.output in failed)


def rows_apart(comparison: Comparison, outputs: Collection[str]) -> tuple[Apart, ...]:
    """The rows of some outputs, as far as a record keeps them of a reference."""
    return tuple(
        Apart(
            name=row.name,
            dtype=row.dtype,
            elements=row.elements,
            max_abs=row.max_abs,
            delivered_bits=row.delivered_bits,
            mismatched=row.mismatched,
            rtol=row.rtol,
            atol=row.atol,
            headroom=row.headroom,
            frontier=row.frontier,
            noise=row.noise,
            details=row.details,
        )
        for row in comparison.outputs
        if row.name in outputs
    )


def dwarfed(doubt: Comparison, *errors: Comparison) -> tuple[str, ...]:
    """Outputs in which the EP's error is beyond what the golden's uncertainty explains.

    An error without bounds is beyond it; where the uncertainty has none, nothing is.

    Args:
        doubt: The golden held against what its own implementation makes of the model in another way.
        errors: The EP's result held against each of the two, in the same unit of errors.
    """
    limits = {row.name: DWARFS * row.headroom for row in doubt.outputs if row.headroom is not None}
    headrooms = [{row.name: row.headroom for row in error.outputs} for error in errors]
    return tuple(
        name
        for name, limit in limits.items()
        if all((error := of.get(name)) is None or error >= limit for of in headrooms)
    )


def adjudicate(
    truth: Named, golden: Named, actual: Named, tolerance_for: ToleranceFor, by: str
) -> tuple[Adjudication, ...]:
    """How far golden and result lie from a more precise answer, output by output.

    Distances are ``norm(x - truth) / norm(truth)`` over the elements where both are finite. Nearer is who is
    so in this mean *and* in the worst element, whose error is measured in units of what the tolerance allows:
    a few bad elements among many good ones are not made up for. Where there is only one right answer
    (integers, booleans), nearer is who gives it where the other does not.

    Left out are texts, outputs of which there are not three of one shape and type, those of which the golden
    is NaN or infinite in other places than the truth (what overflows in float32 need not in float64), and
    those whose distance has no meaning, such as for a truth of zeros.

    Args:
        truth: What the model gives in float64.
        golden: What judged; its element types count.
        actual: What the EP computed.
        tolerance_for: Element type of the golden -> tolerance.
        by: What gave the truth.
    """
    true, right, found = _leaves(truth), _leaves(golden), _leaves(actual)
    rows = (
        _of_output(name, true[name], right[name], found[name], tolerance_for, by)
        for name in right
        if name in true and name in found
    )
    return tuple(row for row in rows if row is not None)


def rule(compared: Comparison, references: Seq[Reference], adjudications: Seq[Adjudication]) -> Ruling:
    """Decide whether a golden stands that a result fails against.

    Only the outputs that failed count. In this order:

    1. A reference agrees with the EP in all of them, and with the golden not: disputed.
    2. The golden's own implementation, computing in another way, disagrees with the golden in all of them, by
       more than a tenth of what the EP is off: disputed, for the golden is uncertain.
    3. Only values are wrong, and float64 is nearer to the EP in all of them: disputed.
    4. Only values are wrong, and more than half of the golden itself is lost against float64 in all of them,
       by more than a tenth of what the EP is off: disputed, for it is no answer.

    A reference that agrees with the golden in all of them, and not with the EP, ends it: the verdict stands.

    A doubted float64 answer disputes nothing. Rule 1 does not apply to ``onnx.reference`` alone

    * where it is doubted;
    * where the CPU EP contradicts it at both levels of optimization;
    * where float64 is clearly nearer to the golden in one of these outputs.

    Args:
        compared: The EP's result held against the golden; it has a verdict.
        references: By their rank, the most trustworthy first.
        adjudications: By float64, where there are any.
    """
    failed = {row.name: row for row in compared.outputs if row.mismatched}
    believed = tuple(row for row in of_failed(adjudications, compared.outputs) if not row.doubt)
    odd: list[str] = []
    alone: list[str] = []
    for reference in references:
        golden = {row.name: row for row in reference.golden}
        if not failed or not failed.keys() <= golden.keys():
            continue  # it does not speak about these outputs
        right = [not golden[name].mismatched for name in failed]
        same = _agrees_with_ep(reference, failed)
        far = apart(golden[name] for name in failed)
        if all(right):
            if not reference.is_golden_again and not same:
                return Ruling(note=_note(odd, alone))
        elif same and (why := _why_not_alone(reference, references, failed, believed)):
            alone.append(f"{reference.name} agrees with the EP, but is not believed alone: {why}")
        elif same:
            return Ruling(disputed=f"the EP agrees with {reference.name}, the golden does not", far=far)
        elif not reference.is_golden_again:
            odd.append(reference.name)
        elif not any(right) and not failed.keys() & set(reference.dwarfed):
            return Ruling(disputed=f"the golden is uncertain, {reference.name} differs", far=far)
    speaks = compared.verdict is Verdict.MISMATCH and failed and len(believed) == len(failed)
    disputed = _by_float64(believed) if speaks else ""
    return Ruling(disputed=disputed) if disputed else Ruling(note=_note(odd, alone))


def apart(rows: Iterable[OutputMetrics]) -> str:
    """How far two answers lie apart in the first output in which they do, without saying who is right."""
    row = next((row for row in rows if row.mismatched), None)
    if row is None:
        return ""
    if row.elements == 0:
        return f"output {row.name!r} has another shape or type"
    # Without a frontier there is NaN or infinity on one side, and the rest is beside the point.
    far = f", by {row.max_abs:.3g} at most" if row.frontier and row.max_abs is not None else ""
    return f"{row.mismatched:,} of {row.elements:,} elements of {row.name!r}{far}"


def _by_float64(failed: Seq[Adjudication]) -> str:
    """Why float64 disputes the golden, by what it says of the outputs that failed; empty if it does not."""
    worst = max(failed, key=lambda row: row.golden)
    errors = f"relative error {worst.ep:.2g} against {worst.golden:.2g}"
    if all(row.nearer == "ep" for row in failed):
        return f"output {worst.output!r} of the EP is nearer to {worst.by} than the golden is: {errors}"
    if all(row.golden > LOST and row.ep < DWARFS * row.golden for row in failed):
        return f"output {worst.output!r} of the golden is as far from {worst.by} as the EP's is: {errors}"
    return ""


def _agrees_with_ep(reference: Reference, outputs: Collection[str]) -> bool:
    ep = {row.name: row for row in reference.ep}
    return all(name in ep and not ep[name].mismatched for name in outputs)


def _why_not_alone(
    reference: Reference, references: Seq[Reference], failed: Collection[str], by_float64: Seq[Adjudication]
) -> str:
    """Return why the agreement of a reference with the EP disputes nothing; empty where it does."""
    if reference.doubt:
        return reference.doubt
    if reference.name != REFERENCE:
        return ""  # expected data are no computation, and a CPU EP is the very code that the golden is of
    again = [one for one in references if one.is_golden_again and {row.name for row in one.ep} >= set(failed)]
    if any(not _agrees_with_ep(one, failed) for one in again):
        return "the CPU EP contradicts it at both levels of optimization"
    contradicts = next((row for row in by_float64 if row.nearer == "golden"), None)
    return f"{contradicts.by} is nearer to the golden" if contradicts is not None else ""


def _note(odd: Seq[str], alone: Seq[str]) -> str:
    neither = f"{' and '.join(odd)} agree{'s' * (len(odd) == 1)} with neither" if odd else ""
    return "; ".join(filter(None, (neither, *alone)))


def _leaves(outputs: Named) -> dict[str, Tensor | None]:
    return {leaf: part for name, value in outputs for leaf, part in leaves(name, value)}


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
    of_golden, of_ep = measure(truth, golden, tolerance), measure(truth, actual, tolerance)
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


def _distance(measured: Measured) -> float | None:
    if measured.max_abs == 0.0:
        return 0.0
    bits = measured.delivered_bits
    return None if bits is None else relative_error(bits)


def _nearer(of_golden: Measured, of_ep: Measured, golden: float, ep: float, tolerance: Tolerance) -> Nearer:
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


def _worst(measured: Measured) -> float:
    return float("inf") if measured.headroom is None else measured.headroom
