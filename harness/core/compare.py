"""Does a result agree with its golden? Structure and shape first, then types, NaN and infinity, values."""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq

import msgspec
import numpy as np

from harness.core import wording
from harness.core.metrics import EXACT_FRONTIER, measure
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
    found = [
        compare(name, value, results.pop(name), tolerance_for) if name in results else _absent(name, value)
        for name, value in golden
    ]
    found += [_unexpected(name, value) for name, value in results.items()]
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
    if isinstance(golden, Sequence) and isinstance(actual, Sequence) and len(golden.items) == len(actual.items):
        if not golden.items:
            yield _agreed(_row(name, golden))
        for index, (left, right) in enumerate(zip(golden.items, actual.items, strict=True)):
            yield compare(f"{name}[{index}]", left, right, tolerance_for)
    elif isinstance(golden, Map) and isinstance(actual, Map) and golden.keys.array.size == actual.keys.array.size:
        yield from _compare_map(name, golden, actual, tolerance_for)
    elif golden is None and actual is None:
        yield _agreed(_row(name, None))
    else:
        message = f"{wording.output(name)}: got {wording.kind(actual)}, golden is {wording.kind(golden)}"
        yield _wrong(Verdict.SHAPE_MISMATCH, message, _row(name, actual))


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
    if golden.array.shape != actual.array.shape:
        message = f"{wording.output(name)}: got {wording.kind(actual)}, golden is {wording.kind(golden)}"
        return _wrong(Verdict.SHAPE_MISMATCH, message, _row(name, actual))
    if golden.dtype != actual.dtype:
        return _compare_retyped(name, golden, actual, tolerance_for(golden.dtype))
    if golden.dtype == STRING:
        return _compare_strings(name, golden, actual)
    tolerance = tolerance_for(golden.dtype)
    # Most results are equal bit by bit, and a run compares hundreds of thousands of small ones.
    if golden.array.tobytes() == actual.array.tobytes():
        return _agreed(_equal_row(name, golden, tolerance))
    measured = measure(golden, actual, tolerance)
    row = _measured_row(name, golden, actual, tolerance)
    if measured.special:
        return Comparison(
            verdict=Verdict.NAN_MISMATCH,
            message=wording.special_values(name, golden, actual, measured),
            outputs=(row,),
        )
    if measured.mismatched:
        return Comparison(
            verdict=Verdict.MISMATCH,
            message=wording.values(name, golden, actual, measured, tolerance),
            outputs=(row,),
        )
    return _agreed(row)
