"""Does a result agree with its golden? Structure and shape first, then types, NaN and infinity, values."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Seq
from types import MappingProxyType

import msgspec
import numpy as np

from harness.core import wording
from harness.core.draws import Draw, name_of
from harness.core.hints import shape_hint, value_hint
from harness.core.judged import Judged, judge_row, worst
from harness.core.metrics import EXACT_FRONTIER, any_finite, measure, same_bits
from harness.core.noise import NoiseRule, with_noise
from harness.core.output_kind import OutputKind, drawn_row, with_details, with_steps, with_ties
from harness.core.output_metrics import OutputMetrics
from harness.core.policy import Policy
from harness.core.rows import empty_row, equal_row, measured_row, whole_row
from harness.core.steps import Quantized
from harness.core.ties import Chosen
from harness.core.tolerance import EXACT, Tolerance
from harness.core.unordered import in_order_of
from harness.core.value import STRING, Map, Sequence, Tensor, Value
from harness.core.verdict import Verdict

ToleranceFor = Callable[[str], Tolerance]
"""Element type of the golden -> what it may differ by."""

Rows = Iterator[OutputMetrics]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison came to.

    Attributes:
        verdict: None where the result agrees; else one of ``shape_mismatch``, ``dtype_mismatch``,
            ``nan_mismatch``, ``mismatch``: the first in the table of verdicts that any output deserves; or
            ``no_golden`` where nothing is wrong for certain, but an output cannot tell right from wrong.
        message: One line for people about the output that decides; empty where all agree.
        outputs: Every output, good or bad, in the order of the golden. Those with ``mismatched`` > 0 are bad.
    """

    verdict: Verdict | None
    message: str
    outputs: tuple[OutputMetrics, ...]


NOTHING_SPECIAL: Mapping[str, OutputKind] = MappingProxyType({})


def compare_all(
    golden: Seq[tuple[str, Value]],
    actual: Seq[tuple[str, Value]],
    tolerance_for: ToleranceFor,
    kinds: Mapping[str, OutputKind] = NOTHING_SPECIAL,
    noise: NoiseRule | None = None,
    policy: Policy | None = None,
) -> Comparison:
    """Compare all outputs of a model by name; their order does not matter.

    Outputs whose elements may stand in any order are brought into that of the golden.

    An output that is missing, or that the golden does not have, is a ``shape_mismatch``.

    Args:
        golden: The right answers.
        actual: What the EP computed.
        tolerance_for: Asked once for each tensor, with the element type of the golden.
        kinds: Of outputs that are more than numbers, by name.
        noise: The noise of the model, where that is known.
        policy: What judges; ``tolerance_for`` alone by default.
    """
    results = in_order_of(dict(golden), dict(actual), kinds) if kinds else dict(actual)
    wanted = {name for name, _ in golden}
    missing = [name for name, _ in golden if name not in results]
    unexpected = [name for name in results if name not in wanted]
    message = wording.other_names(missing, unexpected)
    rows: list[tuple[OutputMetrics, ...]] = [
        tuple(_rows(name, value, results[name], tolerance_for, kinds.get(name), noise))
        if name in results
        else (_other_form(whole_row(name, value), message),)
        for name, value in golden
    ]
    rows += [(_other_form(whole_row(name, results[name]), message),) for name in unexpected]
    return compared(rows, policy or tolerance_for)


def compare(
    name: str,
    golden: Value,
    actual: Value,
    tolerance_for: ToleranceFor,
    output_kind: OutputKind | None = None,
    noise: NoiseRule | None = None,
    policy: Policy | None = None,
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
        output_kind: Of a tensor that is more than numbers.
        noise: The noise of the model, where that is known.
        policy: What judges; ``tolerance_for`` alone by default.
    """
    rows = [(row,) for row in _rows(name, golden, actual, tolerance_for, output_kind, noise)]
    return compared(rows, policy or tolerance_for, "parts")


def compared(rows: Seq[Seq[OutputMetrics]], by: Policy | ToleranceFor, noun: str = "outputs") -> Comparison:
    """Judge the rows of a comparison.

    Args:
        rows: For each output those of its leaves.
        by: What judges: a policy, or the tolerances alone that the rows were measured with.
        noun: What each of ``rows`` is, for people.
    """
    outputs: list[OutputMetrics] = []
    found: list[Judged] = []
    for of_output in rows:
        judged = [judge_row(row, by if isinstance(by, Policy) else _own_policy(row, by)) for row in of_output]
        outputs += [one.row for one in judged]
        fault = worst(judged, "parts")
        first = judged[0]
        found.append(first if fault is None else msgspec.structs.replace(first, fault=fault[0], why=fault[1]))
    wrong = worst(found, noun)
    verdict, message = wrong or (None, "")
    return Comparison(verdict=verdict, message=message, outputs=tuple(outputs))


def _own_policy(row: OutputMetrics, tolerance_for: ToleranceFor) -> Policy:
    """The tolerance that a row was measured with; for positions that of the values they choose by."""
    ties_of = row.details.ties_of if row.details is not None else ""
    fixed = tolerance_for(ties_of) if ties_of else Tolerance(rtol=row.rtol, atol=row.atol)
    return Policy(fixed=fixed, judge_by="table")


def _rows(
    name: str,
    golden: Value,
    actual: Value,
    tolerance_for: ToleranceFor,
    output_kind: OutputKind | None,
    noise: NoiseRule | None,
) -> Rows:
    if isinstance(golden, Tensor) and isinstance(actual, Tensor):
        yield _tensor_row(name, golden, actual, tolerance_for, output_kind, noise)
    else:
        yield from _rows_of_parts(name, golden, actual, tolerance_for, noise)


def _rows_of_parts(
    name: str, golden: Value, actual: Value, tolerance_for: ToleranceFor, noise: NoiseRule | None
) -> Rows:
    """The rows of a container's parts; a container of another make is compared as a whole."""
    if (
        isinstance(golden, Sequence)
        and isinstance(actual, Sequence)
        and len(golden.items) == len(actual.items)
    ):
        if not golden.items:
            yield empty_row(name, golden)
        for index, (left, right) in enumerate(zip(golden.items, actual.items, strict=True)):
            yield from _rows(f"{name}[{index}]", left, right, tolerance_for, None, noise)
    elif (
        isinstance(golden, Map)
        and isinstance(actual, Map)
        and golden.keys.array.size == actual.keys.array.size
    ):
        yield from _rows_of_map(name, golden, actual, tolerance_for, noise)
    elif golden is None and actual is None:
        yield empty_row(name, None)
    else:
        yield _other_kind(name, golden, actual)


def _rows_of_map(
    name: str, golden: Map, actual: Map, tolerance_for: ToleranceFor, noise: NoiseRule | None
) -> Rows:
    if golden.keys.dtype == actual.keys.dtype and golden.keys.array.tolist() != actual.keys.array.tolist():
        golden, actual = _by_key(golden), _by_key(actual)
        noise = None  # in the order of the golden, which is another now
        if message := wording.keys_differ(golden.keys.array.tolist(), actual.keys.array.tolist()):
            yield _other_form(whole_row(f"{name}.keys", actual.keys), f"{wording.output(name)}: {message}")
            return
    yield from _rows(f"{name}.keys", golden.keys, actual.keys, tolerance_for, None, None)
    yield from _rows(f"{name}.values", golden.values, actual.values, tolerance_for, None, noise)


def _by_key(entries: Map) -> Map:
    order = np.argsort(entries.keys.array, kind="stable")
    return Map(
        keys=Tensor(dtype=entries.keys.dtype, array=entries.keys.array[order]),
        values=Tensor(dtype=entries.values.dtype, array=entries.values.array[order]),
    )


def _tensor_row(
    name: str,
    golden: Tensor,
    actual: Tensor,
    tolerance_for: ToleranceFor,
    output_kind: OutputKind | None,
    noise: NoiseRule | None,
) -> OutputMetrics:
    tolerance = tolerance_for(golden.dtype)
    if golden.array.shape != actual.array.shape:
        if golden.dtype == actual.dtype and isinstance(output_kind, Chosen) and output_kind.op == "NonZero":
            return _row_of_list(name, golden, actual, tolerance_for, output_kind)
        hint = shape_hint(golden, actual, tolerance) if golden.dtype == actual.dtype != STRING else ""
        return _other_kind(name, golden, actual, hint)
    if golden.dtype != actual.dtype:
        return _retyped_row(name, golden, actual, tolerance)
    if golden.dtype == STRING:
        return _string_row(name, golden, actual)
    if isinstance(output_kind, Draw) and not golden.dtype.startswith("complex"):  # ONNX draws real numbers
        return _row_of_draw(name, actual, output_kind)
    return _number_row(name, golden, actual, tolerance_for, output_kind, noise)


def _number_row(
    name: str,
    golden: Tensor,
    actual: Tensor,
    tolerance_for: ToleranceFor,
    output_kind: OutputKind | None,
    noise: NoiseRule | None,
) -> OutputMetrics:
    tolerance = tolerance_for(golden.dtype)
    # Most results are equal bit by bit, and a run compares hundreds of thousands of small ones.
    if same_bits(golden.array, actual.array):
        return equal_row(name, golden, tolerance)
    measured = measure(golden, actual, tolerance)
    row, note = measured_row(name, actual, tolerance, measured), ""
    if isinstance(output_kind, Quantized):
        row = with_steps(row, output_kind, golden, actual)
    elif isinstance(output_kind, Chosen) and measured.mismatched:
        values = EXACT if output_kind.exact else tolerance_for(output_kind.data.dtype)
        row, note = with_ties(row, output_kind, golden, actual, values)
    # A tie is right, whatever multiple of the noise it is.
    if (
        noise is not None
        and name in noise.spreads
        and not measured.special
        and not isinstance(output_kind, Chosen)
    ):
        row = with_noise(row, golden, actual, noise)
    if measured.special:
        told = wording.special_values(name, golden, actual, measured)
        return with_details(row, special=measured.special, told=told)
    if row.mismatched or (row.noise is not None and row.noise.worst):
        hint = value_hint(golden, actual, tolerance)
        row = with_details(row, hint=hint) if hint else row
    if row.mismatched:
        measured = msgspec.structs.replace(measured, mismatched=row.mismatched)
        row = with_details(row, told=wording.values(name, golden, actual, measured, tolerance, note))
    return row


def _row_of_list(
    name: str, golden: Tensor, actual: Tensor, tolerance_for: ToleranceFor, output_kind: Chosen
) -> OutputMetrics:
    """Lists of positions of another length: right where what is in one of them alone lies next to zero."""
    values = EXACT if output_kind.exact else tolerance_for(output_kind.data.dtype)
    row, _ = with_ties(whole_row(name, actual), output_kind, golden, actual, values)
    if row.details is None or not row.details.tie_frontier:
        return _other_kind(name, golden, actual)
    return row


def _row_of_draw(name: str, actual: Tensor, draw: Draw) -> OutputMetrics:
    row, misfit = drawn_row(name, actual, draw)
    if not misfit:
        return row
    told = f"{wording.output(name)}: this is no sample of its distribution ({name_of(draw)}): {misfit}"
    return with_details(row, told=told, special=0 if any_finite(actual) else max(1, actual.array.size))


def _retyped_row(name: str, golden: Tensor, actual: Tensor, tolerance: Tolerance) -> OutputMetrics:
    """Two element types: no element is right and no tolerance passes, but the distance is worth knowing."""
    told = f"{wording.output(name)}: got {actual.dtype}, golden is {golden.dtype}"
    if STRING in (golden.dtype, actual.dtype):
        return with_details(whole_row(name, actual), differs="dtype", told=told)
    measured = measure(golden, actual, tolerance)
    row = measured_row(name, actual, tolerance, measured)
    row = msgspec.structs.replace(row, mismatched=max(1, actual.array.size), headroom=None, frontier=())
    share = wording.share(measured.mismatched, actual.array.size)
    told += f"; {share} differ as well" if measured.mismatched else "; the values agree"
    return with_details(row, differs="dtype", told=told)


def _string_row(name: str, golden: Tensor, actual: Tensor) -> OutputMetrics:
    differs = np.flatnonzero(golden.array.ravel() != actual.array.ravel())
    row = OutputMetrics(
        name=name,
        dtype=STRING,
        shape=actual.array.shape,
        elements=golden.array.size,
        mismatched=differs.size,
        headroom=None if differs.size else 0.0,
        frontier=() if differs.size else EXACT_FRONTIER,
    )
    return with_details(row, told=wording.strings(name, golden, actual, differs)) if differs.size else row


def _other_kind(name: str, golden: Value, actual: Value, hint: str = "") -> OutputMetrics:
    message = f"{wording.output(name)}: got {wording.kind(actual)}, golden is {wording.kind(golden)}"
    message += f"; {hint}" if hint else ""
    return _other_form(whole_row(name, actual), message)


def _other_form(row: OutputMetrics, message: str) -> OutputMetrics:
    return with_details(row, differs="shape", told=message)
