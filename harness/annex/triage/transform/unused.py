"""Parts that no node needs: declarations of inner tensors, texts, opsets, functions."""

from collections.abc import Callable
from typing import Any

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import node_of
from harness.annex.triage.search import NetCandidate, Search, minimise
from harness.annex.triage.transform.outputs import restricted
from harness.corpus.model.nodes import all_nodes, domain_of


def unused_parts(net: Net, context: Context) -> Search:
    """Drop parts that no node needs; each kind on its own if they cannot all go together."""

    def build(kept: tuple[str, ...]) -> NetCandidate:
        smaller = net
        for name, drop in _KINDS.items():
            if name not in kept:
                smaller = drop(smaller, context)
        return smaller

    yield from minimise(tuple(_KINDS), build)


def _dead_nodes(net: Net, context: Context) -> Net:
    return restricted(net, net.outputs.keys(), context) or net


def _declarations(net: Net, context: Context) -> Net:  # noqa: ARG001
    return net.replace(infos={}, annotations={})


def _functions(net: Net, context: Context) -> Net:  # noqa: ARG001
    functions = {(domain_of(one), one.name): one for one in net.functions}
    pending = [operator for node in net.nodes for operator in node.operators]
    called = set()
    while pending:
        operator = pending.pop()
        if operator in functions and operator not in called:
            called.add(operator)
            pending += ((domain_of(one), one.op_type) for one in all_nodes(functions[operator].node))
    return net.replace(functions=tuple(one for key, one in functions.items() if key in called))


def _opsets(net: Net, context: Context) -> Net:  # noqa: ARG001
    used = {domain for node in net.nodes for domain, _ in node.operators} | {""}
    for function in net.functions:
        used |= {domain_of(function), *(domain_of(one) for one in function.opset_import)}
    model = _header(net)
    kept = [one for one in model.opset_import if domain_of(one) in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    opsets = {domain: version for domain, version in net.opsets.items() if domain in used}
    return net.replace(header=model.SerializeToString(), opsets=opsets)


def _texts(net: Net, context: Context) -> Net:  # noqa: ARG001
    import onnx

    model, graph = _header(net), onnx.GraphProto(name="g")
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        model.ClearField(field)
    for field in ("metadata_props", "training_info"):
        model.ClearField(field)
    nodes = []
    for node in net.nodes:
        proto = node.proto()
        # Each of them must be cleared, not only the first.
        if sum(_cleared(one) for one in all_nodes([proto])):
            node = node_of(proto)  # noqa: PLW2901
        nodes.append(node)
    return net.replace(header=model.SerializeToString(), labels=graph.SerializeToString(), nodes=tuple(nodes))


def _cleared(node: Any) -> bool:
    """Clear the descriptions of a node; return whether there were any."""
    found = bool(node.doc_string or node.metadata_props)
    node.ClearField("doc_string")
    node.ClearField("metadata_props")
    return found


def _header(net: Net) -> Any:
    import onnx

    return onnx.ModelProto.FromString(net.header)


_KINDS: dict[str, Callable[[Net, Context], Net]] = {
    "dead nodes": _dead_nodes,
    "declarations": _declarations,
    "functions": _functions,
    "opsets": _opsets,
    "texts": _texts,
}
