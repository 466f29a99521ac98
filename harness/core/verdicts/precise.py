"""Compare the result of a model that was converted to another precision with two answers.

The *golden* is the CPU EP's answer for the unconverted model, in float32. The CPU EP's *own* answer is its
answer for the converted model. Three distances follow, each the root of a sum of squares over one output: the
EP's error (EP to golden), the CPU EP's error (own to golden), and the distance between the two (EP to own).
The CPU EP's error is the cost of the precision for this model. So it is the measure of the EP's error.

An output agrees if one of these holds:

* its elements are within the tolerance of the golden, and its error is at most ``FAR_FROM_CPU`` times the
  cost of the precision: a tolerance that is wide compared with small values would pass anything;
* the same relative to the CPU EP's own answer;
* its error, and its distance from the CPU EP's own answer, are at most ``LIMITS`` times the CPU EP's error,
  and no element is further off than twice that multiple of the CPU EP's worst.

None of these holds for an answer that is farther from the CPU EP's own than implementations of the
conversion are apart (``Conversion.most_apart``): all of them have the same weights of few bits, whatever
these cost.

If the CPU EP's own error exceeds ``LOST``, the answer cannot tell a right result from a wrong one: such an
output cannot fail an EP (``no_golden``), unless the EP is right. The same holds if it overflows somewhere and
the EP's answer is near its other elements; and for elements with one right answer, unless the EP changes far
more of them than the CPU EP. This module measures;
``harness.core.verdicts.judge_output`` decides.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from harness.core.comparison import wording
from harness.core.comparison.output_kind import OutputKind
from harness.core.comparison.output_metrics import LOST, Frontier, OutputMetrics, PrecisionError
from harness.core.comparison.output_rows import with_details
from harness.core.comparison.policy import Policy
from harness.core.comparison.random_outputs import Distribution
from harness.core.comparison.ties import Chosen, lead_of
from harness.core.comparison.tolerance import EXACT, UNIT_ROUNDOFF, ToleranceFor, default_tolerance
from harness.core.comparison.unordered import in_order_of
from harness.core.values.value import Tensor, Value, leaves
from harness.core.verdicts.compare import (
    MOST_HINTS,
    ONLY_NUMBERS,
    OutputComparison,
    compare_all,
    compare_outputs,
    compared,
)
from harness.core.verdicts.distances import Distances, distances
from harness.core.verdicts.judge_output import FAR_FROM_CPU

LIMITS: dict[str, float] = {"float32": 2.0, "float16": 4.0, "bfloat16": 2.0, "float8": 2.0}
"""Computing precision -> limit of an EP's error, in multiples of the CPU EP's error.

Healthy errors were at most 1.4 on quantized models of the zoo, and 1.6 in float16 where the EP sums in
float32. QNN's HTP simulator, which sums float16 in float16, had at most 2.5. Integer kernels that saturate:
2.6 to 9. bfloat16 is summed in float32 everywhere.
"""

MAX_FACTOR = 2.0
"""Limit of an element's error, in multiples of the CPU EP's worst error, as a multiple of ``LIMITS``."""

_OUTLIER = 8.0
"""An element's rounding error, in multiples of that of a typical one."""

_FLIPS = 8
"""Multiple of the elements with one right answer that a conversion changes on the CPU EP; an EP may change so
many, and ``_FEW`` more."""

_FEW = 8
"""Elements that an EP may change beyond that: of a few, chance decides which."""

_FLOATING = ("float", "bfloat", "complex")
"""Beginnings of the names of element types that have the three numbers."""


def judge_precision(  # noqa: PLR0913 - three answers, and what may lie between them
    golden: Iterable[tuple[str, Value]],
    own: Iterable[tuple[str, Value]] | None,
    actual: Iterable[tuple[str, Value]],
    tolerance_for: ToleranceFor,
    precision: str,
    kinds: Mapping[str, OutputKind] = ONLY_NUMBERS,
    *,
    reference: str = "",
    most_apart: float = math.inf,
) -> OutputComparison:
    """Compare the outputs of a converted model, or of a variant of a package.

    Args:
        golden: The CPU EP's answer for the unconverted model.
        own: Its answer for the converted model; None if it has no kernels for that.
        actual: The EP's result for the converted model.
        tolerance_for: Element type of an output -> tolerance at the precision.
        precision: The computing precision: a key of ``UNIT_ROUNDOFF``, usually from ``computing_precision``.
        kinds: Kinds of outputs that are not plain numbers, by name; random numbers are judged by their
            distribution.
        reference: For a variant, the variant that gave the golden.
        most_apart: As in ``Conversion``.

    Returns:
        The result is as from ``compare_all``, with ``precision_error`` in the rows of all floating outputs;
        the verdict may be ``no_golden`` as well. A row shows the distance from the golden, even if another
        answer decides.
    """
    answers, results = dict(golden), dict(actual)
    policy = Policy(precision=precision, fixed=tolerance_for("float32"), judge_by="table", converted=True)
    if answers.keys() != results.keys():
        direct = compare_all(answers.items(), results.items(), tolerance_for)
        return compared(
            [(_unmeasured(row, "it has other outputs than asked for"),) for row in direct.outputs], policy
        )
    results, owns = (in_order_of(answers, of, kinds) for of in (results, dict(own or ())))
    measure = _Measure(tolerance_for, precision, reference, most_apart)
    rows: list[tuple[OutputMetrics, ...]] = []
    for name, answer in answers.items():
        output_kind = kinds.get(name)
        if isinstance(output_kind, Distribution):
            drawn = compare_outputs(name, answer, results[name], tolerance_for, output_kind)
            rows.append(tuple(_unmeasured(row, "it is drawn at random") for row in drawn.outputs))
        else:
            found = measure.output(name, answer, owns.get(name), results[name], output_kind)
            rows += [(row,) for row in found]
    return compared(rows, policy)


def precision_row(
    name: str, golden: Tensor, own: Tensor, actual: Tensor, policy: Policy, most_apart: float
) -> OutputMetrics:
    """Return the row of one tensor of rounded numbers, without what may explain its error."""
    measure = _Measure(policy.tolerance_for, policy.precision, most_apart=most_apart, hints=0)
    return measure.floats(name, golden, own, actual)


class _Measure:
    """Measures the outputs of a model at one precision."""

    def __init__(
        self,
        tolerance_for: ToleranceFor,
        precision: str,
        reference: str = "",
        most_apart: float = math.inf,
        *,
        hints: int = MOST_HINTS,
    ) -> None:
        self.hints = hints
        self.reference = reference
        self.most_apart = most_apart
        self.tolerance_for = tolerance_for
        self.roundoff = UNIT_ROUNDOFF[precision]
        self.limit = LIMITS[precision]

    def output(
        self, name: str, golden: Value, own: Value, actual: Value, output_kind: OutputKind | None
    ) -> Iterator[OutputMetrics]:
        """Yield the leaves of one output; the output as a whole if its form differs from the golden's."""
        parts, results, owns = (dict(leaves(name, value)) for value in (golden, actual, own))
        same_form = _form(owns) == _form(parts)
        if _form(parts) != _form(results):
            for row in self.other_form(name, golden, own, actual, own_differs=not same_form):
                yield _unmeasured(row, "it has another shape or type than the golden")
            return
        for leaf, tensor in parts.items():
            result, other = results[leaf], owns[leaf] if same_form else None
            if tensor is None or result is None or not tensor.array.size:
                yield _unmeasured(self.direct(leaf, tensor, result), "it has no elements")
            elif default_tolerance(tensor.dtype, "float32") == EXACT:
                yield self.exact(leaf, tensor, other, result, output_kind)
            else:
                yield self.floats(leaf, tensor, other, result)

    def direct(self, name: str, golden: Value, actual: Value) -> OutputMetrics:
        """Return the row of one leaf against its golden."""
        return compare_outputs(name, golden, actual, self.tolerance_for, hints=self.hints).outputs[0]

    def other_form(
        self, name: str, golden: Value, own: Value, actual: Value, *, own_differs: bool
    ) -> tuple[OutputMetrics, ...]:
        """Compare an output of another shape; the shape may depend on values, as with NonZero."""
        direct = compare_outputs(name, golden, actual, self.tolerance_for)
        if own is None or not own_differs:
            return direct.outputs
        by_own = compare_outputs(name, own, actual, self.tolerance_for)
        if by_own.verdict is None:
            return by_own.outputs
        message = _cannot_judge(name, "its shape changes on the CPU EP, too")
        return tuple(with_details(row, own="lost", message=message) for row in direct.outputs)

    def exact(
        self,
        name: str,
        golden: Tensor,
        own: Tensor | None,
        actual: Tensor,
        output_kind: OutputKind | None = None,
    ) -> OutputMetrics:
        """Compare elements with one right answer: the golden's or that of the CPU EP's own answer."""
        direct = self.direct(name, golden, actual)
        if golden.dtype.startswith(_FLOATING):
            error = _precision_error(distances(golden, own, actual))
            direct = msgspec.structs.replace(direct, precision_error=error)
        if self.reference and direct.mismatched and isinstance(output_kind, Chosen):
            lead = lead_of(output_kind, golden.array, actual.array)
            return direct if lead is None else with_details(direct, ties=lead[0], lead=lead[1])
        if not direct.mismatched or own is None or self.reference:
            return direct
        if bool(np.all((actual.array == golden.array) | (actual.array == own.array))):
            return with_details(direct, own="equal")
        changed = np.count_nonzero(golden.array != own.array)
        if np.count_nonzero(actual.array != golden.array) > _FLIPS * changed + (_FEW if changed else 0):
            return direct
        return with_details(direct, own="lost", message=_cannot_judge(name, "it changes on the CPU EP, too"))

    def floats(self, name: str, golden: Tensor, own: Tensor | None, actual: Tensor) -> OutputMetrics:
        """Compare rounded numbers; see the module's docstring."""
        apart = distances(golden, own, actual)
        if self.reference:
            error = msgspec.structs.replace(_precision_error(apart), measured=True, reference=self.reference)
            return msgspec.structs.replace(self.direct(name, golden, actual), precision_error=error)
        # If the CPU EP's answer overflows somewhere, its other elements still tell an answer that is lost.
        lost = apart.own_error > LOST * apart.golden or (
            apart.own_special and apart.between <= LOST * apart.own
        )
        far = not lost and self._is_far(apart, golden.array.size)
        in_limits = not lost and not far and self._in_limits(apart)
        frontier: Frontier = ()
        if not in_limits and not far and own is not None and self._is_near_own(apart, lost=lost):
            frontier = self.direct(name, own, actual).frontier
        error = msgspec.structs.replace(
            _precision_error(apart),
            measured=True,
            in_limits=in_limits,
            own_frontier=frontier,
            far=far,
            lost=lost,
        )
        row = msgspec.structs.replace(self.direct(name, golden, actual), precision_error=error)
        if lost:
            row = with_details(row, hint=_cannot_judge(name, _what_is_lost(apart)))
        if row.details is not None and row.details.message:
            row = with_details(row, message=f"{row.details.message}; {_errors(apart)}")
        return row

    def _in_limits(self, apart: Distances) -> bool:
        """Return whether the EP is about as far off as the CPU EP, and in the same direction."""
        return (
            apart.has_own
            and not apart.special
            and apart.error <= self.limit * apart.own_error
            and apart.between <= self.limit * apart.own_error
            and apart.max_error <= MAX_FACTOR * self.limit * apart.max_own_error
        )

    def _is_far(self, apart: Distances, elements: int) -> bool:
        """Return whether implementations of the conversion are never so far apart."""
        if not apart.has_own or apart.special or math.isinf(self.most_apart):
            return False
        rounding = FAR_FROM_CPU * UNIT_ROUNDOFF["float16"]  # in which an EP may compute the rest
        most = self.most_apart * apart.own_error + rounding * apart.own
        typical = apart.own / math.sqrt(elements)
        largest = MAX_FACTOR * self.most_apart * apart.max_own_error + _OUTLIER * rounding * typical
        return apart.between > most or apart.max_between > largest

    def _is_near_own(self, apart: Distances, *, lost: bool) -> bool:
        """Return whether the precision explains the distance from the CPU EP's own answer.

        If the own answer is lost, only near equality counts.
        """
        if apart.own == 0.0:
            return not lost and apart.between == 0.0
        if lost:
            return apart.between <= self.roundoff * apart.own
        explained = FAR_FROM_CPU * max(self.roundoff, apart.own_error / apart.own)
        return apart.between <= min(LOST, explained) * apart.own


def _form(parts: Mapping[str, Tensor | None]) -> dict[str, object]:
    return {name: part and (part.dtype, part.array.shape) for name, part in parts.items()}


def _precision_error(apart: Distances) -> PrecisionError:
    """Return the three numbers, or why one is missing."""
    error = None if apart.special else _quotient(apart.error, apart.golden)
    cpu_error = ratio = None
    if apart.has_own and not apart.own_special:
        cpu_error = _quotient(apart.own_error, apart.golden)
        if not apart.special:
            # If the conversion costs no accuracy, the result must equal the CPU EP's: a ratio of 1.
            ratio = _quotient(apart.error, apart.own_error) if apart.error or apart.own_error else 1.0
    reasons = (
        ("it has NaN or infinity in other places than the golden", apart.special),
        ("the CPU EP has no answer of its own", not apart.has_own),
        ("the CPU EP itself has NaN or infinity in other places than the golden", apart.own_special),
        ("the golden is all 0", apart.golden == 0.0),
        ("the CPU EP loses nothing", apart.own_error == 0.0),
        ("a number is too large", True),
    )
    complete = error is not None and cpu_error is not None and ratio is not None
    unknown = "" if complete else next(reason for reason, applies in reasons if applies)
    return PrecisionError(error=error, cpu_error=cpu_error, ratio=ratio, unknown=unknown)


def _quotient(distance: float, unit: float) -> float | None:
    """Return a distance in a unit; None where that is not finite. A distance of 0 is 0 in any unit."""
    if distance == 0.0:
        return 0.0
    quotient = distance / unit if unit else math.inf
    return quotient if math.isfinite(quotient) else None


def _unmeasured(row: OutputMetrics, why: str) -> OutputMetrics:
    """Return a floating output with the reason why it lacks the three numbers."""
    if not row.dtype.startswith(_FLOATING):
        return row
    return msgspec.structs.replace(row, precision_error=PrecisionError(unknown=why))


def _cannot_judge(name: str, why: str) -> str:
    """Describe why an output cannot fail an EP at this precision."""
    return f"{wording.output(name)} cannot be judged at this precision: {why}"


def _what_is_lost(apart: Distances) -> str:
    if apart.own_special:
        return "the CPU EP itself gives NaN or infinity in other places than in float32"
    if apart.golden == 0.0:
        return "the golden is all 0, and what the CPU EP itself gives is not"
    return f"the CPU EP itself is off by {apart.own_error / apart.golden:.0%}"


def _errors(apart: Distances) -> str:
    if apart.golden == 0.0:
        return "the golden is all 0"
    error = f"relative error {apart.error / apart.golden:.2g}"
    return error + (f", the CPU EP's own {apart.own_error / apart.golden:.2g}" if apart.has_own else "")
