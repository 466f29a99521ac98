"""Compare a result with its golden: first structure and shape, then types, NaN and infinity, values."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import msgspec
import numpy as np

from harness.core.comparison import wording
from harness.core.comparison.hints import shape_hint, value_hint
from harness.core.comparison.metrics import any_finite, measure_error, same_bits
from harness.core.comparison.output_kind import (
    Copied,
    OutputKind,
    Quantized,
    UnknownPositions,
    drawn_row,
    with_steps,
    with_ties,
)
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.output_rows import (
    empty_row,
    equal_row,
    measured_row,
    unmeasured_row,
    whole_row,
    with_details,
)
from harness.core.comparison.policy import Policy
from harness.core.comparison.random_outputs import Distribution, name_of
from harness.core.comparison.ties import Chosen
from harness.core.comparison.tolerance import EXACT, Tolerance, ToleranceFor
from harness.core.comparison.unordered import in_order_of
from harness.core.noise.noise import NoiseRule, with_noise
from harness.core.records.verdict import Verdict
from harness.core.values.value import STRING, Map, Sequence, Tensor, Value
from harness.core.verdicts.judge_output import judge_row, worst
from harness.core.verdicts.judgement import OutputJudgement


class OutputComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a comparison.

    Attributes:
        verdict: None where the result agrees; else the first verdict of the outputs, in the order of the
            table: ``shape_mismatch``, ``dtype_mismatch``, ``nan_mismatch`` or ``mismatch``. ``no_golden``
            where nothing is wrong for certain, but an output cannot tell right from wrong.
        message: One line for people about the output that decides; empty where all agree.
        outputs: Every output, good or bad, in the order of the golden. Those with ``mismatched`` > 0 are bad.
    """

    verdict: Verdict | None
    message: str
    outputs: tuple[OutputMetrics, ...]


MOST_HINTS = 8
"""Largest number of wrong outputs of one result that are searched for a pattern: the first ones.

A search takes as long as hundreds of comparisons. A language model that plays a text in all ways has a
hundred outputs.
"""

ONLY_NUMBERS: Mapping[str, OutputKind] = MappingProxyType({})


def compare_all(
    golden: Iterable[tuple[str, Value]],
    actual: Iterable[tuple[str, Value]],
    tolerance_for: ToleranceFor,
    kinds: Mapping[str, OutputKind] = ONLY_NUMBERS,
    noise: NoiseRule | None = None,
    policy: Policy | None = None,
) -> OutputComparison:
    """Compare all outputs of a model by name; their order does not matter.

    Outputs whose elements have no order are sorted as the golden is. An output that is missing, or that the
    golden does not have, is a ``shape_mismatch``.

    ``tolerance_for`` is called once for each tensor, with the element type of the golden; its tolerance
    judges if there is no policy. ``kinds`` are the kinds of outputs whose values are not compared as plain
    numbers.
    """
    wanted, results = dict(golden), dict(actual)
    if kinds:
        results = in_order_of(wanted, results, kinds)
    missing = [name for name in wanted if name not in results]
    unexpected = [name for name in results if name not in wanted]
    message = wording.other_names(missing, unexpected)
    made = _Rows(tolerance_for, noise)
    rows = [
        tuple(made.of(name, value, results[name], kinds.get(name)))
        if name in results
        else (_other_form(whole_row(name, value), message),)
        for name, value in wanted.items()
    ]
    rows += [(_other_form(whole_row(name, results[name]), message),) for name in unexpected]
    return compared(rows, policy or tolerance_for)


def compare_outputs(  # noqa: PLR0913 - what two values are, and what judges them
    name: str,
    golden: Value,
    actual: Value,
    tolerance_for: ToleranceFor,
    output_kind: OutputKind | None = None,
    noise: NoiseRule | None = None,
    policy: Policy | None = None,
    *,
    hints: int = MOST_HINTS,
) -> OutputComparison:
    """Compare one output with its golden.

    Values are not compared if the shapes differ. If the element types differ, they are compared in float64
    (complex128), to show whether they are right. NaN equals NaN, infinity equals infinity of the same sign,
    -0.0 equals +0.0. Strings are compared exactly. The items of a sequence count in their order; the entries
    of a map are matched by key. Parts are named as ``harness.core.values.value.leaves`` names them; arguments
    are as for ``compare_all``. ``hints`` is the number of tensors that may be searched for what explains an
    error, ``MOST_HINTS`` by default.
    """
    made = _Rows(tolerance_for, noise, hints)
    rows = [(row,) for row in made.of(name, golden, actual, output_kind)]
    return compared(rows, policy or tolerance_for, "parts")


def compared(
    rows: Iterable[tuple[OutputMetrics, ...]], by: Policy | ToleranceFor, noun: str = "outputs"
) -> OutputComparison:
    """Judge the rows of a comparison: for each output the rows of its leaves.

    A policy judges them, or the tolerances that they were measured with; messages call the results by the
    noun.
    """
    outputs: list[OutputMetrics] = []
    found: list[OutputJudgement] = []
    for of_output in rows:
        judged = [judge_row(row, by if isinstance(by, Policy) else _own_policy(row, by)) for row in of_output]
        outputs += [one.row for one in judged]
        fault = worst(judged, "parts")
        first = judged[0]
        found.append(first if fault is None else msgspec.structs.replace(first, fault=fault[0], why=fault[1]))
    wrong = worst(found, noun)
    verdict, message = wrong or (None, "")
    return OutputComparison(verdict=verdict, message=message, outputs=tuple(outputs))


def _own_policy(row: OutputMetrics, tolerance_for: ToleranceFor) -> Policy:
    """Return the tolerance that a row was measured with; for positions that of the values that chose them."""
    ties_of = row.details.ties_of if row.details is not None else ""
    fixed = tolerance_for(ties_of) if ties_of else Tolerance(rtol=row.rtol, atol=row.atol)
    return Policy(fixed=fixed, judge_by="table")


class _Rows:
    """Makes the rows of outputs; holds what is common to all outputs of a model."""

    def __init__(self, tolerance_for: ToleranceFor, noise: NoiseRule | None, hints: int = MOST_HINTS) -> None:
        self.tolerance_for = tolerance_for
        self.noise = noise
        self.hints_left = hints

    def of(
        self, name: str, golden: Value, actual: Value, output_kind: OutputKind | None = None
    ) -> Iterator[OutputMetrics]:
        """Yield the rows of the parts of an output; compare a container of another form as a whole."""
        match golden, actual:
            case Tensor(), Tensor():
                yield self._tensor(name, golden, actual, output_kind)
            case Sequence(), Sequence() if len(golden.items) == len(actual.items):
                if not golden.items:
                    yield empty_row(name, golden)
                for index, (left, right) in enumerate(zip(golden.items, actual.items, strict=True)):
                    yield from self.of(f"{name}[{index}]", left, right)
            case Map(), Map() if golden.keys.array.size == actual.keys.array.size:
                yield from self._map(name, golden, actual)
            case None, None:
                yield empty_row(name, None)
            case _:
                yield _other_kind(name, golden, actual)

    def _map(self, name: str, golden: Map, actual: Map) -> Iterator[OutputMetrics]:
        noise = self.noise
        same_order = golden.keys.array.tolist() == actual.keys.array.tolist()
        if golden.keys.dtype == actual.keys.dtype and not same_order:
            golden, actual = _by_key(golden), _by_key(actual)
            noise = None  # the noise has the golden's original order
            if message := wording.keys_differ(golden.keys.array.tolist(), actual.keys.array.tolist()):
                row = whole_row(f"{name}.keys", actual.keys)
                yield _other_form(row, f"{wording.output(name)}: {message}")
                return
        yield from _Rows(self.tolerance_for, None).of(f"{name}.keys", golden.keys, actual.keys)
        yield from _Rows(self.tolerance_for, noise).of(f"{name}.values", golden.values, actual.values)

    def _tensor(
        self, name: str, golden: Tensor, actual: Tensor, output_kind: OutputKind | None
    ) -> OutputMetrics:
        tolerance = self.tolerance_for(golden.dtype)
        if golden.array.shape != actual.array.shape:
            same_type = golden.dtype == actual.dtype
            if same_type and isinstance(output_kind, Chosen) and output_kind.op == "NonZero":
                return self._list(name, golden, actual, output_kind)
            hint = shape_hint(golden, actual, tolerance) if same_type and golden.dtype != STRING else ""
            return _other_kind(name, golden, actual, hint)
        if golden.dtype != actual.dtype:
            return _retyped_row(name, golden, actual, tolerance)
        if golden.dtype == STRING:
            return _string_row(name, golden, actual)
        if isinstance(output_kind, Distribution) and not golden.dtype.startswith(
            "complex"
        ):  # ONNX draws real numbers
            return _random_row(name, actual, output_kind)
        return self._numbers(name, golden, actual, tolerance, output_kind)

    def _numbers(
        self, name: str, golden: Tensor, actual: Tensor, tolerance: Tolerance, output_kind: OutputKind | None
    ) -> OutputMetrics:
        # Most results are equal bit by bit, and a run compares hundreds of thousands of small ones.
        if same_bits(golden.array, actual.array):
            return equal_row(name, golden, tolerance)
        measured = measure_error(golden, actual, tolerance)
        row, note = measured_row(name, actual, tolerance, measured), ""
        if isinstance(output_kind, Quantized):
            row = with_steps(row, output_kind, golden, actual)
        if isinstance(output_kind, Chosen):  # a tie is right, whatever multiple of the noise its error is
            if measured.mismatched:
                row, note = self._chosen(row, golden, actual, output_kind)
        elif self.noise is not None and self.noise.knows(name) and not measured.special:
            positions = isinstance(output_kind, UnknownPositions)
            row = with_noise(row, golden, actual, self.noise, positions=positions)
        if measured.special:
            message = wording.special_values(name, golden, actual, measured)
            return with_details(row, special=measured.special, message=message)
        if isinstance(output_kind, Copied) and row.max_abs:
            row = with_details(
                row,
                copied=True,
                message=wording.values_words(
                    name, golden, actual, measure_error(golden, actual, EXACT), EXACT
                ),
            )
        if row.mismatched or (row.noise is not None and row.noise.worst):
            hint = self._hint(golden, actual, tolerance)
            row = with_details(row, hint=hint) if hint else row
        if row.mismatched:
            measured = msgspec.structs.replace(measured, mismatched=row.mismatched)
            row = with_details(
                row, message=wording.values_words(name, golden, actual, measured, tolerance, note)
            )
        return row

    def _chosen(
        self, row: OutputMetrics, golden: Tensor, actual: Tensor, chosen: Chosen
    ) -> tuple[OutputMetrics, str]:
        """Return the row of positions that differ, with their ties, and a note on the ties."""
        if self.noise is not None and row.name in self.noise.moved:
            chosen = msgspec.structs.replace(chosen, moved=self.noise.moved[row.name].mask)
        row, note = with_ties(row, chosen, golden, actual, self._tie_tolerance(chosen))
        if self.noise is not None:
            row = with_noise(row, golden, actual, self.noise, positions=True)
        return row, note

    def _hint(self, golden: Tensor, actual: Tensor, tolerance: Tolerance) -> str:
        if not self.hints_left:
            return ""
        self.hints_left -= 1
        return value_hint(golden, actual, tolerance)

    def _list(self, name: str, golden: Tensor, actual: Tensor, output_kind: Chosen) -> OutputMetrics:
        """Compare lists of different lengths: right if the positions in only one list lie next to zero."""
        tolerance = self._tie_tolerance(output_kind)
        row, _ = with_ties(whole_row(name, actual), output_kind, golden, actual, tolerance)
        if row.details is None or not row.details.tie_frontier:
            return _other_kind(name, golden, actual)
        return row

    def _tie_tolerance(self, chosen: Chosen) -> Tolerance:
        return EXACT if chosen.exact else self.tolerance_for(chosen.data.dtype)


def _by_key(entries: Map) -> Map:
    order = np.argsort(entries.keys.array, kind="stable")
    return Map(
        keys=Tensor(dtype=entries.keys.dtype, array=entries.keys.array[order]),
        values=Tensor(dtype=entries.values.dtype, array=entries.values.array[order]),
    )


def _random_row(name: str, actual: Tensor, draw: Distribution) -> OutputMetrics:
    row, misfit = drawn_row(name, actual, draw)
    if not misfit:
        return row
    message = f"{wording.output(name)}: this is no sample of its distribution ({name_of(draw)}): {misfit}"
    return with_details(row, message=message, special=0 if any_finite(actual) else max(1, actual.array.size))


def _retyped_row(name: str, golden: Tensor, actual: Tensor, tolerance: Tolerance) -> OutputMetrics:
    """Compare two element types: no element is right, but the distance is measured."""
    message = f"{wording.output(name)}: got {actual.dtype}, golden is {golden.dtype}"
    if STRING in (golden.dtype, actual.dtype):
        return with_details(whole_row(name, actual), differs="dtype", message=message)
    measured = measure_error(golden, actual, tolerance)
    row = measured_row(name, actual, tolerance, measured)
    row = msgspec.structs.replace(row, mismatched=max(1, actual.array.size), headroom=None, frontier=())
    share = wording.share_text(measured.mismatched, actual.array.size)
    message += f"; {share} differ as well" if measured.mismatched else "; the values agree"
    return with_details(row, differs="dtype", message=message)


def _string_row(name: str, golden: Tensor, actual: Tensor) -> OutputMetrics:
    differs = np.flatnonzero(golden.array.ravel() != actual.array.ravel())
    row = unmeasured_row(name, actual, differs.size)
    return with_details(row, message=wording.strings(name, golden, actual, differs)) if differs.size else row


def _other_kind(name: str, golden: Value, actual: Value, hint: str = "") -> OutputMetrics:
    message = f"{wording.output(name)}: got {wording.kind(actual)}, golden is {wording.kind(golden)}"
    return _other_form(whole_row(name, actual), "; ".join(filter(None, (message, hint))))


def _other_form(row: OutputMetrics, message: str) -> OutputMetrics:
    return with_details(row, differs="shape", message=message)
