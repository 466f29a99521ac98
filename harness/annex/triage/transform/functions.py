"""The model's own functions, inlined."""

import re

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net, load
from harness.annex.triage.net_node import node_name
from harness.annex.triage.outline import outline
from harness.annex.triage.search import NetCandidate, Search, minimise
from harness.annex.triage.subject import Subject
from harness.corpus.model.nodes import all_nodes, domain_of

Function = tuple[str, str]


def inlined_functions(net: Net, context: Context) -> Search:  # noqa: ARG001 - all are called alike
    """Replace calls by the nodes of their functions."""
    functions = tuple(dict.fromkeys((domain_of(one), one.name) for one in net.functions))

    def build(kept: tuple[Function, ...]) -> NetCandidate:
        return _inlined(net, [one for one in functions if one not in kept])

    yield from minimise(functions, build)


def _inlined(net: Net, functions: list[Function]) -> NetCandidate:
    import onnx
    import onnx.inliner

    try:
        model = onnx.inliner.inline_selected_functions(onnx.ModelProto.FromString(outline(net)), functions)
    except (RuntimeError, ValueError):  # the inliner's errors for unsupported cases
        return None
    made = load(Subject(model=model.SerializeToString(), inputs=()))
    return net.changed(
        header=made.header,
        opsets=made.opsets,
        nodes=made.nodes,
        functions=made.functions,
        infos={},
        origins=net.origins | _origins(net, made),
    )


def _origins(net: Net, made: Net) -> dict[str, str]:
    """Return former names of nodes that came from functions: onnx's inliner appends ``__`` and a number."""
    inner = {node_name(node) for function in net.functions for node in all_nodes(function.node)}
    found = {}
    for name in set().union(*(node.names for node in made.nodes)):
        before = _APPENDED.sub("", name)
        if before != name and before in inner:
            found[name] = net.origins.get(before, before)
    return found


_APPENDED = re.compile(r"(?:__\d+)+$")
