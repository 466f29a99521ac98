"""Compare the outputs of several data sets as one."""

from collections.abc import Callable, Sequence

from harness.core.compare import Comparison, compare_all
from harness.core.tolerance import Tolerance
from harness.core.value import Value
from harness.engine.outcome import NamedValues


def compare_sets(
    answers: Sequence[NamedValues],
    results: Sequence[NamedValues],
    tolerance_for: Callable[[str], Tolerance],
    *,
    only_known: bool = False,
) -> Comparison:
    """Compare all data sets at once; beyond the first, names carry the data set's number.

    Args:
        answers: For each data set the right outputs by name.
        results: For each data set what is to be judged.
        tolerance_for: Element type of an output -> tolerance.
        only_known: Pass over results for which there is no answer.
    """
    wanted: list[tuple[str, Value]] = []
    found: list[tuple[str, Value]] = []
    for index, (answer, result) in enumerate(zip(answers, results, strict=True)):
        prefix = f"{index}/" if index else ""
        known = {name for name, _ in answer}
        wanted += [(prefix + name, value) for name, value in answer]
        found += [(prefix + name, value) for name, value in result if name in known or not only_known]
    return compare_all(wanted, found, tolerance_for)
