"""From a record to what pytest says about it: pass, skip, expected failure or failure, in which words."""

from typing import Literal

import msgspec

from harness.core.cell import Cell
from harness.core.record import Placement, Record, failing_outputs
from harness.core.text import visible
from harness.core.verdict import Family, Verdict
from harness.plan.plan import Plan

EDGE = 1024
"""How much is shown of the beginning, and of the end, of what a process printed; in characters."""

OUTPUTS_SHOWN = 5


class Outcome(msgspec.Struct, frozen=True):
    """How a test ends.

    Attributes:
        kind: In pytest's words.
        text: Why; its first line says it all.
    """

    kind: Literal["passed", "skipped", "xfailed", "failed"]
    text: str = ""


def outcome_of(record: Record, cell: Cell, plan: Plan) -> Outcome:
    """How the test of a cell ends.

    Args:
        record: The cell's record.
        cell: The cell.
        plan: Says whether its target is required, and what was expected of the cell.
    """
    if record.verdict is Verdict.UNAVAILABLE and plan.target(record.target).required:
        return Outcome("failed", _failure(record, f"required target unavailable: {summary(record)}"))
    if not record.expected:
        return Outcome("failed", _failure(record, summary(record)))
    if record.family is Family.PASSED:
        return Outcome("passed")
    if record.family is Family.FAILED:
        expectation = plan.expectation(cell)
        why = record.reason if expectation is None else expectation.reason
        return Outcome("xfailed", visible(f"{record.verdict}, expected: {why}"))
    return Outcome("skipped", summary(record))


def summary(record: Record) -> str:
    """``unavailable: no_device: no device of type NPU``, in one line."""
    cause = record.cause if record.cause and record.cause not in record.reason else ""
    return visible(": ".join(filter(None, (record.verdict, cause, record.reason))))


def excerpt(printed: str) -> str:
    """The beginning and the end of what a process printed."""
    if not printed:  # as nearly always
        return ""
    text = visible(printed.replace("\r\n", "\n")).strip("\n")
    left_out = len(text) - 2 * EDGE
    if left_out <= 0:
        return text
    return f"{text[:EDGE]}\n… {left_out:,} characters left out …\n{text[-EDGE:]}"


def _failure(record: Record, headline: str) -> str:
    lines = [headline, "", f"  cell:       {record.cell}", f"  provider:   {visible(record.provider)}"]
    if record.phase:
        lines.append(f"  phase:      {record.phase}")
    if record.placement is not None:
        lines.append(f"  placement:  {_placed(record.placement)}")
    failing = list(failing_outputs(record))
    for output in failing[:OUTPUTS_SHOWN]:
        headroom = "" if output.headroom is None else f", error {output.headroom:.3g} times what is allowed"
        lines.append(
            f"  output:     {visible(output.name)!r} {output.dtype}{list(output.shape)}: "
            f"{output.mismatched} of {output.elements} elements differ{headroom} "
            f"(rtol {output.rtol:g}, atol {output.atol:g})"
        )
    if len(failing) > OUTPUTS_SHOWN:
        lines.append(f"              and {len(failing) - OUTPUTS_SHOWN} more outputs")
    if record.attempt > 1:
        lines.append(f"  attempt:    {record.attempt}")
    if record.retries:
        lines.append(f"  retries:    {', '.join(record.retries)}")
    if record.artifacts:
        lines.append(f"  artifacts:  {record.artifacts}")
    return "\n".join(lines)


def _placed(placement: Placement) -> str:
    on_ep, on_cpu = (
        f"{nodes} on {where}" + (f" ({', '.join(map(visible, sorted(ops)))})" if ops else "")
        for nodes, where, ops in (
            (placement.ep_nodes, "the EP", placement.ep_ops),
            (placement.cpu_nodes, "the CPU", placement.cpu_ops),
        )
    )
    return f"{on_ep}, {on_cpu}"
