"""Compare the outputs of several data sets as one."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from harness.core.compare import Comparison, compare_all
from harness.core.noise import NoiseRule
from harness.core.output_kind import OutputKind
from harness.core.tolerance import Tolerance
from harness.core.value import Value
from harness.engine.outcome import NamedValues

T = TypeVar("T")


def numbered(data_set: int, name: str) -> str:
    """The name of an output among those of all data sets; in the first it stays what it is."""
    return f"{data_set}/{name}" if data_set else name


def flat(sets: Sequence[NamedValues]) -> list[tuple[str, Value]]:
    """The outputs of all data sets in one list."""
    return [(numbered(index, name), value) for index, outputs in enumerate(sets) for name, value in outputs]


def by_name(sets: Sequence[Mapping[str, T]]) -> dict[str, T]:
    """What is known of outputs, for all data sets in one mapping."""
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
        results: For each data set what is to be judged.
        tolerance_for: Element type of an output -> tolerance.
        kinds: For each data set those of its outputs by name; empty where all outputs are just numbers.
        noise: The noise of the model, as ``noise_rule`` makes it; None where it is not known.
        only_known: Pass over results for which there is no answer.
    """
    found = results
    if only_known:
        known = [{name for name, _ in answer} for answer in answers]
        found = [
            tuple((name, value) for name, value in result if name in names)
            for result, names in zip(results, known, strict=True)
        ]
    return compare_all(flat(answers), flat(found), tolerance_for, by_name(kinds), noise)
