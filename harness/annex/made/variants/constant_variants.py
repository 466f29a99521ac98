"""Constants in other places: initializers, Constant nodes, copies, and nodes that compute them."""

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

from harness.annex.made.variants.draft import (
    Draft,
    Edge,
    NewNodes,
    cut_sizes,
    insert,
    is_op,
    replace_names,
    result_of,
)
from harness.annex.made.variants.transformation import MOVABLE, Transformation
from harness.core.values.value import Array
from harness.corpus.model.element_types import NUMBERS
from harness.corpus.model.nodes import domain_of, operator_set

_MAY_VARY = operator_set("Add Concat Conv Div Gather Gemm MatMul Max Min Mul Pow Sub Where")
"""Operators whose operands need not be constant in any runtime."""

_FOLDABLE = operator_set("Cast Concat Expand Gather Identity Neg Reshape Slice Squeeze Transpose Unsqueeze")
"""Operators that the reference evaluator computes to the last bit."""

_LARGEST = 1 << 16
"""Elements of a constant that is rewritten."""


def as_node(draft: Draft) -> str:
    """Largest number of elements of a constant that is rewritten."""
    weights = _inner_weights(draft)
    if not weights:
        return ""
    weight = draft.random.pick(weights)
    chosen = onnx.TensorProto.FromString(weight.SerializeToString())
    draft.graph.initializer.remove(weight)
    node = onnx.helper.make_node("Constant", [], [chosen.name], name=draft.fresh("n_Constant"), value=chosen)
    insert(draft.graph, 0, [node])
    return str(chosen.name)


def as_initializer(draft: Draft) -> str:
    """Turn an initializer into a Constant node: ONNX gives both the same value."""
    outputs = {port.name for port in draft.graph.output}
    nodes = [
        node
        for node in draft.graph.node
        if is_op(node, "Constant")
        and [one.name for one in node.attribute] == ["value"]
        and node.output[0] not in outputs
    ]
    if not nodes:
        return ""
    node = draft.random.pick(nodes)
    name = result_of(node)
    weight = onnx.TensorProto.FromString(node.attribute[0].t.SerializeToString())
    weight.name = name
    draft.graph.node.remove(node)
    draft.graph.initializer.append(weight)
    return name


def copied(draft: Draft) -> str:
    """Let one of the nodes that read an initializer read a copy of it."""
    weights = {one.name: one for one in draft.graph.initializer}
    uses = [
        Edge(index, slot)
        for index, node in enumerate(draft.graph.node)
        for slot, name in enumerate(node.input)
        if name in weights
    ]
    if not uses:
        return ""
    edge = draft.random.pick(uses)
    name = draft.name_at(edge)
    copy = onnx.TensorProto.FromString(weights[name].SerializeToString())
    copy.name = draft.fresh(name)
    draft.graph.initializer.append(copy)
    draft.reroute(edge, NewNodes(draft), copy.name)
    return name


def shared(draft: Draft) -> str:
    """Let all nodes of the graph that read equal initializers read one of them."""
    ports = _ports(draft)
    seen: dict[bytes, str] = {}
    same: dict[str, str] = {}
    for weight in draft.graph.initializer:
        bare = onnx.TensorProto.FromString(weight.SerializeToString())
        bare.ClearField("name")
        first = seen.setdefault(bare.SerializeToString(deterministic=True), weight.name)
        if first != weight.name and not {first, weight.name} & ports:
            same[weight.name] = first
    for node in draft.graph.node:
        replace_names(node.input, same)
    return ", ".join(sorted(same))


def overridable(draft: Draft) -> str:
    """Also declare an initializer as an input: its value is the default, and nobody feeds another one."""
    weights = _inner_weights(draft)
    if not weights:
        return ""
    weight = draft.random.pick(weights)
    port = onnx.helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims))
    draft.graph.input.append(port)
    return str(weight.name)


def unfolded(draft: Draft) -> str:
    """Compute a constant by nodes that only move, negate or widen its elements.

    The value is equal to the last bit. A kernel that prepares constant weights in advance may round a
    computed one differently.
    """
    constants = draft.constants()
    edges = [
        Edge(index, slot)
        for index in draft.nodes(_MAY_VARY)
        for slot, name in enumerate(draft.graph.node[index].input)
        if name in constants and draft.type_of(name).dtype in MOVABLE and constants[name].size <= _LARGEST
    ]
    if not edges:
        return ""
    edge = draft.random.pick(edges)
    name = draft.name_at(edge)
    part = NewNodes(draft)
    draft.reroute(edge, part, _computed(part, constants[name], draft.type_of(name).dtype))
    return name


def folded(draft: Draft) -> str:
    """Replace a node that only moves or negates constants by its result."""
    from onnx.reference import ReferenceEvaluator

    constants = draft.constants()
    outputs = {port.name for port in draft.graph.output}
    nodes = [
        (index, node)
        for index, node in enumerate(draft.graph.node)
        if node.op_type in _FOLDABLE
        and not domain_of(node)
        and node.output[0] not in outputs
        and all(name in constants for name in node.input if name)
        and sum(constants[name].size for name in node.input if name) <= _LARGEST
    ]
    if not nodes:
        return ""
    index, node = draft.random.pick(nodes)
    name = result_of(node)
    given = {one: constants[one] for one in node.input if one}
    number = onnx.helper.np_dtype_to_tensor_dtype
    ports = [
        onnx.helper.make_tensor_value_info(one, number(array.dtype), array.shape)
        for one, array in given.items()
    ]
    graph = onnx.helper.make_graph([node], "folded", ports, [onnx.ValueInfoProto(name=name)])
    model = onnx.helper.make_model(graph, opset_imports=draft.model.opset_import)
    (result,) = ReferenceEvaluator(model).run(None, given)
    del draft.graph.node[index]
    draft.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(result), name))
    return name


def _computed(part: NewNodes, values: Array, dtype: str) -> str:
    ways = ["identity"]
    if values.ndim and max(values.shape) > 1 and values.size:
        ways.append("joined")
    if values.ndim > 1:
        ways.append("transposed")
    if dtype in {"float32", "int32", "int64"}:
        ways.append("negated")
    if dtype in {"float32", "int32"}:
        ways.append("widened")
    way = part.draft.random.pick(ways)
    if way == "joined":
        axis = part.draft.random.pick([at for at, size in enumerate(values.shape) if size > 1])
        first, _ = cut_sizes(part.draft.random, values.shape[axis])
        return part.op("Concat", *map(part.constant, np.split(values, [first], axis)), axis=axis)
    if way == "transposed":
        order = list(range(values.ndim))[::-1]
        return part.op("Transpose", part.constant(values.T.copy()), perm=order)
    if way == "negated":
        return part.op("Neg", part.constant(-values))
    if way == "widened":
        wide = np.float64 if dtype == "float32" else np.int64
        return part.op("Cast", part.constant(values.astype(wide)), to=NUMBERS[dtype])
    return part.op("Identity", part.constant(values))


def _inner_weights(draft: Draft) -> list[onnx.TensorProto]:
    ports = _ports(draft)
    return [one for one in draft.graph.initializer if one.name not in ports]


def _ports(draft: Draft) -> set[str]:
    return {port.name for port in (*draft.graph.input, *draft.graph.output)}


CONSTANTS: tuple[Transformation, ...] = (
    Transformation(name="as node", apply=as_node),
    Transformation(name="as initializer", apply=as_initializer),
    Transformation(name="copied", apply=copied),
    Transformation(name="shared", apply=shared),
    Transformation(name="overridable", apply=overridable, exact=False),
    Transformation(name="unfolded", apply=unfolded, exact=False),
    Transformation(name="folded", apply=folded),
)
