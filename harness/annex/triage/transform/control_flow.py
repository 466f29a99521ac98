"""If replaced by one of its branches, Loop and Scan by one iteration of their body."""

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from harness.annex.triage.context import Context
from harness.annex.triage.inlining import all_tensor_names, body_of, fresh, inlined, slice_of
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import new_weight
from harness.annex.triage.net_tensors import NetTensors
from harness.annex.triage.search import NetCandidate, Search, descend
from harness.annex.triage.transform.outputs import restricted
from harness.core.values.value import Tensor, Value

SCAN_WITHOUT_BATCH = 9
"""Opset from which on Scan has no batch axis of its own."""


def inlined_bodies(net: Net, context: Context) -> Search:
    """Replace nodes by their bodies, one node at a time; for If, first by the branch that is taken."""
    yield from descend(net, lambda current: _alternatives(current, context))


def _alternatives(net: Net, context: Context) -> Iterator[tuple[Hashable, NetCandidate]]:
    known = context.known(net)
    for index, node in enumerate(net.nodes):
        ways = {"If": _branches, "Loop": _loop, "Scan": _scan}.get(node.op_type)
        if ways is None:
            continue
        try:
            for number, made in enumerate(ways(net, index, known)):
                yield (node.outputs, number), made and restricted(made, made.outputs.keys(), context)
        except ValueError:  # a node whose body does not fit it: being refused may be the failure
            continue


def _branches(net: Net, index: int, known: NetTensors) -> Iterator[NetCandidate]:
    node = net.nodes[index]
    condition = known.values(node.inputs[:1]).get(node.inputs[0])
    order = ["then_branch", "else_branch"]
    if isinstance(condition, Tensor) and not condition.array.any():
        order.reverse()
    for name in order:
        yield inlined(net, index, body_of(node, name), {}, node.outputs)


def _loop(net: Net, index: int, known: NetTensors) -> Iterator[NetCandidate]:  # noqa: ARG001 - as the others
    node = net.nodes[index]
    body = body_of(node, "body")
    carried = len(body.input) - 2
    if _is_used(net, node.outputs[carried:]) or len(node.inputs) != carried + 2:
        return
    taken = all_tensor_names(net)
    turn = new_weight(fresh("turn", taken), Tensor(dtype="int64", array=np.array(0, np.int64)))
    again = new_weight(fresh("again", taken), Tensor(dtype="bool", array=np.array(True)))  # noqa: FBT003
    given = node.inputs[1] or again.name
    bound = dict(zip((info.name for info in body.input), (turn.name, given, *node.inputs[2:]), strict=True))
    results = ["", *_padded(node.outputs[:carried], len(body.output) - 1)]
    yield inlined(net, index, body, bound, results, weights=[turn, again])


def _scan(net: Net, index: int, known: NetTensors) -> Iterator[NetCandidate]:
    node = net.nodes[index]
    body = body_of(node, "body")
    attributes = {one.name: one for one in node.proto().attribute}
    scanned = attributes["num_scan_inputs"].i if "num_scan_inputs" in attributes else 0
    states = len(node.inputs) - scanned
    if net.opsets.get("", 0) < SCAN_WITHOUT_BATCH or states < 0 or _is_used(net, node.outputs[states:]):
        return
    axes, backwards = (
        [*attributes[name].ints] if name in attributes else [0] * scanned
        for name in ("scan_input_axes", "scan_input_directions")
    )
    values = known.values(node.inputs[states:])
    taken = all_tensor_names(net)
    names = list(node.inputs[:states])
    added: dict[str, tuple[Any, Value]] = {}
    for name, axis, back in zip(node.inputs[states:], axes, backwards, strict=True):
        part = slice_of(values.get(name), axis, last=bool(back))
        if part is None:
            return
        names.append(fresh(f"{name}_slice", taken))
        added[names[-1]] = (known.declaration(names[-1], part), part)
    bound = dict(zip((info.name for info in body.input), names, strict=True))
    results = _padded(node.outputs[:states], len(body.output))
    yield inlined(net, index, body, bound, results, inputs=added)


def _padded(names: tuple[str, ...], count: int) -> list[str]:
    return [*names, *[""] * (count - len(names))]


def _is_used(net: Net, names: tuple[str, ...]) -> bool:
    """Return whether something depends on outputs with one slice for each iteration.

    One iteration has other shapes.
    """
    return bool({name for name in names if name} & (net.read_names() | net.outputs.keys()))
