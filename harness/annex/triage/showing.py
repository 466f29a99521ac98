"""The results of a fault's smallest model, as far as a sentence needs them."""

import msgspec

from harness.annex.triage.failure_check import FailureCheck, worst_row
from harness.annex.triage.published_model import shape_text
from harness.annex.triage.session_use import OFTEN, with_axes
from harness.annex.triage.signature import VALUE_VERDICTS
from harness.annex.triage.smallest import Smallest
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.facts import Repeats
from harness.core.records.verdict import Verdict
from harness.core.values.value import Tensor
from harness.engine.processes.native_crash import thrown
from harness.plan.runs_entry import repeat_axes

_CHANGES_RESULTS = frozenset({"fp_control", "inputs"})
"""Kinds of manners that affect results."""


class Showing(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a fault's smallest model.

    Attributes:
        row: Its worst output; None if nothing was compared.
        message: The text of its error, or the exception that ended the process; empty if there was none.
        expected: Shape of that output on the CPU EP, as text; empty if unknown.
        runs: Number of equal runs; 0 if unknown.
        distinct: Number of different results of these runs.
        changed: What it changed that affects results: inputs, or how floating-point numbers are rounded.
    """

    row: OutputMetrics | None = None
    message: str = ""
    expected: str = ""
    runs: int = 0
    distinct: int = 0
    changed: tuple[str, ...] = ()


def showing_of(smallest: Smallest, check: FailureCheck) -> Showing:
    """Return the parts of the smallest model's results that a sentence needs."""
    match, verdict = smallest.match, check.signature.verdict
    record, row = match.seen.record, worst_row(match)
    ended, repeats = record.ended, record.repeats
    message = "" if ended is None else ended.message
    expected = ""
    if verdict is Verdict.SHAPE_MISMATCH and row is not None:
        right = dict(check.lab.golden(smallest.subject) or ()).get(row.name)
        expected = shape_text(right.array.shape) or "a scalar" if isinstance(right, Tensor) else ""
    if verdict in VALUE_VERDICTS and (repeats is None or repeats.runs * repeats.sessions == 1):
        repeats = _repeated(smallest, check)
    return Showing(
        row=row,
        message=thrown(match.seen.printed) if verdict is Verdict.CRASH else message,
        expected=expected,
        runs=repeats.runs * repeats.sessions if repeats is not None else 0,
        distinct=repeats.distinct if repeats is not None else 0,
        changed=tuple(one.words for one in record.manners if one.kind in _CHANGES_RESULTS),
    )


def _repeated(smallest: Smallest, check: FailureCheck) -> Repeats | None:
    """Return the results of equal runs of a session: wrong values may be random ones."""
    often = msgspec.structs.replace(check, axes=with_axes(check.axes, repeat_axes(OFTEN)))
    (seen,) = check.lab.run([often.trial(smallest.subject)])
    return seen.record.repeats
