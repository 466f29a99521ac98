"""Outputs for other inputs than those of the data set, held against the CPU provider's.

They show a provider that gives what it computed before, whatever it is fed.
"""

from collections.abc import Callable, Mapping, Sequence

from harness.core.metrics import same_bits
from harness.core.output_kind import OutputKind, Quantized
from harness.core.output_metrics import OutputMetrics
from harness.core.rows import with_details
from harness.core.tolerance import Tolerance
from harness.core.value import STRING, Tensor, Value, to_wire
from harness.core.weak_golden import holds_special
from harness.engine.compare_sets import compare_sets
from harness.engine.outcome import NamedValues, Ran
from harness.golden.golden import Golden


def other_rows(
    golden: Golden,
    outcome: Ran,
    tolerance_for: Callable[[str], Tolerance],
    kinds: Sequence[Mapping[str, OutputKind]],
) -> tuple[OutputMetrics, ...]:
    """The rows of outputs for other inputs, as far as these say something about the provider.

    Left out are outputs that are right to the bit; positions, whose ties are not known for these inputs;
    draws by lot; and outputs in which they make a NaN or an infinity that the first ones do not: they may
    lie outside of what an operator takes.

    Args:
        golden: Has outputs for both inputs.
        outcome: Likewise.
        tolerance_for: Element type of an output -> tolerance.
        kinds: Those of the outputs for the first inputs.
    """
    first, found = dict(golden.outputs[0]), dict(outcome.other or ())
    own_first = dict(outcome.outputs[0])
    by_name = kinds[0] if kinds else {}
    asked = tuple(
        (name, value)
        for name, value in golden.other
        if name in found and isinstance(by_name.get(name), Quantized | None)
        if not _is_same(value, found[name])
        if not (holds_special(value) and not holds_special(first.get(name)))
    )
    given = tuple((name, found[name]) for name, _ in asked)
    rows = compare_sets((asked,), (given,), tolerance_for, kinds=(by_name,) if by_name else ()).outputs
    wrong = {_whose(row) for row in rows if row.mismatched}
    stale = {name for name, value in given if name in wrong and _is_same(value, own_first.get(name))}
    if stale:  # few are, and the golden's two answers have to be compared to tell
        stale &= _moved(golden, asked, tolerance_for)
    return tuple(with_details(row, stale=True) if _whose(row) in stale else row for row in rows)


def _moved(golden: Golden, asked: NamedValues, tolerance_for: Callable[[str], Tolerance]) -> set[str]:
    """Outputs of the golden that other inputs change by more than the tolerance."""
    names = {name for name, _ in asked}
    before = tuple((name, value) for name, value in golden.outputs[0] if name in names)
    apart = compare_sets((before,), (asked,), tolerance_for).outputs
    return {_whose(row) for row in apart if row.mismatched}


def _whose(row: OutputMetrics) -> str:
    """The output that a row's leaf belongs to."""
    return row.name.partition("[")[0].removesuffix(".keys").removesuffix(".values")


def _is_same(one: Value, other: Value) -> bool:
    """Whether two values are equal bit by bit; nothing is equal to a value that is not there."""
    if one is None or other is None:
        return False
    if not (isinstance(one, Tensor) and isinstance(other, Tensor)) or one.dtype == STRING:
        return bool(to_wire(one) == to_wire(other))
    same_form = (one.dtype, one.array.shape) == (other.dtype, other.array.shape)
    return same_form and same_bits(one.array, other.array)
