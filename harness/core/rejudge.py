"""What a record would have been under other tolerances: its metrics judge again, and no device is needed."""

import math
from collections.abc import Callable, Sequence

import msgspec

from harness.core.errors import one_line
from harness.core.metrics import ATOL_GRID
from harness.core.placed import placed
from harness.core.record import OutputMetrics, Record
from harness.core.tolerance import EXACT, Tolerance
from harness.core.verdict import Family, Verdict

ToleranceOf = Callable[[Record], Tolerance | None]
"""A record -> the tolerance that now holds for its rounded outputs; None where the old one stays."""

_BY_TOLERANCE = frozenset(
    {
        Verdict.MISMATCH,
        Verdict.NONDETERMINISTIC,
        Verdict.FALLBACK,
        Verdict.FOLDED,
        Verdict.PASS_PARTIAL,
        Verdict.PASS,
    }
)
"""Verdicts that a tolerance decides. Other shapes, other types and NaN stay what they are under any."""


def rejudged(record: Record, tolerance: Tolerance) -> Record:
    """The record as it would have been under another tolerance.

    Exact for the verdict. Of its outputs ``rtol``, ``atol`` and ``mismatched`` change; the last is 0 or 1
    then, for how many elements lie outside is known for the old tolerance alone, and so is ``headroom``,
    which becomes null. Outputs that were held to equality, such as integers, still are.

    Args:
        record: A record with its frontiers.
        tolerance: Its ``atol`` is one of ``ATOL_GRID``.

    Raises:
        ValueError: The frontiers do not know of that ``atol``.
    """
    if tolerance.atol not in ATOL_GRID:
        raise ValueError(f"atol {tolerance.atol:g} is none of {', '.join(f'{atol:g}' for atol in ATOL_GRID)}")
    if record.verdict not in _BY_TOLERANCE or not record.golden or record.placement is None:
        return record
    outputs = tuple(_under(output, tolerance) for output in record.outputs)
    again = tuple(_under(output, tolerance) for output in record.again)
    if outputs == record.outputs and again == record.again:
        return record
    if wrong := _worst(outputs):
        verdict, reason = Verdict.MISMATCH, wrong
    elif wrong := _worst(again):
        verdict, reason = Verdict.NONDETERMINISTIC, f"a second run of the same session differs: {wrong}"
    else:
        verdict, reason = placed(record.placement)
    return msgspec.structs.replace(
        record,
        verdict=verdict,
        family=verdict.family,
        reason=record.reason if verdict is record.verdict else one_line(reason),
        outputs=outputs,
        again=again,
        latency=record.latency if verdict.family is Family.PASSED else None,
    )


def _under(output: OutputMetrics, tolerance: Tolerance) -> OutputMetrics:
    old = Tolerance(rtol=output.rtol, atol=output.atol)
    if old in (EXACT, tolerance):
        return output
    return msgspec.structs.replace(
        output,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        headroom=None,
        mismatched=0 if needed_rtol(output, tolerance.atol) <= tolerance.rtol else 1,
    )


def needed_rtol(output: OutputMetrics, atol: float) -> float:
    """The smallest rtol with which an output passes at an atol of ``ATOL_GRID``; infinite where none does."""
    for grid_atol, rtol in output.frontier:
        # The frontier ends with its first rtol of 0, which holds for every greater atol, too.
        if grid_atol == atol or (rtol == 0.0 and grid_atol < atol):
            return rtol
    return math.inf


def _worst(outputs: Sequence[OutputMetrics]) -> str:
    """What to say of the first output that fails; empty where all pass."""
    for output in outputs:
        if output.mismatched:
            needed = needed_rtol(output, output.atol)
            what = f"needs rtol {needed:.3g}" if math.isfinite(needed) else "passes with no rtol"
            return f"{output.name}: {what} at atol {output.atol:g}, and has {output.rtol:g}"
    return ""
