"""The smallest set of nodes to keep in float32 that was found, and what that gives: tried, not guessed."""

import json
from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from harness.agent.precision.kept import KEPT
from harness.annex.trace.node_error import error_of
from harness.annex.triage.net import Net
from harness.annex.triage.subject import Subject
from harness.core.records.record import Record
from harness.core.records.trace import KeptFloat32, TracedNode, TraceError

MOST_KEPT = 16
"""Largest number of nodes that are kept."""

RESTORED = 0.25
"""Share of the relative error that may be left: two bits are won."""

_RUNS = 5
"""Sessions whose first runs give the time before and after."""

Try = Callable[[Subject, int], Record]
"""Runs a model on the target; the number distinguishes repetitions."""


def keep_advice(
    net: Net, nodes: Sequence[TracedNode], delivers: str, attempt: Try, progress: Callable[[str], None]
) -> KeptFloat32 | None:
    """Return the nodes to keep; None if no set of ``MOST_KEPT`` nodes restores the accuracy.

    Nodes are ranked by the error that they make: NaN and infinity first, then values beyond the range, then
    the relative error. Behind each come those whose results it reads, since a range that is too wide is
    theirs. The first 1, 2, 4, ... are kept until that restores the accuracy, and then each is
    left out that is not needed.
    """
    by_error = sorted((node for node in nodes if _makes_error(node)), key=_rank, reverse=True)
    ranked = list(dict.fromkeys(name for node in by_error for name in (node.node, *node.inputs)))
    before = _error(attempt(net.subject(), 0), delivers)
    if before is None or before.exact:
        return None
    found: list[str] = []
    after: TraceError | None = None
    count = 1
    while ranked and after is None:
        found = ranked[:count]
        progress(f"keep: {len(found)} nodes in float32")
        after = _restored(before, _error(attempt(with_kept(net, found), 0), delivers))
        if count >= min(MOST_KEPT, len(ranked)):
            break
        count = min(2 * count, MOST_KEPT, len(ranked))
    if after is None:
        return None
    for name in list(reversed(found)) if len(found) > 1 else []:
        fewer = [one for one in found if one != name]
        progress(f"keep: {len(fewer)} nodes in float32")
        error = _restored(before, _error(attempt(with_kept(net, fewer), 0), delivers)) if fewer else None
        if error is not None:
            found, after = fewer, error
    before_ms, after_ms = _first_runs_ms((net.subject(), with_kept(net, found)), attempt)
    return KeptFloat32(nodes=tuple(found), before=before, after=after, before_ms=before_ms, after_ms=after_ms)


def with_kept(net: Net, names: Sequence[str]) -> Subject:
    """Return a model that lists nodes to be kept in float32 by a conversion."""
    import onnx
    from onnx.helper import set_model_props

    header = onnx.ModelProto.FromString(net.header)
    others = {entry.key: entry.value for entry in header.metadata_props if entry.key != KEPT}
    set_model_props(header, {**others, KEPT: json.dumps(list(names))})
    return msgspec.structs.replace(net, header=header.SerializeToString()).subject()


def _makes_error(node: TracedNode) -> bool:
    return node.made is not None and not node.made.exact


def _rank(node: TracedNode) -> tuple[bool, bool, float, int]:
    made, limits = node.made, node.range
    special = made is not None and bool(made.special or made.differs)
    beyond = limits is not None and bool(limits.too_large or limits.clipped)
    relative = 0.0 if made is None or made.relative is None else made.relative
    return special, beyond, relative, -node.number


def _error(record: Record, delivers: str) -> TraceError | None:
    return error_of(record.outputs, delivers) if record.outputs else None


def _restored(before: TraceError, after: TraceError | None) -> TraceError | None:
    """Return an error that is small enough beside the one before; else None."""
    if after is None or after.special or after.differs or after.relative is None:
        return None
    if before.special or before.differs or before.relative is None:
        return after
    return after if after.relative <= RESTORED * before.relative else None


def _first_runs_ms(subjects: Sequence[Subject], attempt: Try) -> list[float | None]:
    """Return, for each model, the median time of the first run of some sessions, which are made in turns.

    The result is None for one that tells no time.
    """
    rounds = [[attempt(subject, number) for subject in subjects] for number in range(1, _RUNS + 1)]
    each = zip(*rounds, strict=True)
    known = [[time for one in records if (time := one.timings_ms.get("first_run"))] for records in each]
    return [round(median(times), 3) if times else None for times in known]
