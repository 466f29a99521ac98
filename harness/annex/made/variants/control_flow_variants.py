"""Nodes in bodies: a branch that is always taken, a loop of one iteration."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnx.helper

from harness.annex.made.variants.draft import Draft, NewNodes, is_op, result_of
from harness.annex.made.variants.transformation import MOVABLE, Transformation
from harness.corpus.model.element_types import NUMBERS
from harness.corpus.model.nodes import bodies
from harness.corpus.model.protos import value_info


def into_if(part: NewNodes, node: onnx.NodeProto) -> str:
    """Move a node into both branches of an If: whichever is taken computes the same.

    Branches read their operands from outside. The condition is constant, or computed from the operand, so
    that no optimizer can decide it.
    """
    draft = part.draft
    branches = {f"{side}_branch": _body(draft, node, side) for side in ("then", "else")}
    if draft.random.below(2):
        condition = part.constant(np.array(bool(draft.random.below(2))))
    else:
        # True where the tensor has elements, false where it has none.
        condition = part.op("Cast", part.op("Size", node.input[0]), to=NUMBERS["bool"])
    return part.op("If", condition, **branches)


def into_loop(part: NewNodes, node: onnx.NodeProto) -> str:
    """Move a node into a Loop of one iteration: its scan output has one entry, the node's result."""
    draft = part.draft
    # Iteration number and condition of the body.
    ports = [
        value_info(draft.fresh("iteration"), "int64", []),
        value_info(draft.fresh("go_on"), "bool", []),
    ]
    once = part.constant(np.array(1, np.int64))
    go_on = part.constant(np.array(True))  # noqa: FBT003 - a value
    scanned = part.op("Loop", once, go_on, body=_body(draft, node, "body", ports))
    return part.op("Squeeze", scanned, part.ints(0))


def _moved(name: str, build: Callable[[NewNodes, onnx.NodeProto], str]) -> Transformation:
    """Return the transformation of a node with one output of known type and without its own bodies."""

    def apply(draft: Draft) -> str:
        fits = [
            index
            for index, node in enumerate(draft.graph.node)
            if len(node.output) == 1
            and node.input
            and draft.type_of(node.input[0]).dtype
            and draft.type_of(node.output[0]).dtype in MOVABLE
            and not is_op(node, "Constant")
            and not any(bodies(node))
        ]
        if not fits:
            return ""
        index = draft.random.pick(fits)
        node, part = draft.graph.node[index], NewNodes(draft)
        where = result_of(node)
        draft.replace(index, part, [build(part, node)])
        return where

    apply.__doc__ = build.__doc__
    return Transformation(name=name, apply=apply)


def _body(
    draft: Draft, node: onnx.NodeProto, name: str, ports: Sequence[onnx.ValueInfoProto] = ()
) -> onnx.GraphProto:
    copy = onnx.NodeProto.FromString(node.SerializeToString())
    copy.name = draft.fresh(f"n_{name}")
    result = draft.fresh(name)
    copy.output[:] = [result]
    kind = draft.type_of(node.output[0])
    outputs = [value_info(result, kind.dtype, kind.shape)]
    nodes = [copy]
    if ports:
        going = draft.fresh("going")
        nodes.append(onnx.helper.make_node("Identity", [ports[1].name], [going], name=draft.fresh("n_going")))
        outputs.insert(0, value_info(going, "bool", []))
    return onnx.helper.make_graph(nodes, draft.fresh(name), list(ports), outputs)


CONTROL_FLOW: tuple[Transformation, ...] = (
    _moved("into if", into_if),
    _moved("into loop", into_loop),
)
