"""A model in which what one node computes can be zeros: whether anybody would notice."""

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.value import Tensor
from harness.corpus.cache import cache_root, fill_once
from harness.corpus.case import Case
from harness.corpus.data_sets import DataSet
from harness.corpus.errors import blame
from harness.corpus.model_file import parse_model, read_model_file
from harness.corpus.noise.tensor_types import NUMBERS, declared_types, result_types
from harness.corpus.port import Port, ValueType, model_text
from harness.corpus.scenario import Inapplicable
from harness.corpus.schema_types import bodies, domain_of

if TYPE_CHECKING:
    import onnx

FORMAT = 1
"""Rises when what is written changes although the model that it is made from does not."""

SELECTOR = "ep_harness.zeroed"
"""The further input: the number of the node whose result is zeros."""

MOST_NODES = 64
"""Nodes of a model that is looked at: each of them costs a run."""

OLDEST_OPSET = 9
"""Opset from which on there is Where."""

FLOATS = ("tensor(float)", "tensor(double)")

_MODEL, _NODES = "model.onnx", "nodes.json"


def may_be_zeroed(case: Case) -> bool:
    """Whether a model has several nodes, and not too many. Of one node its outputs tell all."""
    return 1 < case.facts.nodes <= MOST_NODES and not case.external


def zeroed_case(case: Case) -> Case | Inapplicable:
    """The case with a data set for each node that computes floats from the inputs; without expected outputs.

    In data set N the results of the N-th such node are zeros; ``operators_of`` names their operators.
    The model is written into the cache, once.

    Raises:
        ModelError: The model is broken or has gone.
        UsageError: The cache cannot be written.
    """
    if not may_be_zeroed(case):
        return Inapplicable("the model has one node, or more than are looked at, or weights in other files")
    digest = hashlib.sha256(f"zeroed {FORMAT} {case.digest}".encode()).hexdigest()
    home = cache_root() / "zeroed" / digest

    def build(folder: Path) -> None:
        with blame(case.model_path):
            model = parse_model(read_model_file(case.model_path))
            operators = _insert(model)
            (folder / _MODEL).write_bytes(model.SerializeToString())
            (folder / _NODES).write_bytes(msgspec.json.encode(operators))

    fill_once(home, build)
    operators = msgspec.json.decode((home / _NODES).read_bytes(), type=list[str])
    if len(operators) < 2:  # noqa: PLR2004 - of one node the outputs tell all
        return Inapplicable("at most one node computes floats from the inputs")
    first = case.data_sets[0]
    number = ValueType(kind="tensor", dtype="int64", shape=())
    return msgspec.structs.replace(
        case,
        model_path=home / _MODEL,
        ports=(*case.ports, Port(name=SELECTOR, type=number)),
        data_sets=tuple(
            DataSet(name=operator, inputs=(*first.inputs, (SELECTOR, _whole(index))))
            for index, operator in enumerate(operators)
        ),
        digest=digest,
    )


def discard_zeroed(zeroed: Case) -> None:
    """Remove a model from ``zeroed_case`` that has served its purpose."""
    shutil.rmtree(zeroed.model_path.parent, ignore_errors=True)


def operators_of(zeroed: Case) -> tuple[str, ...]:
    """The operator of the node that each data set of a case from ``zeroed_case`` is about."""
    return tuple(data_set.name for data_set in zeroed.data_sets)


def _whole(number: int) -> Tensor:
    return Tensor(dtype="int64", array=np.array(number, np.int64))


def _insert(model: "onnx.ModelProto") -> list[str]:
    """Make the results of nodes zeros on demand, in place; the operators of these nodes in their order."""
    from onnx import TensorProto, helper

    opsets = {domain_of(one): one.version for one in model.opset_import}
    if opsets.get("", 0) < OLDEST_OPSET:
        return []
    graph = model.graph
    types = declared_types(graph)
    weights = {weight.name for weight in graph.initializer}
    varying = {port.name for port in graph.input} - weights
    nodes: list[onnx.NodeProto] = []
    operators: list[str] = []
    for node in graph.node:
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
        if not name or kind not in FLOATS:
            continue
        number, stem = len(operators), f"{name}.ep_harness"
        node.output[0] = f"{stem}.exact"
        zero = helper.make_tensor(f"{stem}.zero", NUMBERS[kind], [], [0.0])
        which = helper.make_tensor(f"{stem}.number", TensorProto.INT64, [], [number])
        graph.initializer.extend([zero, which])
        nodes.append(helper.make_node("Equal", [SELECTOR, which.name], [f"{stem}.chosen"]))
        nodes.append(helper.make_node("Where", [f"{stem}.chosen", zero.name, node.output[0]], [name]))
        operators.append(model_text(node.op_type))
    del graph.node[:]
    graph.node.extend(nodes)
    graph.input.append(helper.make_tensor_value_info(SELECTOR, TensorProto.INT64, []))
    return operators
