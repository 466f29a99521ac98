"""Control flow, sequences over a body, and calls of functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.program import NodeProgram
from harness.agent.float64.scope import Scope, ScopeValue
from harness.agent.target_errors import UnsupportedError

_FIRST_SCAN = 9
"""Scan of opset 8 has batches."""


def key_of(named: Any) -> tuple[str, str, str]:
    """Return the key of a function, or of the function that a node calls."""
    name = named.op_type if hasattr(named, "op_type") else named.name
    domain = "" if named.domain == "ai.onnx" else named.domain
    return (domain, name, getattr(named, "overload", ""))


def call(step: Any, given: list[ScopeValue], scope: Scope, function: Any) -> list[ScopeValue]:
    """Call a function of the model."""
    if "" not in step.programs:
        attributes = {one.name: one for one in function.attribute_proto}
        attributes.update({one.name: one for one in step.node.proto.attribute})
        nodes = [_bound(node, attributes) for node in function.node]
        step.programs[""] = NodeProgram.of_function(function, nodes, step.operators)
    program = step.programs[""]
    values = dict(zip(program.inputs, given))
    values.update({name: ScopeValue(None, "") for name in program.inputs[len(given) :]})
    found: list[ScopeValue] = program.run(values, None, scope.budget)
    return found


def _bound(proto: Any, attributes: dict[str, Any]) -> Any:
    """Return a node of a function in which the attributes of a call replace references to them."""
    from onnx import NodeProto

    node = NodeProto()
    node.CopyFrom(proto)
    del node.attribute[:]
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            added = node.attribute.add()
            added.CopyFrom(attribute)
            for graph in ([added.g] if added.HasField("g") else []) + list(added.graphs):
                bound = [_bound(inner, attributes) for inner in graph.node]
                del graph.node[:]
                graph.node.extend(bound)
        elif attribute.ref_attr_name in attributes:
            added = node.attribute.add()
            added.CopyFrom(attributes[attribute.ref_attr_name])
            added.name = attribute.name
    return node


def branch(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
    """If."""
    chosen = "then_branch" if given[0].data.reshape(-1)[0] else "else_branch"
    found: list[ScopeValue] = step.body(chosen).run({}, scope)
    return found


def loop(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
    """Loop."""
    body = step.body("body")
    most = None if given[0].data is None else int(given[0].data.reshape(-1)[0])
    goes = given[1].data is None or bool(given[1].data.reshape(-1)[0])
    carried = given[2:]
    gathered: list[list[ScopeValue]] = [[] for _ in body.outputs[1 + len(carried) :]]
    trip = 0
    while goes and (most is None or trip < most):
        values = [ScopeValue(np.array(trip, np.int64), "int64"), ScopeValue(np.array(goes), "bool"), *carried]
        found = body.run(dict(zip(body.inputs, values)), scope)
        goes = bool(found[0].data.reshape(-1)[0])
        carried = found[1 : 1 + len(carried)]
        for row, value in zip(gathered, found[1 + len(carried) :]):
            row.append(value)
            scope.budget.need(sum(one.data.nbytes for one in row))
        trip += 1
    return [*carried, *map(_stacked, gathered)]


def _stacked(rows: list[ScopeValue], axis: int = 0) -> ScopeValue:
    if not rows:
        raise UnsupportedError("a scan output without any trip has no known shape")
    return ScopeValue(np.stack([one.data for one in rows], axis), rows[0].kind)


def scan(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
    """Scan."""
    node, body = step.node, step.body("body")
    if node.since < _FIRST_SCAN:
        raise UnsupportedError("nothing computes Scan of opset 8 in float64")
    count = node.get("num_scan_inputs")
    state, scanned = given[: len(given) - count], given[len(given) - count :]
    outputs = len(body.outputs) - len(state)
    axes = node.get("scan_input_axes") or [0] * count
    backwards = node.get("scan_input_directions") or [0] * count
    gathered: list[list[ScopeValue]] = [[] for _ in range(outputs)]
    rows = [np.moveaxis(one.data, axis, 0) for one, axis in zip(scanned, axes)]
    rows = [one[::-1] if back else one for one, back in zip(rows, backwards)]
    for trip in range(len(rows[0])):
        items = [ScopeValue(one[trip], value.kind) for one, value in zip(rows, scanned)]
        found = body.run(dict(zip(body.inputs, [*state, *items])), scope)
        state = found[: len(state)]
        for row, value in zip(gathered, found[len(state) :]):
            row.append(value)
    out_axes = node.get("scan_output_axes") or [0] * outputs
    out_backwards = node.get("scan_output_directions") or [0] * outputs
    return [
        *state,
        *(
            _stacked(row[::-1] if back else row, axis)
            for row, axis, back in zip(gathered, out_axes, out_backwards)
        ),
    ]


def sequence_map(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
    """SequenceMap: further inputs that are sequences are passed item by item, others unchanged."""
    body = step.body("body")
    results: list[list[ScopeValue]] = []
    for index in range(len(given[0].data)):
        items = [
            ScopeValue(value.data[index], value.kind) if isinstance(value.data, list) else value
            for value in given
        ]
        results.append(body.run(dict(zip(body.inputs, items)), scope))
    columns = [[row[index] for row in results] for index in range(len(body.outputs))]
    return [
        ScopeValue([one.data for one in column], column[0].kind if column else "float32")
        for column in columns
    ]


CONTROL_OPERATORS: dict[str, Any] = {"If": branch, "Loop": loop, "Scan": scan, "SequenceMap": sequence_map}
"""Operator -> what computes it."""
