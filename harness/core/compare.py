"""Does a result agree with its golden? Structure and shape first, then types, NaN and infinity, values."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Seq
from types import MappingProxyType

import msgspec
import numpy as np

from harness.core import wording
from harness.core.draws import Draw, name_of
from harness.core.hints import shape_hint
from harness.core.lost import is_lost, is_noise
from harness.core.metrics import EXACT_FRONTIER, any_finite, measure
from harness.core.nature import Nature, drawn_row, with_steps, with_ties
from harness.core.noise import NoiseRule, with_noise
from harness.core.output_metrics import OutputMetrics
from harness.core.rows import empty_row, equal_row, measured_row, whole_row
from harness.core.steps import Quantized
from harness.core.ties import Chosen
from harness.core.tolerance import EXACT, Tolerance
from harness.core.unordered import in_order_of
from harness.core.value import STRING, Map, Sequence, Tensor, Value
from harness.core.verdict import Verdict

ToleranceFor = Callable[[str], Tolerance]
"""Element type of the golden -> what it may differ by."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison came to.

    Attributes:
        verdict: None where the result agrees; else one of ``shape_mismatch``, ``dtype_mismatch``,
            ``nan_mismatch``, ``mismatch``: the first in the table of verdicts that any output deserves; or
            ``no_golden`` where nothing is wrong for certain, but an output judges nobody.
        message: One line for people about the output that earned the verdict; empty where all agree.
        outputs: Every output, good or bad, in the order of the golden. Those with ``mismatched`` > 0 are bad.
    """

    verdict: Verdict | None
    message: str
    outputs: tuple[OutputMetrics, ...]


NOTHING_SPECIAL: Mapping[str, Nature] = MappingProxyType({})


def compare_all(
    golden: Seq[tuple[str, Value]],
    actual: Seq[tuple[str, Value]],
    tolerance_for: ToleranceFor,
    natures: Mapping[str, Nature] = NOTHING_SPECIAL,
    noise: NoiseRule | None = None,
) -> Comparison:
    """Compare all outputs of a model by name; their order does not matter.

    Outputs whose elements may stand in any order are brought into that of the golden.

    An output that is missing, or that the golden does not have, is a ``shape_mismatch``.

    Args:
        golden: The right answers.
        actual: What the EP computed.
        tolerance_for: Asked once for each tensor, with the element type of the golden.
        natures: Of outputs that are more than numbers, by name.
        noise: The noise of the model, where that is known.
    """
    results = in_order_of(dict(golden), dict(actual), natures) if natures else dict(actual)
    wanted = {name for name, _ in golden}
    missing = [name for name, _ in golden if name not in results]
    unexpected = [name for name in results if name not in wanted]
    message = wording.other_names(missing, unexpected)
    found = [
        compare(name, value, results[name], tolerance_for, natures.get(name), noise)
        if name in results
        else _wrong(Verdict.SHAPE_MISMATCH, message, whole_row(name, value))
        for name, value in golden
    ]
    found += [_wrong(Verdict.SHAPE_MISMATCH, message, whole_row(name, results[name])) for name in unexpected]
    return _worst(found, "outputs")


def compare(
    name: str,
    golden: Value,
    actual: Value,
    tolerance_for: ToleranceFor,
    nature: Nature | None = None,
    noise: NoiseRule | None = None,
) -> Comparison:
    """Compare one output with its golden.

    Shapes that differ leave nothing to measure. Element types that differ are measured all the same, in
    float64 (complex128), so that a reader sees whether the values are right. NaN equals NaN, infinity
    equals infinity of the same sign, -0.0 equals +0.0. Strings are compared exactly. The items of a
    sequence count in their order; the entries of a map are matched by key.

    Args:
        name: Name of the output; its parts are named as ``harness.core.value.leaves`` names them.
        golden: The right answer.
        actual: What the EP computed.
        tolerance_for: Asked once for each tensor, with the element type of the golden.
        nature: Of a tensor that is more than numbers.
        noise: The noise of the model, where that is known.
    """
    if isinstance(golden, Tensor) and isinstance(actual, Tensor):
        return _compare_tensor(name, golden, actual, tolerance_for, nature, noise)
    return _worst(list(_compare_parts(name, golden, actual, tolerance_for, noise)), "parts")


def _compare_parts(
    name: str, golden: Value, actual: Value, tolerance_for: ToleranceFor, noise: NoiseRule | None
) -> Iterator[Comparison]:
    """The comparisons of the parts of a container; a container of another make is compared as a whole."""
    if (
        isinstance(golden, Sequence)
        and isinstance(actual, Sequence)
        and len(golden.items) == len(actual.items)
    ):
        if not golden.items:
            yield _agreed(empty_row(name, golden))
        for index, (left, right) in enumerate(zip(golden.items, actual.items, strict=True)):
            yield compare(f"{name}[{index}]", left, right, tolerance_for, noise=noise)
    elif (
        isinstance(golden, Map)
        and isinstance(actual, Map)
        and golden.keys.array.size == actual.keys.array.size
    ):
        yield from _compare_map(name, golden, actual, tolerance_for, noise)
    elif golden is None and actual is None:
        yield _agreed(empty_row(name, None))
    else:
        yield _other_kind(name, golden, actual)


def _compare_map(
    name: str, golden: Map, actual: Map, tolerance_for: ToleranceFor, noise: NoiseRule | None
) -> Iterator[Comparison]:
    if golden.keys.dtype == actual.keys.dtype and golden.keys.array.tolist() != actual.keys.array.tolist():
        golden, actual = _by_key(golden), _by_key(actual)
        noise = None  # in the order of the golden, which is another now
        if message := wording.keys_differ(golden.keys.array.tolist(), actual.keys.array.tolist()):
            yield _wrong(
                Verdict.SHAPE_MISMATCH,
                f"{wording.output(name)}: {message}",
                whole_row(f"{name}.keys", actual.keys),
            )
            return
    yield compare(f"{name}.keys", golden.keys, actual.keys, tolerance_for)
    yield compare(f"{name}.values", golden.values, actual.values, tolerance_for, noise=noise)


def _by_key(entries: Map) -> Map:
    order = np.argsort(entries.keys.array, kind="stable")
    return Map(
        keys=Tensor(dtype=entries.keys.dtype, array=entries.keys.array[order]),
        values=Tensor(dtype=entries.values.dtype, array=entries.values.array[order]),
    )


def _compare_tensor(
    name: str,
    golden: Tensor,
    actual: Tensor,
    tolerance_for: ToleranceFor,
    nature: Nature | None,
    noise: NoiseRule | None,
) -> Comparison:
    tolerance = tolerance_for(golden.dtype)
    if golden.array.shape != actual.array.shape:
        if golden.dtype == actual.dtype and isinstance(nature, Chosen) and nature.op == "NonZero":
            return _compare_lists(name, golden, actual, tolerance_for, nature)
        hint = shape_hint(golden, actual, tolerance) if golden.dtype == actual.dtype != STRING else ""
        return _other_kind(name, golden, actual, hint)
    if golden.dtype != actual.dtype:
        return _compare_retyped(name, golden, actual, tolerance)
    if golden.dtype == STRING:
        return _compare_strings(name, golden, actual)
    if isinstance(nature, Draw):
        return _compare_drawn(name, actual, nature)
    return _compare_numbers(name, golden, actual, tolerance_for, nature, noise)


def _compare_numbers(
    name: str,
    golden: Tensor,
    actual: Tensor,
    tolerance_for: ToleranceFor,
    nature: Nature | None,
    noise: NoiseRule | None,
) -> Comparison:
    tolerance = tolerance_for(golden.dtype)
    # Most results are equal bit by bit, and a run compares hundreds of thousands of small ones.
    if golden.array.tobytes() == actual.array.tobytes():
        return _agreed(equal_row(name, golden, tolerance))
    measured = measure(golden, actual, tolerance)
    row, note = measured_row(name, actual, tolerance, measured), ""
    if isinstance(nature, Quantized):
        row, note = with_steps(row, nature, golden, actual)
    elif isinstance(nature, Chosen) and measured.mismatched:
        values = EXACT if nature.exact else tolerance_for(nature.data.dtype)
        row, note = with_ties(row, nature, golden, actual, values)
    if noise is not None and name in noise.spreads and not measured.special:
        excused = isinstance(nature, Quantized) and nature.granted and not row.mismatched
        if excused or isinstance(nature, Chosen):
            # A tie is right, and so is a step that was granted, whatever multiple of the noise it is.
            noise = msgspec.structs.replace(noise, limits=None)
        row, at = with_noise(row, golden, actual, noise)
        if noise.limits is not None and row.mismatched:
            return _wrong(Verdict.MISMATCH, wording.noise(name, golden, actual, row, at), row)
    if measured.special:
        return _wrong(Verdict.NAN_MISMATCH, wording.special_values(name, golden, actual, measured), row)
    if row.mismatched:
        measured = msgspec.structs.replace(measured, mismatched=row.mismatched)
        message = wording.values(name, golden, actual, measured, tolerance)
        return _wrong(Verdict.MISMATCH, "; ".join(filter(None, (message, note))), row)
    excused = isinstance(nature, Chosen) or (isinstance(nature, Quantized) and nature.granted)
    return _lost(row) if tolerance != EXACT and is_lost(row) and not excused else _agreed(row)


def _lost(row: OutputMetrics) -> Comparison:
    """What is passed, and yet is no answer; see ``harness.core.lost``."""
    if is_noise(row):
        return _wrong(Verdict.NO_GOLDEN, wording.only_noise(row), row)
    row = msgspec.structs.replace(row, mismatched=max(1, row.elements))
    return _wrong(Verdict.MISMATCH, wording.lost(row), row)


def _compare_lists(
    name: str, golden: Tensor, actual: Tensor, tolerance_for: ToleranceFor, nature: Chosen
) -> Comparison:
    """Lists of positions of another length: right where what is in one of them alone lies next to zero."""
    values = EXACT if nature.exact else tolerance_for(nature.data.dtype)
    row, _ = with_ties(whole_row(name, actual), nature, golden, actual, values)
    return _other_kind(name, golden, actual) if row.mismatched else _agreed(row)


def _compare_drawn(name: str, actual: Tensor, draw: Draw) -> Comparison:
    row, misfit = drawn_row(name, actual, draw)
    if not misfit:
        return _agreed(row)
    message = f"{wording.output(name)}: this is no sample of its distribution ({name_of(draw)}): {misfit}"
    return _wrong(Verdict.MISMATCH if any_finite(actual) else Verdict.NAN_MISMATCH, message, row)


def _compare_retyped(name: str, golden: Tensor, actual: Tensor, tolerance: Tolerance) -> Comparison:
    """Two element types: no element is right and no tolerance passes, but the distance is worth knowing."""
    message = f"{wording.output(name)}: got {actual.dtype}, golden is {golden.dtype}"
    if STRING in (golden.dtype, actual.dtype):
        return _wrong(Verdict.DTYPE_MISMATCH, message, whole_row(name, actual))
    measured = measure(golden, actual, tolerance)
    row = measured_row(name, actual, tolerance, measured)
    row = msgspec.structs.replace(row, mismatched=max(1, actual.array.size), headroom=None, frontier=())
    share = wording.share(measured.mismatched, actual.array.size)
    message += f"; {share} differ as well" if measured.mismatched else "; the values agree"
    return _wrong(Verdict.DTYPE_MISMATCH, message, row)


def _compare_strings(name: str, golden: Tensor, actual: Tensor) -> Comparison:
    differs = np.flatnonzero(golden.array.ravel() != actual.array.ravel())
    elements = golden.array.size
    row = OutputMetrics(
        name=name,
        dtype=STRING,
        shape=actual.array.shape,
        elements=elements,
        mismatched=differs.size,
        headroom=None if differs.size else 0.0,
        frontier=() if differs.size else EXACT_FRONTIER,
    )
    if differs.size:
        return _wrong(Verdict.MISMATCH, wording.strings(name, golden, actual, differs), row)
    return _agreed(row)


def _other_kind(name: str, golden: Value, actual: Value, hint: str = "") -> Comparison:
    message = f"{wording.output(name)}: got {wording.kind(actual)}, golden is {wording.kind(golden)}"
    message += f"; {hint}" if hint else ""
    return _wrong(Verdict.SHAPE_MISMATCH, message, whole_row(name, actual))


def _agreed(row: OutputMetrics) -> Comparison:
    return Comparison(verdict=None, message="", outputs=(row,))


def _wrong(verdict: Verdict, message: str, row: OutputMetrics) -> Comparison:
    return Comparison(verdict=verdict, message=message, outputs=(row,))


def _worst(found: Seq[Comparison], noun: str) -> Comparison:
    """Fold comparisons into one: the worst verdict with its message, and every row."""
    if len(found) == 1:
        return found[0]
    rows = tuple(row for comparison in found for row in comparison.outputs)
    bad = [(comparison.verdict, comparison.message) for comparison in found if comparison.verdict]
    if not bad:
        return Comparison(verdict=None, message="", outputs=rows)
    verdict, message = min(bad, key=lambda pair: (pair[0] is Verdict.NO_GOLDEN, _RANK[pair[0]]))
    return Comparison(
        verdict=verdict, message=f"{message} ({len(bad)} of {len(found)} {noun} are wrong)", outputs=rows
    )


_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}
