"""Inputs that choose a branch of a model, such as ``use_cache_branch`` of a merged decoder."""

from typing import TYPE_CHECKING

from harness.corpus.model.nodes import domain_of, weight_names
from harness.corpus.model.port import model_text
from harness.operators.book import operators_with

if TYPE_CHECKING:
    import onnx

_PASSED_ON = operators_with(lambda row: row.keeps_values) | {"Not"}
"""Operators behind which a flag still tells its branches apart."""


def branch_inputs(graph: "onnx.GraphProto") -> tuple[str, ...]:
    """Return the inputs of a graph that alone decide which branch of an ``If`` runs, each once.

    Conditions inside branches and bodies are left out, and those that are computed from several values.
    """
    makers = {name: node for node in graph.node for name in node.output}
    inputs = {port.name for port in graph.input} - weight_names(graph)
    flags = (
        _source(node.input[0], makers)
        for node in graph.node
        if node.op_type == "If" and not domain_of(node) and node.input
    )
    return tuple(dict.fromkeys(model_text(flag) for flag in flags if flag in inputs))


def _source(name: str, makers: "dict[str, onnx.NodeProto]") -> str:
    for _ in makers:  # a broken graph may have a cycle
        maker = makers.get(name)
        if maker is None or maker.op_type not in _PASSED_ON or domain_of(maker) or not maker.input:
            break
        name = maker.input[0]
    return name
