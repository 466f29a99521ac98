"""The order of nodes, nodes that are computed twice, and inner tensors as further outputs."""

import onnx
import onnx.helper

from harness.annex.made.variants.draft import Draft, NewNodes, insert, is_op, reads
from harness.annex.made.variants.transformation import MOVABLE, Transformation
from harness.corpus.model.nodes import bodies
from harness.corpus.model.origins import RANDOM_OPERATORS
from harness.corpus.model.protos import value_info


def reordered(draft: Draft) -> str:
    """List the nodes in another topological order: ONNX gives their order no other meaning."""
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in draft.graph.node]
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    waits = [{makers[name] for name in reads(node) if name in makers} for node in nodes]
    order: list[int] = []
    done: set[int] = set()
    while len(order) < len(nodes):
        ready = [index for index in range(len(nodes)) if index not in done and waits[index] <= done]
        index = draft.random.pick(ready)
        order.append(index)
        done.add(index)
    if order == sorted(order):
        return ""
    del draft.graph.node[:]
    draft.graph.node.extend(nodes[index] for index in order)
    return f"{len(nodes)} nodes"


def computed_twice(draft: Draft) -> str:
    """Let a node read the result of a copy of the node before it: the same operator on the same operands."""
    makers = {name: index for index, node in enumerate(draft.graph.node) for name in node.output if name}
    edges = [
        edge
        for edge in draft.edges(MOVABLE)
        if edge.node is not None
        and draft.name_at(edge) in makers
        and _may_repeat(draft.graph.node[makers[draft.name_at(edge)]])
    ]
    if not edges:
        return ""
    edge = draft.random.pick(edges)
    name = draft.name_at(edge)
    maker, part = draft.graph.node[makers[name]], NewNodes(draft)
    draft.reroute(edge, part, part.like(maker, maker.input))
    return name


def exposed(draft: Draft) -> str:
    """Make a tensor between nodes a further output: the other outputs do not depend on it.

    Fusions must keep such a tensor.
    """
    outputs = {port.name for port in draft.graph.output}
    names = [
        str(name)
        for node in draft.graph.node
        for name in node.output
        if name not in outputs and draft.type_of(name).dtype in MOVABLE
    ]
    if not names:
        return ""
    name = draft.random.pick(names)
    kind = draft.type_of(name)
    draft.graph.output.append(value_info(name, kind.dtype, kind.shape))
    return name


def unused(draft: Draft) -> str:
    """Compute something that nothing reads."""
    edges = draft.edges({"float32"})
    if not edges:
        return ""
    name = draft.name_at(draft.random.pick(edges))
    part = NewNodes(draft)
    part.op(draft.random.pick(["Abs", "Neg", "Identity"]), name)
    insert(draft.graph, len(draft.graph.node), part.nodes)
    return name


def _may_repeat(node: onnx.NodeProto) -> bool:
    fits = (
        len(node.output) == 1 and node.op_type not in RANDOM_OPERATORS | {"Dropout"} and not any(bodies(node))
    )
    return fits and not is_op(node, "Constant")


ORDER: tuple[Transformation, ...] = (
    Transformation(name="reordered", apply=reordered),
    Transformation(name="computed twice", apply=computed_twice),
    Transformation(name="exposed", apply=exposed),
    Transformation(name="unused", apply=unused),
)
