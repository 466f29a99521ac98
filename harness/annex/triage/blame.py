"""Blame: which node makes the wrong value, among nodes that fail only together.

Every tensor between the nodes becomes an output. If the failure is still there, the CPU EP computes each node
from the tensors that it got on the EP. A node that only passes on an error then agrees with the CPU EP.
"""

import math
from collections.abc import Mapping

import msgspec

from harness.annex.triage.cut import cut
from harness.annex.triage.distance import distance, why_wrong
from harness.annex.triage.failure_check import FailureCheck
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import new_weight
from harness.annex.triage.net_tensors import NetTensors
from harness.annex.triage.subject import Subject
from harness.core.values.value import Tensor, Value, leaves

_MOST_NODES = 16
"""Largest number of nodes of a part that is searched for one node; each costs an answer of the CPU EP."""

DOMINANT = 16.0
"""The guilty node must be this many times as far from the CPU EP as every other node.

Planted faults are visible from this multiple of the rounding noise on; see docs/reference/detection.md."""

OF_TOGETHER = 0.5
"""Share of its error among the others that a node must also have alone, to be independent of them."""


class Blamed(msgspec.Struct, frozen=True, kw_only=True):
    """The node that makes the wrong value, by its index in the net.

    Attributes:
        alone: Whether it also makes it without the others: its results are within the cell's tolerance.
    """

    number: int
    alone: bool


def blamed(net: Net, numbers: tuple[int, ...], check: FailureCheck, known: NetTensors) -> Blamed | None:
    """Return the node that makes the wrong value, among nodes that fail together but not in halves.

    Return None if no node stands out. A node that is right alone cannot be distinguished from a node that
    reads its results.
    """
    if len(numbers) > _MOST_NODES:
        return None
    found = _watched(net, numbers, check, known)
    if found is None:
        return None
    apart: dict[int, float] = {}
    for number in numbers:
        single = _alone(net, number, known, found)
        expected = check.lab.golden(single) if single is not None else None
        if expected is None:
            return None
        apart[number] = _apart(dict(expected), found)
    worst, *others = sorted(numbers, key=apart.__getitem__, reverse=True)
    if not apart[worst] or any(apart[worst] < DOMINANT * apart[other] for other in others):
        return None
    alone = _deviates(net, worst, check, known, apart[worst])
    made = set(net.nodes[worst].made)
    if not alone and any(made & net.nodes[other].reads for other in others):
        return None  # one kernel may compute both, and either may be wrong in it
    return Blamed(number=worst, alone=alone)


def _watched(
    net: Net, numbers: tuple[int, ...], check: FailureCheck, known: NetTensors
) -> dict[str, Value] | None:
    """Return what the EP computes in a part whose tensors are all outputs.

    Return None if the result is then right.
    """
    part = cut(net, numbers, known)
    if part is None:
        return None
    declared = {name: known.output(name) for node in part.nodes for name in node.made}
    if None in declared.values():
        return None
    subject = part.replace(outputs={**part.outputs, **declared}, infos={}).subject()
    for number in range(check.repeats):
        (seen,) = check.lab.run([check.trial(subject, number)], fresh=True)
        match = check.match(subject, seen)
        if seen.outputs and (match.fails or match.by_noise or match.wrong):
            return dict(seen.outputs)
    return None


def _alone(net: Net, number: int, known: NetTensors, found: Mapping[str, Value]) -> Subject | None:
    """Return a node alone, fed with the found tensors; with golden tensors where there is none."""
    single = cut(net, (number,), known)
    if single is None:
        return None
    fed = {name: found.get(name, value) for name, value in single.fed.items()}
    weights = dict(single.weights)
    for name in weights.keys() & found.keys():
        value = found[name]
        if isinstance(value, Tensor):
            weights[name] = new_weight(name, value)
    return single.changed(fed=fed, weights=weights).subject()


def _deviates(net: Net, number: int, check: FailureCheck, known: NetTensors, error: float) -> bool:
    """Return whether a node has a large error on golden tensors alone."""
    single = cut(net, (number,), known)
    if single is None:
        return False
    subject = single.subject()
    expected = check.lab.golden(subject) or ()
    for repetition in range(check.repeats):
        (seen,) = check.lab.run([check.trial(subject, repetition)], fresh=True)
        if seen.outputs and _apart(dict(expected), dict(seen.outputs)) >= OF_TOGETHER * min(error, 1.0):
            return True
    return False


def _apart(expected: Mapping[str, Value], found: Mapping[str, Value]) -> float:
    """Return the largest distance of an output; infinite if it has another form, or NaN in other places."""
    largest = 0.0
    for name, value in expected.items():
        other = found.get(name)
        if why_wrong(value, other, None):
            return math.inf
        given = dict(leaves(name, other))
        for leaf, right in leaves(name, value):
            part = given[leaf]
            if isinstance(right, Tensor) and isinstance(part, Tensor):
                largest = max(largest, distance(right, part))
    return largest
