"""The size of a net. A candidate that is no smaller is not tried, so every reduction ends."""

import math
import weakref
from collections.abc import Callable
from typing import Any

from harness.annex.triage.decompose import OperatorKey
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetWeight
from harness.annex.triage.plain_values import GIVEN_VALUES, speciality
from harness.annex.triage.transform.names import tellings
from harness.core.values.value import Value, leaves
from harness.corpus.model.nodes import all_nodes, domain_of


def is_smaller(one: Net, other: Net) -> bool:
    """Return whether the first difference between two nets favours the first one.

    They are compared by, in this order: nodes, with those of a called function in place of each call; graph
    inputs, outputs and initializers; elements of these; attributes and inputs of the nodes; bytes of
    everything else except names and values; how special the values are; how special the names are.
    """
    for part in _PARTS:
        if part is _speciality and _same_values(one, other):
            continue
        left, right = part(one), part(other)
        if left != right:
            return left < right
    return False


def node_count(net: Net) -> int:
    """Return the number of nodes; a call counts as one plus the nodes of its function."""
    functions = {(domain_of(function), function.name): function for function in net.functions}
    counted: dict[OperatorKey, int] = {}

    def size(operator: OperatorKey) -> int:
        function = functions.get(operator)
        if function is None:
            return 1
        if operator not in counted:
            counted[operator] = 1  # A function that calls itself is no model, but must not hang the harness.
            counted[operator] += sum(size((domain_of(one), one.op_type)) for one in all_nodes(function.node))
        return counted[operator]

    return sum(size(operator) for node in net.nodes for operator in node.operators)


def elements(value: Value) -> int:
    """Return the number of elements in a value."""
    return sum(part.array.size for _, part in leaves("", value) if part is not None)


def _tensors(net: Net) -> int:
    return len(net.inputs) + len(net.outputs) + len(net.weights) + len(net.sparse)


def _elements(net: Net) -> int:
    held = sum(weight.elements for weight in net.weights.values())
    held += sum(int(math.prod(one.dims)) for one in net.sparse.values())
    return held + sum(elements(value) for value in net.fed.values())


def _details(net: Net) -> int:
    return sum(node.details for node in net.nodes)


def _rest(net: Net) -> int:
    protos: list[Any] = [*net.annotations.values(), *net.functions]
    size = len(b"".join(proto.SerializeToString() for proto in protos))
    return size + len(net.header) + len(net.labels) + len(net.infos)


def _speciality(net: Net) -> int:
    total = sum(map(_of_weight, net.weights.values()))
    for value in net.fed.values():
        parts = [part for _, part in leaves("", value) if part is not None]
        total += sum(map(speciality, parts))
    return total


def _same_values(one: Net, other: Net) -> bool:
    """Return whether two nets share their values, which saves a check of each element."""
    pairs = ((one.weights, other.weights), (one.fed, other.fed))
    return all(
        left.keys() == right.keys() and all(left[name] is right[name] for name in left)
        for left, right in pairs
    )


def _of_weight(weight: NetWeight) -> int:
    level = _LEVELS.get(weight)
    if level is None:
        known = weight.dtype and not weight.external
        level = speciality(weight.value(None), integers=False) if known else GIVEN_VALUES
        _LEVELS[weight] = level
    return level


_LEVELS: weakref.WeakKeyDictionary[NetWeight, int] = weakref.WeakKeyDictionary()
"""Levels of initializers that were checked: many nets share them."""

_PARTS: tuple[Callable[[Net], int], ...] = (
    node_count,
    _tensors,
    _elements,
    _details,
    _rest,
    _speciality,
    tellings,
)
