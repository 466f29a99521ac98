"""Time by node: what the profiles of several sessions say about the runs of one model."""

import statistics
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

MOST_TIMED_NODES = 2000
"""Nodes and kernels of a model with a row of their own; the smaller ones are told as one sum."""

MOST_BOUNDARIES = 8
"""Boundaries of a model that are told; the ones that take longest."""

COPY_OF = "Memcpy"
"""Beginning of the operators by which onnxruntime copies between memories."""

REST = "outside of its kernels"
"""What is left of a node whose provider times its kernels, in words."""

_MOST_TEXT = 1000
_NAMED = 0.1
"""Share of a run from which on it is told where it goes."""

_SLOWED = 1.25
"""How many times as long a run has to take with a profile that it is told: small nodes then cost more time to
measure than to run."""

_Words = Annotated[str, msgspec.Meta(max_length=_MOST_TEXT)]
_Ms = Annotated[float, msgspec.Meta(ge=0, le=1e15)]  # neither NaN nor infinite, which pass no limit
_Sessions = Annotated[tuple[_Ms, ...], msgspec.Meta(max_length=64)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]

Side = Literal["ep", "cpu", "copy"]
Part = Literal["ep", "cpu", "copy", "outside", "between"]

PARTS_IN_WORDS: dict[Part, str] = {
    "ep": "nodes on the EP",
    "cpu": "nodes on the CPU EP",
    "copy": "copies between memories",
    "outside": "inputs, outputs and waiting",
    "between": "between nodes",
}
"""Where the time of a run goes. A provider that computes on its own is waited for outside of its nodes."""


class NodeTime(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The time of one node in a run, without the nodes of its own graphs; times in milliseconds.

    Attributes:
        op: Its operator, with the size of its kernel where it has one: ``Conv 3x3``.
        side: Where it ran; ``copy`` for a copy between memories.
        ms: Median over the runs of each session.
        low_ms: Lower quartile over all runs.
        high_ms: Upper quartile.
        inside: The node that the provider computed it in, for a kernel that the provider itself times.
    """

    node: _Words
    op: _Words
    side: Side
    ms: _Sessions
    low_ms: _Ms
    high_ms: _Ms
    inside: _Words = ""


class Boundary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place of a run where data go from one provider to another; the time from one node to the next.

    Attributes:
        after: The node before it; empty for the inputs of the model.
        before: The node after it; empty for the outputs of the model.
        ms: Median over the runs of each session, in milliseconds.
        copies: Copies between memories there.
        nbytes: Bytes of these, or of what the node before it computes.
    """

    after: _Words
    before: _Words
    ms: _Sessions
    copies: _Number = 0
    nbytes: _Number = 0


class NodeTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The times of the nodes of a model, from profiles of several sessions; times in milliseconds.

    Attributes:
        runs: Runs of all sessions.
        run_ms: Median time of a run of each session; profiles make runs slower.
        parts: Where that time goes: medians of each session; the keys of ``PARTS_IN_WORDS``.
        nodes: In the order in which they run, with the provider's kernels after the node they belong to.
        left_out: Nodes and kernels without a row.
        left_out_ms: Their time together.
        boundaries: Those that take longest, the longest first.
        boundary_count: Number of all boundaries.
        create_ms: Wall-clock time in which each session was made, after the judged one.
        create_processor_ms: Processor time of that, over all threads of the process.
        first_processor_ms: The same of the judged session, the first one of the model in its process.
        waiting_threads: As in ``Latency``; the largest of the sessions.
        problem: Why nothing is known; empty if something is.
    """

    runs: _Number = 0
    run_ms: _Sessions = ()
    parts: dict[Part, _Sessions] = {}
    nodes: Annotated[tuple[NodeTime, ...], msgspec.Meta(max_length=MOST_TIMED_NODES)] = ()
    left_out: _Number = 0
    left_out_ms: _Ms = 0.0
    boundaries: Annotated[tuple[Boundary, ...], msgspec.Meta(max_length=MOST_BOUNDARIES)] = ()
    boundary_count: _Number = 0
    create_ms: _Sessions = ()
    create_processor_ms: _Sessions = ()
    first_processor_ms: _Ms | None = None
    waiting_threads: _Ms | None = None
    problem: _Words = ""

    @property
    def total_ms(self) -> float:
        """Median time of a run."""
        return middle(self.run_ms)

    def share(self, part: Part) -> float:
        """Return the share of a run's time that goes there, from 0 to 1; 0 if nothing is known."""
        return middle(self.parts.get(part, ())) / self.total_ms if self.total_ms else 0.0


def middle(sessions: tuple[float, ...]) -> float:
    """Return the median of the sessions; 0 without any."""
    return statistics.median(sessions) if sessions else 0.0


def time_leaves(times: NodeTimes) -> Iterator[NodeTime]:
    """Yield what the time divides into: kernels in place of their node, with the rest of its time.

    Kernels that run at the same time may take longer together than their node: then there is no rest, and
    their times are scaled down to it.
    """
    kernels: dict[str, list[NodeTime]] = {}
    for one in times.nodes:
        if one.inside:
            kernels.setdefault(one.inside, []).append(one)
    for node in times.nodes:
        if node.inside:
            continue
        its = kernels.get(node.node, [])
        together = _added(one.ms for one in its)
        scale = [
            min(1.0, whole / part) if part else 1.0 for whole, part in zip(node.ms, together, strict=False)
        ]
        for one in its:
            yield msgspec.structs.replace(
                one, ms=tuple(ms * by for ms, by in zip(one.ms, scale, strict=False))
            )
        if not its:
            yield node
        else:
            rest = tuple(max(0.0, whole - part) for whole, part in zip(node.ms, together, strict=False))
            yield msgspec.structs.replace(node, op=f"{node.op}, {REST}", ms=rest)


def by_operator(times: NodeTimes) -> dict[str, tuple[tuple[float, ...], int]]:
    """Return operator -> its time in each session and its nodes, the largest first.

    Operators on the CPU EP beside another provider, and copies, are named as such.
    """
    found: dict[str, list[NodeTime]] = {}
    for one in time_leaves(times):
        found.setdefault(operator_words(one), []).append(one)
    sums = {name: (_added(one.ms for one in its), len(its)) for name, its in found.items()}
    return dict(sorted(sums.items(), key=lambda pair: -middle(pair[1][0])))


def operator_words(node: NodeTime) -> str:
    """Return the operator of a node with where it runs, if that is not the EP."""
    return f"{node.op} on the CPU EP" if node.side == "cpu" else node.op


def time_words(times: NodeTimes, plain_ms: float | None = None) -> str:
    """Return where the time of a run goes, in one sentence; empty if nothing is known.

    ``plain_ms`` is the median of a run without a profile; it is told if a run with one takes much longer.
    """
    total = times.total_ms
    if not total:
        return ""
    named = [
        (middle(ms) / total, name)
        for name, (ms, _) in by_operator(times).items()
        if not name.startswith(COPY_OF)
    ]
    told = [f"{share:.0%} {name}" for share, name in named[:3] if share >= _NAMED]
    own = [one for one in time_leaves(times) if one.side != "copy" and not one.op.endswith(REST)]
    largest = max(own, key=lambda one: middle(one.ms), default=None)
    if largest is not None and middle(largest.ms) >= _NAMED * total:
        told.append(f"the largest node is {largest.node} ({middle(largest.ms) / total:.0%})")
    told += [
        f"{times.share(part):.0%} {words}"
        for part, words in PARTS_IN_WORDS.items()
        if part not in ("ep", "cpu") and times.share(part) >= _NAMED
    ]
    if times.boundaries and middle(times.boundaries[0].ms) >= _NAMED * total:
        first = times.boundaries[0]
        places = f"from {first.after or 'the inputs'} to {first.before or 'the outputs'}"
        told.append(f"the largest boundary is {places} ({middle(first.ms) / total:.0%})")
    slowed = ""
    if plain_ms and total > _SLOWED * plain_ms:
        slowed = f", {total / plain_ms:.2g} times as long as without a profile"
    return f"{total:.3g} ms a run{slowed}: " + (
        "; ".join(told) if told else "no operator takes a tenth of it"
    )


def _added(sessions: Iterator[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(map(sum, zip(*sessions, strict=False)))
