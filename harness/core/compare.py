"""Does a result agree with its golden? Structure and shape first, then types, NaN and infinity, values."""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq

import msgspec
import numpy as np

from harness.core import wording
from harness.core.hints import shape_hint
from harness.core.metrics import EXACT_FRONTIER, Measured, any_finite, measure
from harness.core.record import OutputMetrics
from harness.core.tolerance import Tolerance
from harness.core.value import STRING, Map, Sequence, Tensor, Value
from harness.core.verdict import Verdict

ToleranceFor = Callable[[str], Tolerance]
"""Element type of the golden -> what it may differ by."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison came to.

    Attributes:
        verdict: None where the result agrees; else one of ``shape_mismatch``, ``dtype_mismatch``,
            ``nan_mismatch``, ``mismatch``: the first in the table of verdicts that any output deserves.
        message: One line for people about the output that earned the verdict; empty where all agree.
        outputs: Every output, good or bad, in the order of the golden. Those with ``mismatched`` > 0 are bad.
    """

    verdict: Verdict | None
    message: str
    outputs: tuple[OutputMetrics, ...]


def compare_all(
    golden: Seq[tuple[str, Value]], actual: Seq[tuple[str, Value]], tolerance_for: ToleranceFor
) -> Comparison:
    """Compare all outputs of a model by name; their order does not matter.

    An output that is missing, or that the golden does not have, is a ``shape_mismatch``.
    """
    results = dict(actual)
    wanted = {name for name, _ in golden}
    missing = [name for name, _ in golden if name not in results]
    unexpected = [name for name in results if name not in wanted]
    message = wording.other_names(missing, unexpected)
    found = [
        compare(name, value, results[name], tolerance_for)
        if name in results
        else _wrong(Verdict.SHAPE_MISMATCH, message, _row(name, value))
        for name, value in golden
    ]
    found += [_wrong(Verdict.SHAPE_MISMATCH, message, _row(name, results[name])) for name in unexpected]
    return _worst(found, "outputs")


def compare(name: str, golden: Value, actual: Value, tolerance_for: ToleranceFor) -> Comparison:
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
    """
    if isinstance(golden, Tensor) and isinstance(actual, Tensor):
        return _compare_tensor(name, golden, actual, tolerance_for)
    return _worst(list(_compare_parts(name, golden, actual, tolerance_for)), "parts")


def _compare_parts(
    name: str, golden: Value, actual: Value, tolerance_for: ToleranceFor
) -> Iterator[Comparison]:
    """The comparisons of the parts of a container; a container of another make is compared as a whole."""
    if (
        isinstance(golden, Sequence)
        and isinstance(actual, Sequence)
        and len(golden.items) == len(actual.items)
    ):
        if not golden.items:
            yield _agreed(_empty_row(name, golden))
        for index, (left, right) in enumerate(zip(golden.items, actual.items, strict=True)):
            yield compare(f"{name}[{index}]", left, right, tolerance_for)
    elif (
        isinstance(golden, Map)
        and isinstance(actual, Map)
        and golden.keys.array.size == actual.keys.array.size
    ):
        yield from _compare_map(name, golden, actual, tolerance_for)
    elif golden is None and actual is None:
        yield _agreed(_empty_row(name, None))
    else:
        yield _other_kind(name, golden, actual)


def _compare_map(name: str, golden: Map, actual: Map, tolerance_for: ToleranceFor) -> Iterator[Comparison]:
    if golden.keys.dtype == actual.keys.dtype and golden.keys.array.tolist() != actual.keys.array.tolist():
        golden, actual = _by_key(golden), _by_key(actual)
        if message := wording.keys_differ(golden.keys.array.tolist(), actual.keys.array.tolist()):
            yield _wrong(
                Verdict.SHAPE_MISMATCH,
                f"{wording.output(name)}: {message}",
                _row(f"{name}.keys", actual.keys),
            )
            return
    yield compare(f"{name}.keys", golden.keys, actual.keys, tolerance_for)
    yield compare(f"{name}.values", golden.values, actual.values, tolerance_for)


def _by_key(entries: Map) -> Map:
    order = np.argsort(entries.keys.array, kind="stable")
    return Map(
        keys=Tensor(dtype=entries.keys.dtype, array=entries.keys.array[order]),
        values=Tensor(dtype=entries.values.dtype, array=entries.values.array[order]),
    )


def _compare_tensor(name: str, golden: Tensor, actual: Tensor, tolerance_for: ToleranceFor) -> Comparison:
    tolerance = tolerance_for(golden.dtype)
    if golden.array.shape != actual.array.shape:
        hint = shape_hint(golden, actual, tolerance) if golden.dtype == actual.dtype != STRING else ""
        return _other_kind(name, golden, actual, hint)
    if golden.dtype != actual.dtype:
        return _compare_retyped(name, golden, actual, tolerance)
    if golden.dtype == STRING:
        return _compare_strings(name, golden, actual)
    # Most results are equal bit by bit, and a run compares hundreds of thousands of small ones.
    if golden.array.tobytes() == actual.array.tobytes():
        return _agreed(_equal_row(name, golden, tolerance))
    return _compare_numbers(name, golden, actual, tolerance)


def _compare_numbers(name: str, golden: Tensor, actual: Tensor, tolerance: Tolerance) -> Comparison:
    measured = measure(golden, actual, tolerance)
    row = _measured_row(name, actual, tolerance, measured)
    if measured.special:
        return _wrong(Verdict.NAN_MISMATCH, wording.special_values(name, golden, actual, measured), row)
    if measured.mismatched:
        return _wrong(Verdict.MISMATCH, wording.values(name, golden, actual, measured, tolerance), row)
    return _agreed(row)


def _compare_retyped(name: str, golden: Tensor, actual: Tensor, tolerance: Tolerance) -> Comparison:
    """Two element types: no element is right and no tolerance passes, but the distance is worth knowing."""
    message = f"{wording.output(name)}: got {actual.dtype}, golden is {golden.dtype}"
    if STRING in (golden.dtype, actual.dtype):
        return _wrong(Verdict.DTYPE_MISMATCH, message, _row(name, actual))
    measured = measure(golden, actual, tolerance)
    row = _measured_row(name, actual, tolerance, measured)
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
    return _wrong(Verdict.SHAPE_MISMATCH, message, _row(name, actual))


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
    verdict, message = min(bad, key=lambda pair: _RANK[pair[0]])
    return Comparison(
        verdict=verdict, message=f"{message} ({len(bad)} of {len(found)} {noun} are wrong)", outputs=rows
    )


def _row(name: str, value: Value) -> OutputMetrics:
    """The row of a value that is wrong as a whole, and that nothing was compared with."""
    shape: tuple[int, ...]
    mismatched = 1
    if isinstance(value, Tensor):
        dtype, shape = value.dtype, value.array.shape
        mismatched = max(1, value.array.size)
    elif isinstance(value, Sequence):
        dtype, shape = "sequence", (len(value.items),)
    elif isinstance(value, Map):
        dtype, shape = "map", value.keys.array.shape
    else:
        dtype, shape = "optional", ()
    return OutputMetrics(name=name, dtype=dtype, shape=shape, mismatched=mismatched)


def _empty_row(name: str, value: Value) -> OutputMetrics:
    """The row of an empty container on both sides: right, with nothing inside to compare."""
    row = _row(name, value)
    return msgspec.structs.replace(row, mismatched=0, headroom=0.0, frontier=EXACT_FRONTIER)


def _equal_row(name: str, value: Tensor, tolerance: Tolerance) -> OutputMetrics:
    """What ``measure`` would find for two tensors that are equal bit by bit."""
    zero = 0.0 if any_finite(value) else None
    return OutputMetrics(
        name=name,
        dtype=value.dtype,
        shape=value.array.shape,
        max_abs=zero,
        max_rel=zero,
        rmse=zero,
        cosine=None if zero is None else 1.0,
        elements=value.array.size,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        headroom=0.0,
        frontier=EXACT_FRONTIER,
    )


def _measured_row(name: str, actual: Tensor, tolerance: Tolerance, measured: Measured) -> OutputMetrics:
    return OutputMetrics(
        name=name,
        dtype=actual.dtype,
        shape=actual.array.shape,
        max_abs=measured.max_abs,
        max_rel=measured.max_rel,
        rmse=measured.rmse,
        cosine=measured.cosine,
        sqnr_db=measured.sqnr_db,
        delivered_bits=measured.delivered_bits,
        mismatched=measured.mismatched,
        elements=actual.array.size,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        headroom=measured.headroom,
        frontier=measured.frontier,
    )


_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}
