"""Inputs and outputs of nodes that may be omitted."""

from typing import TYPE_CHECKING

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetNode, node_of
from harness.annex.triage.search import NetCandidate, Search, minimise
from harness.annex.triage.transform.outputs import restricted
from harness.corpus.model.schema_types import schema_of

if TYPE_CHECKING:
    import onnx.defs

_ENDS_OF_LOOP = (0, 1)
"""Inputs of Loop without which it may go on for ever: how often it runs, and whether it begins."""

ArgumentPlace = tuple[int, str, int]
"""Index of a node, ``inputs`` or ``outputs``, index among these."""


def fewer_arguments(net: Net, context: Context) -> Search:
    """Omit optional inputs and outputs, and some of the variadic ones."""
    used = net.read_names() | net.outputs.keys()
    places = [(index, *place) for index, node in enumerate(net.nodes) for place in _optional(net, node, used)]

    def build(kept: tuple[ArgumentPlace, ...]) -> NetCandidate:
        gone: dict[int, set[tuple[str, int]]] = {}
        for index, side, number in set(places) - set(kept):
            gone.setdefault(index, set()).add((side, number))
        nodes = list(net.nodes)
        for index, arguments in gone.items():
            nodes[index] = _without(net, nodes[index], arguments)
        return restricted(net.changed(nodes=tuple(nodes)), net.outputs.keys(), context)

    yield from minimise(places, build)


def _optional(net: Net, node: NetNode, used: set[str]) -> list[tuple[str, int]]:
    proto = node.proto()
    schema = schema_of(proto, net.opsets)
    ends = _ENDS_OF_LOOP if proto.op_type == "Loop" else ()
    places = [("inputs", number) for number, name in enumerate(node.inputs) if name and number not in ends]
    places += [("outputs", number) for number, name in enumerate(node.outputs) if name and name not in used]
    # For an operator that ONNX does not know, any but the first may be optional.
    return [place for place in places if (_may_go(schema, *place) if schema else place[1] > 0)]


def _may_go(schema: "onnx.defs.OpSchema", side: str, number: int) -> bool:
    import onnx.defs

    options = onnx.defs.OpSchema.FormalParameterOption
    least = schema.min_input if side == "inputs" else schema.min_output
    option = _option(schema, side, number)
    return option == options.Optional or (option == options.Variadic and number >= least)


def _without(net: Net, node: NetNode, gone: set[tuple[str, int]]) -> NetNode:
    import onnx.defs

    proto = node.proto()
    schema = schema_of(proto, net.opsets)
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    for side, names in (("inputs", proto.input), ("outputs", proto.output)):
        for number in sorted((number for at, number in gone if at == side), reverse=True):
            if schema and _option(schema, side, number) == variadic:
                del names[number]
            else:
                names[number] = ""
        while names and not names[-1]:
            del names[-1]
    return node_of(proto)


def _option(
    schema: "onnx.defs.OpSchema", side: str, number: int
) -> "onnx.defs.OpSchema.FormalParameterOption | None":
    """Return whether an argument is single, optional or variadic; the last formal one stands for several."""
    formals = schema.inputs if side == "inputs" else schema.outputs
    return formals[min(number, len(formals) - 1)].option if formals else None
