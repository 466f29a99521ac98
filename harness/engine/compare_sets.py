"""Compare the outputs of all data sets with answers, and those for other inputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from harness.core.compare import Comparison, compare_all
from harness.core.metrics import same_bits
from harness.core.noise import NoiseRule
from harness.core.output_kind import OutputKind, Quantized
from harness.core.output_metrics import OutputMetrics
from harness.core.rows import with_details
from harness.core.tolerance import Tolerance
from harness.core.value import STRING, NamedValues, Tensor, Value, to_wire
from harness.core.weak_golden import holds_special
from harness.engine.outcome import Ran
from harness.golden.golden import Golden

T = TypeVar("T")


def numbered(data_set: int, name: str) -> str:
    """Return the name of an output among those of all data sets; in the first it stays as it is."""
    return f"{data_set}/{name}" if data_set else name


def flat(sets: Sequence[NamedValues]) -> list[tuple[str, Value]]:
    """Return the outputs of all data sets in one list."""
    return [(numbered(index, name), value) for index, outputs in enumerate(sets) for name, value in outputs]


def by_name(sets: Sequence[Mapping[str, T]]) -> dict[str, T]:
    """Return mappings by name of all data sets as one."""
    return {numbered(index, name): known for index, one in enumerate(sets) for name, known in one.items()}


def compare_sets(
    answers: Sequence[NamedValues],
    results: Sequence[NamedValues],
    tolerance_for: Callable[[str], Tolerance],
    *,
    kinds: Sequence[Mapping[str, OutputKind]] = (),
    noise: NoiseRule | None = None,
    only_known: bool = False,
) -> Comparison:
    """Compare all data sets at once; beyond the first, names carry the data set's number.

    Args:
        answers: For each data set the right outputs by name.
        results: For each data set the outputs to judge.
        tolerance_for: Element type of an output -> tolerance.
        kinds: For each data set the kinds of its outputs by name; empty if all outputs are just numbers.
        noise: The noise of the model, as ``noise_rule`` makes it; None if it is not known.
        only_known: Whether to leave out results without an answer.
    """
    found = results
    if only_known:
        known = [{name for name, _ in answer} for answer in answers]
        found = [
            tuple((name, value) for name, value in result if name in names)
            for result, names in zip(results, known, strict=True)
        ]
    return compare_all(flat(answers), flat(found), tolerance_for, by_name(kinds), noise)


def other_rows(
    golden: Golden,
    outcome: Ran,
    tolerance_for: Callable[[str], Tolerance],
    kinds: Sequence[Mapping[str, OutputKind]],
) -> tuple[OutputMetrics, ...]:
    """Return the rows of outputs for other inputs, as far as they show something about the provider.

    Left out are outputs that are right to the bit; positions, whose ties are not known for these inputs;
    random outputs; and outputs with a NaN or an infinity that the first inputs do not cause: the other
    inputs may lie outside of what an operator takes.
    """
    first, found = dict(golden.outputs[0]), dict(outcome.other or ())
    own_first = dict(outcome.outputs[0])
    by_name = kinds[0] if kinds else {}
    asked = tuple(
        (name, value)
        for name, value in golden.other
        if name in found and isinstance(by_name.get(name), Quantized | None)
        if not is_same(value, found[name])
        if not (holds_special(value) and not holds_special(first.get(name)))
    )
    given = tuple((name, found[name]) for name, _ in asked)
    rows = compare_sets((asked,), (given,), tolerance_for, kinds=(by_name,) if by_name else ()).outputs
    wrong = {_output_of(row) for row in rows if row.mismatched}
    stale = {name for name, value in given if name in wrong and is_same(value, own_first.get(name))}
    if stale:  # rare, and needs a comparison of the golden's two answers
        stale &= _moved(golden, asked, tolerance_for)
    return tuple(with_details(row, stale=True) if _output_of(row) in stale else row for row in rows)


def is_same(one: Value, other: Value) -> bool:
    """Return whether two values are equal bit by bit; a missing value equals nothing."""
    if one is None or other is None:
        return False
    if not (isinstance(one, Tensor) and isinstance(other, Tensor)) or one.dtype == STRING:
        return bool(to_wire(one) == to_wire(other))
    same_form = (one.dtype, one.array.shape) == (other.dtype, other.array.shape)
    return same_form and same_bits(one.array, other.array)


def _moved(golden: Golden, asked: NamedValues, tolerance_for: Callable[[str], Tolerance]) -> set[str]:
    """Return the outputs of the golden that other inputs change by more than the tolerance."""
    names = {name for name, _ in asked}
    before = tuple((name, value) for name, value in golden.outputs[0] if name in names)
    apart = compare_sets((before,), (asked,), tolerance_for).outputs
    return {_output_of(row) for row in apart if row.mismatched}


def _output_of(row: OutputMetrics) -> str:
    """Return the output that a row's leaf belongs to."""
    return row.name.partition("[")[0].removesuffix(".keys").removesuffix(".values")
