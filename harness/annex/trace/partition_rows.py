"""The partitions of a trace: what each makes as the EP compiles it, with nothing inside watched."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from harness.annex.trace.node_rows import NodeRows
from harness.annex.trace.segments import Segments
from harness.annex.triage.net import Net
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.record import Record
from harness.core.records.trace import TracedNode, TracedPartition
from harness.core.records.verdict import Family
from harness.core.text.errors import one_line
from harness.corpus.model.origins import RANDOM_OPERATORS


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """A partition with its nodes.

    Attributes:
        row: What was measured.
        numbers: Numbers of its nodes, in the model's order.
        wrong: Its first result that rounding does not explain, on golden inputs; empty if there is none.
    """

    row: TracedPartition
    numbers: tuple[int, ...]
    wrong: str = ""


def border_of(net: Net, numbers: Collection[int]) -> tuple[list[str], list[str]]:
    """Return the tensors that some nodes read from other nodes, and those of theirs that are read elsewhere.

    Outputs of the model count as read elsewhere.
    """
    inside = set(numbers)
    made = {name for number in inside for name in net.nodes[number].made}
    outside = [node for number, node in enumerate(net.nodes) if number not in inside]
    read = net.outputs.keys() | {name for node in outside for name in node.reads}
    wanted = {name for number in inside for name in net.nodes[number].reads} - made
    reads = [name for node in outside for name in node.made if name in wanted]
    gives = [name for number in sorted(inside) for name in net.nodes[number].made if name in read]
    return reads, gives


def members(partitions: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """Return the nodes of each partition, in the model's order."""
    found: dict[int, list[int]] = {}
    for number in sorted(partitions):
        found.setdefault(partitions[number], []).append(number)
    return {one: tuple(numbers) for one, numbers in sorted(found.items())}


def compiled_partitions(
    rows: NodeRows, nodes: Sequence[TracedNode], whole: Mapping[str, OutputMetrics], segments: Segments
) -> Iterator[Compiled]:
    """Yield each partition with the errors at its border.

    Its nodes alone are a model whose outputs are the tensors that leave the partition. If it is the whole
    model, or a single node, it needs no session: that has run already.
    """
    net = rows.net
    by_number = {node.number: node for node in nodes}
    for one, numbers in members(rows.partitions).items():
        inside = [by_number[number] for number in numbers if number in by_number]
        reads, gives = border_of(net, numbers)
        read = [rows.errors[name].noise for name in reads if name in rows.errors]
        left = [whole[name] for name in gives if name in whole]
        bare = TracedPartition(
            target=rows.target,
            number=one,
            nodes=len(numbers),
            first=net.nodes[numbers[0]].name,
            last=net.nodes[numbers[-1]].name,
            inherited=max((noise for noise in read if noise is not None), default=None),
            whole=rows.error(left),
            disturbed=sum(node.disturbed for node in inside),
        )
        if len(numbers) == 1:
            made = inside[0].made if inside else None
            problem = inside[0].problem if inside and made is None else ""
            row = msgspec.structs.replace(bare, made=made, problem=problem, compiled="same")
            yield Compiled(row=row, numbers=numbers)
        elif any(net.nodes[number].op_type in RANDOM_OPERATORS for number in numbers):
            yield Compiled(row=msgspec.structs.replace(bare, problem="it draws numbers"), numbers=numbers)
        else:
            is_all = len(numbers) == len(rows.computed)
            record = rows.own if is_all else segments.record(numbers)
            yield _measured(bare, numbers, rows, record, is_guilty=not any(map(_is_wrong, inside)))


def _measured(
    bare: TracedPartition, numbers: tuple[int, ...], rows: NodeRows, record: Record | None, *, is_guilty: bool
) -> Compiled:
    if record is None:
        problem = "the CPU EP does not compute the tensors that it reads"
        return Compiled(row=msgspec.structs.replace(bare, problem=problem), numbers=numbers)
    if not record.outputs:
        problem = f"as one model: {record.verdict}: {one_line(record.reason, 200)}"
        return Compiled(row=msgspec.structs.replace(bare, problem=problem), numbers=numbers)
    if record.family is Family.UNTESTED:
        problem = f"as one model: {record.verdict}: the CPU EP computes it"
        return Compiled(
            row=msgspec.structs.replace(bare, problem=problem, compiled="otherwise"), numbers=numbers
        )
    made = rows.error(record.outputs)
    is_beyond = made is not None and made.is_beyond
    wrong = (row.name for row in record.outputs if (error := rows.error([row])) and error.is_beyond)
    row = msgspec.structs.replace(bare, made=made, guilty=is_beyond and is_guilty, compiled=_compiled(record))
    return Compiled(row=row, numbers=numbers, wrong=next(wrong, ""))


def _is_wrong(node: TracedNode) -> bool:
    return node.made is not None and node.made.is_beyond


def _compiled(record: Record) -> Literal["same", "otherwise", "unknown"]:
    placement = record.placement
    if placement is None or placement.is_unknown:
        return "unknown"
    return "same" if placement.partitions == 1 and not placement.cpu_nodes else "otherwise"
