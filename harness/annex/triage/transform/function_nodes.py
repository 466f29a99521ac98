"""Fewer nodes in the model's own functions, where these cannot be inlined."""

from typing import TYPE_CHECKING

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import copied, replaced_names
from harness.annex.triage.search import NetCandidate, Search, minimise
from harness.corpus.model.nodes import all_nodes

if TYPE_CHECKING:
    import onnx

FunctionNodePlace = tuple[int, int]
"""Index of a function and of a node in it."""


def fewer_function_nodes(net: Net, context: Context) -> Search:
    """Replace nodes of functions by their first input, as far as types allow.

    Types inside a function depend on the call; onnx's inference refuses mismatches.
    """
    places = [
        (number, index)
        for number, function in enumerate(net.functions)
        for index, node in enumerate(function.node)
        if any(node.input) and not context.stays(net, (one.name for one in all_nodes([node])))
    ]

    def build(kept: tuple[FunctionNodePlace, ...]) -> NetCandidate:
        functions = list(net.functions)
        for number in {number for number, _ in places}:
            gone = {index for at, index in places if at == number and (at, index) not in kept}
            if gone:
                thinner = _without(functions[number], gone)
                if thinner is None:
                    return None
                functions[number] = thinner
        return net.changed(functions=tuple(functions))

    yield from minimise(places, build)


def _without(function: "onnx.FunctionProto", gone: set[int]) -> "onnx.FunctionProto | None":
    """Return a copy without some of its nodes; None if it would be empty or return an input."""
    copy: onnx.FunctionProto = copied(function)
    names: dict[str, str] = {}
    left = []
    for index, node in enumerate(copy.node):
        replaced_names(node, names)
        if index in gone:
            source = next(filter(None, node.input))
            names |= {name: source for name in node.output if name}
        else:
            left.append(node)
    made = {name for node in left for name in node.output}
    outputs = [names.get(name, name) for name in copy.output]
    if not left or len(set(outputs)) < len(outputs) or not made.issuperset(outputs):
        return None
    del copy.value_info[:]
    del copy.node[:]
    copy.node.extend(left)
    del copy.output[:]
    copy.output.extend(outputs)
    return copy
