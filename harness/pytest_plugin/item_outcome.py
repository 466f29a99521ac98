"""The outcome of a cell's test: pass, skip, expected failure or failure, with its text."""

from typing import Literal

import msgspec
from msgspec import UNSET

from harness.core.records.cell import Cell
from harness.core.records.facts import Placement
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.core.text.visible_text import visible
from harness.plan.baselines import FIRST_RUN
from harness.plan.plan import Plan
from harness.report.cells.report_cell import command_of

EDGE = 1024
"""Characters shown of the beginning, and of the end, of a process's output."""

_OUTPUTS_SHOWN = 5


class ItemOutcome(msgspec.Struct, frozen=True):
    """How a test ends.

    Attributes:
        text: The reason; its first line is a summary.
    """

    kind: Literal["passed", "skipped", "xfailed", "failed"]
    text: str = ""


def outcome_of(record: Record, cell: Cell, plan: Plan) -> ItemOutcome:
    """Return how the test of a cell ends; the plan has required targets and expectations."""
    if record.lacks_target and plan.target(record.target).required:
        return ItemOutcome(
            "failed", _failure(record, plan, f"required target unavailable: {summary_line(record)}")
        )
    if not record.expected:
        return ItemOutcome("failed", _failure(record, plan, summary_line(record)))
    if record.family is Family.PASSED:
        return ItemOutcome("passed")
    if record.family is Family.FAILED:
        # That of conditions that hold is among them: otherwise the failure would not be expected.
        entries = (entry for entry in plan.expectations(cell) if record.verdict in entry.verdicts)
        expectation = next(entries, None)
        why = _by_baselines(record, plan) if expectation is None else expectation.reason
        return ItemOutcome("xfailed", visible(f"{record.verdict}, expected: {why}"))
    return ItemOutcome("skipped", summary_line(record))


def _by_baselines(record: Record, plan: Plan) -> str:
    """Return why a failure is expected that no entry of the matrix expects."""
    if plan.matrix.baselines is UNSET:
        return record.reason
    known = any(one.by_cell.get(record.cell) is record.verdict for one in plan.matrix.baselines)
    return f"{'known by a baseline' if known else FIRST_RUN}; {record.reason}"


def summary_line(record: Record) -> str:
    """Return one line: ``unavailable: no_device: no device of type NPU``."""
    cause = record.cause if record.cause and record.cause not in record.reason else ""
    return visible(": ".join(filter(None, (record.verdict, cause, record.reason))))


def excerpt(printed: str) -> str:
    """Return the beginning and the end of a process's output."""
    if not printed:  # the usual case
        return ""
    text = visible(printed.replace("\r\n", "\n")).strip("\n")
    left_out = len(text) - 2 * EDGE
    if left_out <= 0:
        return text
    return f"{text[:EDGE]}\n… {left_out:,} characters left out …\n{text[-EDGE:]}"


def _failure(record: Record, plan: Plan, headline: str) -> str:
    lines = [headline, "", f"  cell:       {record.cell}", f"  provider:   {visible(record.provider)}"]
    if record.fed:
        lines.append(f"  fed:        {visible(record.fed)}")
    if record.phase:
        lines.append(f"  phase:      {record.phase}")
    if record.placement is not None:
        lines.append(f"  placement:  {_placed(record.placement)}")
    failing = [output for output in record.outputs if output.mismatched]
    for output in failing[:_OUTPUTS_SHOWN]:
        headroom = "" if output.headroom is None else f", error {output.headroom:.3g} times the tolerance"
        lines.append(
            f"  output:     {visible(output.name)!r} {output.dtype}{list(output.shape)}: "
            f"{output.mismatched} of {output.elements} elements differ{headroom} "
            f"(rtol {output.rtol:g}, atol {output.atol:g})"
        )
    if len(failing) > _OUTPUTS_SHOWN:
        lines.append(f"              and {len(failing) - _OUTPUTS_SHOWN} more outputs")
    if record.attempt > 1:
        lines.append(f"  attempt:    {record.attempt}")
    if record.retries:
        lines.append(f"  retries:    {', '.join(record.retries)}")
    if record.artifacts:
        lines.append(f"  artifacts:  {record.artifacts}")
    lines.append(f"  again:      {visible(command_of(record, plan.matrix.path))}")
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
