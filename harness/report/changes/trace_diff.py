"""Two traces of a model: which nodes became guilty, or are it no longer, and what the targets deliver."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.records.trace import (
    TRACE_FILE,
    Trace,
    TracedNode,
    TracedPartition,
    TracedTarget,
    TraceError,
    TraceFinding,
    decode_traces,
)
from harness.core.text.errors import UsageError
from harness.core.text.visible_text import visible
from harness.report.words.figures import brief

_SHOWN = 20
"""Nodes of one kind that are listed; --json has all."""


class NodeChange(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose own error is rounding in one trace, and more in the other; null if it is not known."""

    node: str
    op_type: str
    before: TraceError | None
    after: TraceError | None


class PartitionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that is wrong as compiled in one trace; an error is null where the other one lacks it."""

    first: str
    last: str
    nodes: int
    before: TraceError | None
    after: TraceError | None


class TargetChange(msgspec.Struct, frozen=True, kw_only=True):
    """One target in both traces.

    Attributes:
        before: Its name, finding, precision and sentence in the old trace; likewise ``after``.
        guilty_now: Nodes that make more than rounding only in the new one.
        mended: Those that do only in the old one.
        partitions_now: Partitions that are wrong as compiled only in the new one.
        partitions_mended: Those that are only in the old one.
        new_nodes: Number of nodes that only the new trace has.
        gone_nodes: Number of those that only the old one has.
    """

    before: "TargetOutcome"
    after: "TargetOutcome"
    guilty_now: tuple[NodeChange, ...]
    mended: tuple[NodeChange, ...]
    partitions_now: tuple[PartitionChange, ...]
    partitions_mended: tuple[PartitionChange, ...]
    new_nodes: int
    gone_nodes: int


class TargetOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace says about a target; fields as in ``TracedTarget``."""

    target: str
    onnxruntime: str
    finding: TraceFinding
    delivers: str
    sentence: str


class TraceDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two traces.

    Attributes:
        same_inputs: Whether model and inputs are equal; else errors may differ for that reason.
        only_old: Targets that only the old trace has; likewise ``only_new``.
    """

    schema: int = 1
    old: str
    new: str
    model: str
    same_inputs: bool
    targets: tuple[TargetChange, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]


def trace_file(path: Path) -> Path | None:
    """Return the trace that a path names, which may be its folder; None if it is something else."""
    if path.is_dir() and not (path / "run.json").exists():
        path /= TRACE_FILE
    return path if path.is_file() and path.suffix == ".jsonl" else None


def compare_traces(old: Path, new: Path) -> TraceDiff:
    """Compare the traces of two files, target by target.

    If each has a single target, that is the same, whatever its name.

    Raises:
        UsageError: A file is no trace of one model, or they are of models with other names.
    """
    before, after = _read(old), _read(new)
    if before.model.model != after.model.model:
        what = f"a trace of {after.model.model}; the old one is of {before.model.model}"
        raise UsageError.at(new, what, "trace one model twice")
    sides = [{target.target: (target, nodes) for target, nodes in side.targets} for side in (before, after)]
    if len(sides[0]) == len(sides[1]) == 1:
        sides[1] = dict(zip(sides[0], sides[1].values(), strict=True))
    both = [name for name in sides[0] if name in sides[1]]
    return TraceDiff(
        old=str(old),
        new=str(new),
        model=before.model.model,
        same_inputs=before.model.digest == after.model.digest,
        targets=tuple(
            _target(
                sides[0][name],
                sides[1][name],
                (before.partitions_of(name), after.partitions_of(sides[1][name][0].target)),
            )
            for name in both
        ),
        only_old=tuple(name for name in sides[0] if name not in sides[1]),
        only_new=tuple(name for name in sides[1] if name not in sides[0]),
    )


def trace_diff_lines(diff: TraceDiff) -> Iterator[str]:
    """Yield the difference as text."""
    yield f"old  {visible(diff.old)}"
    yield f"new  {visible(diff.new)}"
    if not diff.same_inputs:
        yield "not alike: the model or its inputs"
    for one in diff.targets:
        yield ""
        yield visible(f"{one.after.target}")
        for side, outcome in (("before", one.before), ("after", one.after)):
            yield visible(f"    {side:<7} onnxruntime {outcome.onnxruntime or 'unknown'}: {outcome.sentence}")
        yield from _nodes("guilty now", one.guilty_now)
        yield from _nodes("no longer guilty", one.mended)
        for title, partitions in (("now", one.partitions_now), ("no longer", one.partitions_mended)):
            for part in partitions:
                what = f"{part.nodes} nodes from {part.first} to {part.last}"
                figures = f"{_figure(part.before)} -> {_figure(part.after)}"
                yield visible(f"    {title} wrong as compiled: {what}: {figures}")
        if one.new_nodes or one.gone_nodes:
            yield f"    {one.new_nodes} nodes are new, {one.gone_nodes} are gone"
    for side, names in (("old", diff.only_old), ("new", diff.only_new)):
        yield from (visible(f"only in the {side} trace: {name}") for name in names)


def _nodes(title: str, changes: tuple[NodeChange, ...]) -> Iterator[str]:
    if not changes:
        return
    yield f"    {title}: {len(changes)}"
    for one in changes[:_SHOWN]:
        yield visible(f"        {one.op_type} {one.node}: {_figure(one.before)} -> {_figure(one.after)}")
    if len(changes) > _SHOWN:
        yield f"        and {len(changes) - _SHOWN} more; --json has all"


def _figure(error: TraceError | None) -> str:
    if error is None:
        return "unknown"
    if error.exact:
        return "exact"
    return "not finite" if error.noise is None else f"{brief(error.noise)} times its noise"


def _read(path: Path) -> Trace:
    hint = "write one: ep-harness trace MODEL --target TARGET"
    try:
        traces = decode_traces(read_regular(path, MOST_FILE))
    except OSError as error:
        raise UsageError.at(path, f"cannot be read: {error.strerror or error}", hint) from error
    except ValueError as error:
        raise UsageError.at(path, f"no trace: {error}", hint) from error
    if len(traces) != 1:
        raise UsageError.at(path, f"it has traces of {len(traces)} models; expected one", hint)
    return traces[0]


def _target(
    old: tuple[TracedTarget, tuple[TracedNode, ...]],
    new: tuple[TracedTarget, tuple[TracedNode, ...]],
    partitions: tuple[tuple[TracedPartition, ...], tuple[TracedPartition, ...]],
) -> TargetChange:
    before, after = ({node.node: node for node in nodes} for _, nodes in (old, new))
    changes = {
        name: NodeChange(node=name, op_type=node.op_type, before=node.made, after=after[name].made)
        for name, node in before.items()
        if name in after and node.guilty != after[name].guilty
    }
    now, mended = _partitions(*partitions)
    return TargetChange(
        before=_outcome(old[0]),
        after=_outcome(new[0]),
        guilty_now=tuple(one for name, one in changes.items() if after[name].guilty),
        mended=tuple(one for name, one in changes.items() if before[name].guilty),
        partitions_now=now,
        partitions_mended=mended,
        new_nodes=len(after.keys() - before.keys()),
        gone_nodes=len(before.keys() - after.keys()),
    )


def _partitions(
    old: Sequence[TracedPartition], new: Sequence[TracedPartition]
) -> tuple[tuple[PartitionChange, ...], tuple[PartitionChange, ...]]:
    """Return the partitions that are guilty only in the new trace, and those only in the old one."""
    before, after = ({(one.first, one.last, one.nodes): one for one in side} for side in (old, new))
    found: tuple[list[PartitionChange], list[PartitionChange]] = [], []
    for key in dict.fromkeys([*before, *after]):
        pair = before.get(key), after.get(key)
        was, is_now = (one is not None and one.guilty for one in pair)
        if was != is_now:
            errors = [None if one is None else one.made for one in pair]
            first, last, nodes = key
            change = PartitionChange(first=first, last=last, nodes=nodes, before=errors[0], after=errors[1])
            found[was].append(change)
    return tuple(found[0]), tuple(found[1])


def _outcome(target: TracedTarget) -> TargetOutcome:
    return TargetOutcome(
        target=target.target,
        onnxruntime=target.onnxruntime,
        finding=target.finding,
        delivers=target.delivers,
        sentence=target.sentence,
    )
