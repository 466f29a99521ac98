"""A model in which the result of one node can be replaced by zeros, to see whether the outputs change."""

import shutil
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.values.value import tensor
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.derived.derived_models import MODEL_FILE, derive, digest_of
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.nodes import bodies, opsets_of, replace_nodes
from harness.corpus.model.port import Port, ValueType, model_text
from harness.corpus.model.schema_types import FLOAT_TYPES, declared_types, result_types

if TYPE_CHECKING:
    import onnx

ZEROED_FORMAT = 1
"""Increase it when the written model changes although its source does not."""

_SELECTOR = "ep_harness.zeroed"
"""The further input: the number of the node whose result is zeros."""

_MOST_NODES = 64
"""Largest number of nodes of a model: each of them costs a run."""

_OLDEST_OPSET = 9
"""Opset from which on there is Where."""

_ZEROED = ("tensor(float)", "tensor(double)")
_NODES = "nodes.json"


def may_be_zeroed(case: Case) -> bool:
    """Return whether a model has several nodes, and not too many.

    A single node does not need further outputs.
    """
    return 1 < case.facts.nodes <= _MOST_NODES and not case.external


def zeroed_case(case: Case) -> Case | Inapplicable:
    """Return the case with a data set for each node that computes floats from the inputs.

    In data set N, the results of the N-th such node are zeros; ``zeroed_operators`` names their operators.
    There are no expected outputs. The model is written to the cache, once.

    Raises:
        ModelError: The model is broken or missing.
        UsageError: The cache cannot be written.
    """
    if not may_be_zeroed(case):
        return Inapplicable(f"the model has one node, more than {_MOST_NODES}, or weights in other files")
    digest = digest_of("zeroed", ZEROED_FORMAT, case.digest)
    home = derive(case, "zeroed", digest, _insert)
    operators = msgspec.json.decode((home / _NODES).read_bytes(), type=list[str])
    if len(operators) < 2:  # noqa: PLR2004 - one node needs no further outputs
        return Inapplicable("at most one node computes floats from the inputs")
    first = case.data_sets[0]
    number = ValueType(kind="tensor", dtype="int64", shape=())
    return msgspec.structs.replace(
        case,
        model_path=home / MODEL_FILE,
        ports=(*case.ports, Port(name=_SELECTOR, type=number)),
        data_sets=tuple(
            DataSet(name=operator, inputs=(*first.inputs, (_SELECTOR, tensor(np.array(index, np.int64)))))
            for index, operator in enumerate(operators)
        ),
        digest=digest,
    )


def discard_zeroed(zeroed: Case) -> None:
    """Remove a model of ``zeroed_case`` that is no longer needed."""
    shutil.rmtree(zeroed.model_path.parent, ignore_errors=True)


def zeroed_operators(zeroed: Case) -> tuple[str, ...]:
    """Return the operator of the node that is zeroed in each data set of a case from ``zeroed_case``."""
    return tuple(data_set.name for data_set in zeroed.data_sets)


def _insert(model: "onnx.ModelProto") -> dict[str, bytes]:
    """Replace the results of nodes by zeros on demand. Return the model and the operators of these nodes."""
    from onnx import TensorProto, helper

    opsets = opsets_of(model)
    graph = model.graph
    types = declared_types(graph)
    varying = {port.name for port in graph.input} - {weight.name for weight in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    operators: list[str] = []
    for node in graph.node if opsets.get("", 0) >= _OLDEST_OPSET else ():
        nodes.append(node)
        if any(bodies(node)):
            varying.update(node.output)
            continue
        types.update((name, kind) for name, kind in result_types(node, opsets, types, []) if kind)
        if not varying.intersection(node.input):
            continue
        varying.update(node.output)
        name = node.output[0] if node.output else ""
        kind = types.get(name, "")
        if not name or kind not in _ZEROED:
            continue
        stem = f"{name}.ep_harness"
        node.output[0] = f"{stem}.exact"
        zero = helper.make_tensor(f"{stem}.zero", FLOAT_TYPES[kind], [], [0.0])
        which = helper.make_tensor(f"{stem}.number", TensorProto.INT64, [], [len(operators)])
        graph.initializer.extend([zero, which])
        nodes.append(helper.make_node("Equal", [_SELECTOR, which.name], [f"{stem}.chosen"]))
        nodes.append(helper.make_node("Where", [f"{stem}.chosen", zero.name, node.output[0]], [name]))
        operators.append(model_text(node.op_type))
    if operators:
        replace_nodes(graph, nodes)
        graph.input.append(helper.make_tensor_value_info(_SELECTOR, TensorProto.INT64, []))
    return {MODEL_FILE: model.SerializeToString(), _NODES: msgspec.json.encode(operators)}
