"""Compare the outputs of several data sets of a converted model as one."""

from collections.abc import Mapping, Sequence

from harness.core.compare import Comparison, ToleranceFor
from harness.core.nature import Nature
from harness.core.precise import judge_precision
from harness.engine.compare_sets import by_name, flat
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
        precision: What computes: a key of ``harness.core.tolerance.UNIT_ROUNDOFF``.
        natures: For each data set those of its outputs by name.
    """
    return judge_precision(
        flat(golden),
        None if own is None else flat(own),
        flat(results),
        tolerance_for,
        precision,
        by_name(natures),
    )
