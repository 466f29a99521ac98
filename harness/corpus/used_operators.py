"""The operators of a model with the versions of their schemas."""

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from harness.corpus.port import model_text
from harness.corpus.schema_types import bodies, domain_of

if TYPE_CHECKING:
    import onnx

UNKNOWN = 0
"""The version of an operator that ONNX has no schema of, such as one of ``com.microsoft``."""

Operators = dict[str, tuple[int, ...]]
"""Operator -> ``since_version`` of each schema that its nodes follow, in ascending order.

A domain other than ONNX's own stands before the name: ``com.microsoft.FastGelu``.
"""


def operator_name(domain: str, op_type: str) -> str:
    """Return the name of an operator; the domain is empty for ONNX's own."""
    return f"{domain}.{op_type}" if domain else op_type


def used_operators(model: "onnx.ModelProto") -> Operators:
    """Return the operators of a model.

    Nodes of branches and bodies count, and so do the nodes of a local function in place of each call of it. A
    function that nothing calls does not count. Several versions of one operator occur where a function
    imports another opset than the model does.
    """
    return _Census(model).found()


class _Census:
    def __init__(self, model: "onnx.ModelProto") -> None:
        self._versions: dict[str, set[int]] = {}
        self._functions = {(domain_of(one), one.name, one.overload): one for one in model.functions}
        self._entered: set[tuple[str, str, str]] = set()
        self._nodes(model.graph.node, {domain_of(one): one.version for one in model.opset_import})

    def found(self) -> Operators:
        return {name: tuple(sorted(versions)) for name, versions in sorted(self._versions.items())}

    def _nodes(self, nodes: "Iterable[onnx.NodeProto]", opsets: Mapping[str, int]) -> None:
        for node in nodes:
            for body in bodies(node):
                self._nodes(body.node, opsets)
            called = (domain_of(node), node.op_type, node.overload)
            function = self._functions.get(called)
            if function is None:
                domain, op_type = model_text(called[0]), model_text(node.op_type)
                since = _since(domain, op_type, opsets.get(domain, UNKNOWN))
                self._versions.setdefault(operator_name(domain, op_type), set()).add(since)
            elif called not in self._entered:
                self._entered.add(called)
                self._nodes(function.node, {domain_of(one): one.version for one in function.opset_import})


@functools.lru_cache(maxsize=4096)
def _since(domain: str, op_type: str, opset: int) -> int:
    import onnx.defs

    try:
        return onnx.defs.get_schema(op_type, opset, domain).since_version
    except onnx.defs.SchemaError:
        return UNKNOWN
