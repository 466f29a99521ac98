"""Does the result of a model agree that was converted to another precision? Two answers are held against it.

The *golden* is what the CPU EP makes of the model as it came, in float32; the CPU EP's *own* answer is what
it makes of the converted model. Three distances follow, each a root of a sum of squares over one output: the
EP's error (EP to golden), the CPU EP's error (own to golden), and how far the two are apart (EP to own). The
CPU EP's error is what the precision costs this very model, and so the measure of the EP's.

An output agrees where one of three things holds:

* its elements are within the tolerance of the golden, and its error is no more than ``FAR`` times what the
  precision costs: a tolerance that is wide beside small values must not let anything pass;
* the same of the CPU EP's own answer;
* its error, and its distance from the CPU EP's own answer, are at most ``LIMITS`` times the CPU EP's error,
  and no element is further off than twice that times the CPU EP's worst.

Where the CPU EP's own error exceeds ``LOST``, the precision leaves nothing of the answer that could tell a
right result from a wrong one: such an output judges nobody, unless the EP is right nevertheless.
"""

import math
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Seq

import msgspec
import numpy as np

from harness.core import wording
from harness.core.compare import Comparison, ToleranceFor, compare, compare_all
from harness.core.distances import Distances, distances
from harness.core.draws import Draw
from harness.core.lost import LOST
from harness.core.nature import Nature
from harness.core.output_metrics import PrecisionError
from harness.core.tolerance import EXACT, FLOORS, UNIT_ROUNDOFF, default_tolerance
from harness.core.unordered import in_order_of
from harness.core.value import Tensor, Value, leaves
from harness.core.verdict import Verdict

NO_NATURES: Mapping[str, Nature] = {}

LIMITS: dict[str, float] = {"float32": 2.0, "float16": 4.0, "bfloat16": 2.0, "float8": 2.0}
"""Computing precision -> what an EP's error may be, in multiples of the CPU EP's.

Healthy ones were at most 1.4 on quantized models of the zoo and 1.6 in float16 where the EP sums in float32;
QNN's HTP simulator, which sums float16 in float16, at most 2.5. Integer kernels that saturate: 2.6 to 9.
bfloat16 is summed in float32 everywhere.
"""

MAX_FACTOR = 2.0
"""What the error of an element may be, in multiples of the CPU EP's worst, as a multiple of the limit."""

FAR = 16.0
"""What the error may be where the tolerance passes: in multiples of the CPU EP's or of the unit roundoff."""

FLOATING = ("float", "bfloat", "complex")
"""How the names of element types begin that have the three numbers."""


def judge_precision(
    golden: Seq[tuple[str, Value]],
    own: Seq[tuple[str, Value]] | None,
    actual: Seq[tuple[str, Value]],
    tolerance_for: ToleranceFor,
    precision: str,
    natures: Mapping[str, Nature] = NO_NATURES,
) -> Comparison:
    """Judge the outputs of a converted model.

    Args:
        golden: What the CPU EP makes of the model as it came.
        own: What it makes of the converted one; None where it has no kernels for that.
        actual: What the EP made of the converted one.
        tolerance_for: Element type of an output -> tolerance at the precision.
        precision: What computes: a key of ``UNIT_ROUNDOFF``, usually from ``computing_precision``.
        natures: Of outputs that are more than numbers, by name; what is drawn by lot is judged as such.

    Returns:
        As ``compare_all`` gives it, with ``precision_error`` in the rows of all floating outputs; the verdict
        may be ``no_golden`` as well. A row shows the distance from the golden, also where another answer
        decides.
    """
    answers, results = dict(golden), dict(actual)
    if answers.keys() != results.keys():
        direct = compare_all(golden, actual, tolerance_for)
        return _unmeasured(direct, "there are other outputs than asked for")
    results, owns = (in_order_of(answers, of, natures) for of in (results, dict(own or ())))
    judge = _Judge(tolerance_for, precision)
    found: list[Comparison] = []
    for name, answer in golden:
        nature = natures.get(name)
        if isinstance(nature, Draw):
            drawn = compare(name, answer, results[name], tolerance_for, nature)
            found.append(_unmeasured(drawn, "it is drawn by lot"))
        else:
            found += judge.output(name, answer, owns.get(name), results[name])
    return _folded(found)


def explains(error: PrecisionError, computes: str) -> bool:
    """Whether the precision explains an error that a tolerance passes, by the numbers of a record.

    Args:
        error: Of an output that is held against the golden of the model as it came.
        computes: What the model was converted to compute in: a key of ``FLOORS``.
    """
    if error.error is None:
        return True  # there is nothing to be relative to: the tolerance alone says it
    cpu_error = error.cpu_error or 0.0
    explained = FAR * max(UNIT_ROUNDOFF[FLOORS[computes]], 0.0 if cpu_error > LOST else cpu_error)
    return error.error <= min(LOST, explained)


class _Judge:
    """What all outputs of a model are judged by."""

    def __init__(self, tolerance_for: ToleranceFor, precision: str) -> None:
        self.tolerance_for = tolerance_for
        self.roundoff = UNIT_ROUNDOFF[precision]
        self.limit = LIMITS[precision]

    def output(self, name: str, golden: Value, own: Value, actual: Value) -> Iterator[Comparison]:
        """The leaves of one output; the output as a whole where its form is not that of the golden."""
        parts, results, owns = (dict(leaves(name, value)) for value in (golden, actual, own))
        same_form = _form(owns) == _form(parts)
        if _form(parts) != _form(results):
            apart = self.other_form(name, golden, own, actual, own_differs=not same_form)
            yield _unmeasured(apart, "it has another shape or type than the golden")
            return
        for leaf, tensor in parts.items():
            result, other = results[leaf], owns[leaf] if same_form else None
            if tensor is None or result is None or not tensor.array.size:
                yield _unmeasured(compare(leaf, tensor, result, self.tolerance_for), "it has no elements")
            elif default_tolerance(tensor.dtype, "float32") == EXACT:
                yield self.exact(leaf, tensor, other, result)
            else:
                yield self.floats(leaf, tensor, other, result)

    def other_form(
        self, name: str, golden: Value, own: Value, actual: Value, *, own_differs: bool
    ) -> Comparison:
        """How many elements there are may hang on values, as with NonZero: the CPU EP's answer tells."""
        direct = compare(name, golden, actual, self.tolerance_for)
        if own is None or not own_differs:
            return direct
        consent = compare(name, own, actual, self.tolerance_for)
        return (
            consent
            if consent.verdict is None
            else _lost(direct, name, "its shape changes on the CPU EP, too")
        )

    def exact(self, name: str, golden: Tensor, own: Tensor | None, actual: Tensor) -> Comparison:
        """What has one right answer: each element is that of the golden or of the CPU EP's own answer."""
        direct = compare(name, golden, actual, self.tolerance_for)
        if golden.dtype.startswith(FLOATING):
            direct = _with_error(direct, _precision_error(distances(golden, own, actual)))
        if direct.verdict is None or own is None:
            return direct
        either = (actual.array == golden.array) | (actual.array == own.array)
        if bool(np.all(either)):
            return _agreed(direct)
        if _equal(golden, own):
            return direct
        return _lost(direct, name, "it changes on the CPU EP, too")

    def floats(self, name: str, golden: Tensor, own: Tensor | None, actual: Tensor) -> Comparison:
        """Rounded numbers; see the module's docstring."""
        direct = compare(name, golden, actual, self.tolerance_for)
        apart = distances(golden, own, actual)
        lost = apart.own_special or apart.own_error > LOST * apart.golden
        within = in_limits = not lost and self._in_limits(apart)
        frontier: tuple[tuple[float, float], ...] = ()
        if not in_limits and own is not None and self._is_near_own(apart, lost):
            consent = compare(name, own, actual, self.tolerance_for)
            within, frontier = consent.verdict is None, consent.outputs[0].frontier
        error = msgspec.structs.replace(
            _precision_error(apart), within=within, in_limits=in_limits, own_frontier=frontier, lost=lost
        )
        direct = _with_error(direct, error)
        if direct.verdict is None and self._is_near(apart, lost):
            return direct
        if within:
            return _agreed(direct)
        direct = _failed(direct)
        if lost:
            return _lost(direct, name, _what_is_lost(apart))
        told = _told(apart, own is not None)
        if direct.verdict is not None:
            return msgspec.structs.replace(direct, message=f"{direct.message}; {told}")
        message = f"{wording.output(name)}: {told}; the tolerance is wider than the values"
        return msgspec.structs.replace(direct, verdict=Verdict.MISMATCH, message=message)

    def _in_limits(self, apart: Distances) -> bool:
        """Whether the EP is about as far off as the CPU EP, and on its side."""
        return (
            apart.has_own
            and not apart.special
            and apart.error <= self.limit * apart.own_error
            and apart.between <= self.limit * apart.own_error
            and apart.max_error <= MAX_FACTOR * self.limit * apart.max_own_error
        )

    def _is_near(self, apart: Distances, lost: bool) -> bool:  # noqa: FBT001 - private
        """Whether an error that the tolerance passes is one that the precision explains."""
        if apart.golden == 0.0:
            return True  # nothing to be relative to: the tolerance alone says it
        explained = FAR * max(self.roundoff, 0.0 if lost else apart.own_error / apart.golden)
        return apart.error <= min(LOST, explained) * apart.golden

    def _is_near_own(self, apart: Distances, lost: bool) -> bool:  # noqa: FBT001 - private
        """The same of the distance from the CPU EP's own answer; of a lost one only what is all but equal."""
        if apart.own == 0.0:
            return not lost and apart.between == 0.0
        if lost:
            return apart.between <= self.roundoff * apart.own
        explained = FAR * max(self.roundoff, apart.own_error / apart.own)
        return apart.between <= min(LOST, explained) * apart.own


def _form(parts: Mapping[str, Tensor | None]) -> dict[str, object]:
    return {name: part and (part.dtype, part.array.shape) for name, part in parts.items()}


def _equal(one: Tensor, other: Tensor) -> bool:
    return bool(np.array_equal(one.array, other.array))


def _precision_error(apart: Distances) -> PrecisionError:
    """The three numbers, or why one of them is missing."""
    error = None if apart.special else _quotient(apart.error, apart.golden)
    cpu_error = ratio = None
    if apart.has_own and not apart.own_special:
        cpu_error = _quotient(apart.own_error, apart.golden)
        if not apart.special:
            # As good as the CPU EP is who loses nothing, as the CPU EP does.
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
    """A distance in a unit; None where it has no finite value. Nothing is 0 in every unit."""
    if distance == 0.0:
        return 0.0
    quotient = distance / unit if unit else math.inf
    return quotient if math.isfinite(quotient) else None


def _unmeasured(comparison: Comparison, why: str) -> Comparison:
    """Floating outputs that say why they have none of the three numbers."""
    rows = tuple(
        msgspec.structs.replace(row, precision_error=PrecisionError(unknown=why))
        if row.dtype.startswith(FLOATING)
        else row
        for row in comparison.outputs
    )
    return msgspec.structs.replace(comparison, outputs=rows)


def _with_error(comparison: Comparison, error: PrecisionError) -> Comparison:
    rows = tuple(msgspec.structs.replace(row, precision_error=error) for row in comparison.outputs)
    return msgspec.structs.replace(comparison, outputs=rows)


def _agreed(comparison: Comparison) -> Comparison:
    rows = tuple(msgspec.structs.replace(row, mismatched=0) for row in comparison.outputs)
    return Comparison(verdict=None, message="", outputs=rows)


def _failed(comparison: Comparison) -> Comparison:
    """All elements of an output that a tolerance passes, and the precision does not."""
    rows = tuple(
        msgspec.structs.replace(row, mismatched=row.mismatched or max(1, row.elements))
        for row in comparison.outputs
    )
    return msgspec.structs.replace(comparison, outputs=rows)


def _lost(comparison: Comparison, name: str, why: str) -> Comparison:
    """The precision takes so much of an output that it judges nobody."""
    message = f"{wording.output(name)} judges nobody at this precision: {why}"
    return msgspec.structs.replace(comparison, verdict=Verdict.NO_GOLDEN, message=message)


def _what_is_lost(apart: Distances) -> str:
    if apart.own_special:
        return "the CPU EP itself gives NaN or infinity in other places than in float32"
    if apart.golden == 0.0:
        return "the golden is all 0, and what the CPU EP itself gives is not"
    return f"the CPU EP itself is off by {apart.own_error / apart.golden:.0%}"


def _told(apart: Distances, has_own: bool) -> str:  # noqa: FBT001 - private
    if apart.golden == 0.0:
        return "the golden is all 0"
    told = f"relative error {apart.error / apart.golden:.2g}"
    return told + (f", the CPU EP's own {apart.own_error / apart.golden:.2g}" if has_own else "")


def _folded(found: Seq[Comparison]) -> Comparison:
    """Every row, and the worst verdict: what is wrong for certain goes before what judges nobody."""
    rows = tuple(row for comparison in found for row in comparison.outputs)
    bad = [one for one in found if one.verdict is not None]
    if not bad:
        return Comparison(verdict=None, message="", outputs=rows)
    worst = min(bad, key=lambda one: (one.verdict is Verdict.NO_GOLDEN, _RANK[one.verdict or Verdict.PASS]))
    more = f" ({len(bad)} of {len(found)} outputs are wrong)" if len(bad) > 1 else ""
    return Comparison(verdict=worst.verdict, message=worst.message + more, outputs=rows)


_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}
