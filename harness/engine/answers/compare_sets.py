"""Compare the outputs of all data sets with answers."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from harness.core.comparison.metrics import same_bits
from harness.core.comparison.output_kind import OutputKind
from harness.core.comparison.tolerance import Tolerance
from harness.core.noise.noise import NoiseRule
from harness.core.values.value import STRING, NamedValues, Tensor, Value, to_wire
from harness.core.verdicts.compare import OutputComparison, compare_all

_T = TypeVar("_T")


def numbered(data_set: int, name: str) -> str:
    """Return the name of an output among those of all data sets.

    The first data set's names stay unchanged.
    """
    return f"{data_set}/{name}" if data_set else name


def flat(sets: Sequence[NamedValues]) -> list[tuple[str, Value]]:
    """Return the outputs of all data sets in one list."""
    return [(numbered(index, name), value) for index, outputs in enumerate(sets) for name, value in outputs]


def by_name(sets: Sequence[Mapping[str, _T]]) -> dict[str, _T]:
    """Return the mappings of all data sets, merged by name."""
    return {numbered(index, name): known for index, one in enumerate(sets) for name, known in one.items()}


def compare_sets(
    answers: Sequence[NamedValues],
    results: Sequence[NamedValues],
    tolerance_for: Callable[[str], Tolerance],
    *,
    kinds: Sequence[Mapping[str, OutputKind]] = (),
    noise: NoiseRule | None = None,
    only_known: bool = False,
) -> OutputComparison:
    """Compare all data sets at once; beyond the first, names carry the data set's number.

    Args:
        answers: For each data set the right outputs by name.
        results: For each data set the outputs to judge.
        tolerance_for: Element type of an output -> tolerance.
        kinds: For each data set the kinds of its outputs by name; empty if all outputs are plain numbers.
        noise: The noise of the model, as ``noise_rule`` makes it; None if unknown.
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


def is_same(one: Value, other: Value) -> bool:
    """Return whether two values are equal bit by bit; a missing value equals nothing."""
    if one is None or other is None:
        return False
    if not (isinstance(one, Tensor) and isinstance(other, Tensor)) or one.dtype == STRING:
        return bool(to_wire(one) == to_wire(other))
    same_form = (one.dtype, one.array.shape) == (other.dtype, other.array.shape)
    return same_form and same_bits(one.array, other.array)
