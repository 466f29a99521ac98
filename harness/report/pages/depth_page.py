"""The page *Depth*: where the accuracy of a model goes, node by node."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.core.records.trace import (
    Trace,
    TracedModel,
    TracedNode,
    TracedPartition,
    TracedTarget,
    TraceError,
)
from harness.core.text.counted import plural
from harness.report.drawings.depth_chart import DepthChart, depth_chart
from harness.report.drawings.depth_graph import DepthGraph, depth_graph
from harness.report.pages.page import Pages, write_pages
from harness.report.view import Report
from harness.report.words.figures import brief

_PAGE = "trace.html"
_ROWS = 40


class DepthRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node in the table: the largest errors first."""

    node: TracedNode
    made: str
    whole: str
    inherited: str
    relative: str
    cosine: str
    range: str
    notes: tuple[str, ...]


class PartitionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One partition of more than one node in the table: the largest errors first."""

    partition: TracedPartition
    number: int
    made: str
    whole: str
    inherited: str
    notes: tuple[str, ...]


class ShownTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One target: its result, its graph, its nodes and its partitions."""

    result: TracedTarget
    number: int
    graph: DepthGraph
    rows: tuple[DepthRow, ...]
    left_out: int
    partitions: tuple[PartitionRow, ...]


class ShownTrace(msgspec.Struct, frozen=True, kw_only=True):
    """One model: the chart of all of its targets, and each of them."""

    model: TracedModel
    chart: DepthChart | None
    targets: tuple[ShownTarget, ...]


class DepthPage(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page."""

    traces: tuple[ShownTrace, ...]


def depth_view(report: Report) -> Iterator[DepthPage]:
    """Yield the view; none if no run has a trace."""
    if report.run.traces:
        yield DepthPage(traces=tuple(map(_shown, report.run.traces)))


def write_depth_page(traces: Sequence[Trace], out: Path) -> Path:
    """Write ``out/trace.html``, which needs no report, and return its path.

    Raises:
        UsageError: It cannot be written.
    """
    view = DepthPage(traces=tuple(map(_shown, traces)))
    write_pages(out, [(_PAGE, Pages().make(_PAGE, scripts=(), view=view))])
    return out / _PAGE


def _shown(trace: Trace) -> ShownTrace:
    return ShownTrace(
        model=trace.model,
        chart=depth_chart(trace.targets, trace.partitions),
        targets=tuple(
            ShownTarget(
                result=target,
                number=number,
                graph=depth_graph(nodes),
                rows=tuple(map(_row, sorted(nodes, key=_rank)[:_ROWS])),
                left_out=max(0, len(nodes) - _ROWS),
                partitions=tuple(
                    _partition(one)
                    for one in sorted(trace.partitions_of(target.target), key=_rank)[:_ROWS]
                    if one.nodes > 1
                ),
            )
            for number, (target, nodes) in enumerate(trace.targets)
        ),
    )


def _rank(node: TracedNode | TracedPartition) -> tuple[bool, float, int]:
    made = node.made
    size = (
        -1.0 if made is None else float("inf") if made.noise is None and made.is_beyond else made.noise or 0.0
    )
    return not node.guilty, -size, node.number


def _partition(one: TracedPartition) -> PartitionRow:
    notes = [one.problem] if one.problem else []
    if one.compiled == "otherwise" and not one.problem:
        notes.append("alone, the provider takes these nodes otherwise than in the model")
    if one.disturbed:
        notes.append(f"{plural(one.disturbed, 'node')} cannot be watched without a change")
    return PartitionRow(
        partition=one,
        number=one.number + 1,
        made=_figure(one.made),
        whole=_figure(one.whole),
        inherited=brief(one.inherited),
        notes=tuple(notes),
    )


def _row(node: TracedNode) -> DepthRow:
    limits, whole = node.range, node.whole
    notes = [node.problem] if node.problem else []
    if node.disturbed:
        notes.append("watching changes what is computed")
    if limits is not None and limits.too_large:
        notes.append(f"{limits.too_large:.2g} of its values are beyond the range")
    if limits is not None and limits.too_small:
        notes.append(f"{limits.too_small:.2g} of its values are subnormal in it")
    if limits is not None and limits.clipped:
        notes.append(f"quantization clips {limits.clipped:.2g} of the values")
    if whole is not None and whole.flushed:
        notes.append(f"{whole.flushed:,} subnormal values are 0 on one side")
    return DepthRow(
        node=node,
        made=_figure(node.made),
        whole=_figure(whole),
        inherited=brief(None) if node.inherited is None else brief(node.inherited),
        relative=brief(None) if whole is None or whole.sqnr_db is None else f"{whole.sqnr_db:.0f} dB",
        cosine=brief(None) if whole is None or whole.cosine is None else f"{whole.cosine:.6f}",
        range=brief(None) if limits is None else f"{limits.low:.3g} to {limits.high:.3g}",
        notes=tuple(notes),
    )


def _figure(error: TraceError | None) -> str:
    if error is None:
        return brief(None)
    if error.differs:
        return f"another {error.differs}"
    if error.special:
        return f"NaN or infinity: {error.special:,}"
    if error.exact:
        return "exact"
    if error.noise is None and error.allowed:
        return "allowed"
    return "?" if error.noise is None else brief(error.noise)
