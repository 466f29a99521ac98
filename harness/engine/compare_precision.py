"""Compare the outputs of several data sets of a converted model as one."""

from collections.abc import Mapping, Sequence

from harness.core.compare import Comparison, ToleranceFor
from harness.core.nature import Nature
from harness.core.precise import judge_precision
from harness.core.value import Value
from harness.engine.outcome import NamedValues


def compare_precision(
    golden: Sequence[NamedValues],
    own: Sequence[NamedValues] | None,
    results: Sequence[NamedValues],
    tolerance_for: ToleranceFor,
    precision: str,
    natures: Sequence[Mapping[str, Nature]] = (),
) -> Comparison:
    """Judge all data sets at once; beyond the first, names carry the data set's number.

    Args:
        golden: For each data set what the CPU provider makes of the model as it came.
        own: The same of the converted model; None where the CPU provider cannot run that.
        results: For each data set what is to be judged.
        tolerance_for: Element type of an output -> tolerance at the precision.
        precision: What computes: a key of ``harness.core.precise.ROUNDOFF``.
        natures: For each data set those of its outputs by name.
    """
    special = {
        _prefix(index) + name: nature for index, one in enumerate(natures) for name, nature in one.items()
    }
    return judge_precision(
        _flat(golden), None if own is None else _flat(own), _flat(results), tolerance_for, precision, special
    )


def _flat(sets: Sequence[NamedValues]) -> list[tuple[str, Value]]:
    return [(_prefix(index) + name, value) for index, one in enumerate(sets) for name, value in one]


def _prefix(index: int) -> str:
    return f"{index}/" if index else ""
