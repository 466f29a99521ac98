"""The operators of a model with the versions of their schemas."""

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from harness.corpus.model.nodes import (
    FunctionKey,
    all_nodes,
    called_by,
    local_functions,
    operator_name,
    opsets_of,
)
from harness.corpus.model.port import model_text

if TYPE_CHECKING:
    import onnx

_UNKNOWN = 0
"""The version of an operator without a schema in ONNX, such as one of ``com.microsoft``."""

OperatorVersions = dict[str, tuple[int, ...]]
"""Operator -> ``since_version`` of each schema that its nodes follow, in ascending order.

A domain other than ONNX's own comes before the name: ``com.microsoft.FastGelu``.
"""


def used_operators(model: "onnx.ModelProto") -> OperatorVersions:
    """Return the operators of a model.

    Nodes of branches and bodies count. For each call of a local function, its nodes count instead. A function
    that nothing calls does not count. Several versions of one operator occur if a function imports another
    opset than the model.
    """
    versions: dict[str, set[int]] = {}
    functions = local_functions(model)
    entered: set[FunctionKey] = set()

    def count(nodes: "Iterable[onnx.NodeProto]", opsets: Mapping[str, int]) -> None:
        for node in all_nodes(nodes):
            called = called_by(node)
            function = functions.get(called)
            if function is None:
                domain, op_type = model_text(called[0]), model_text(node.op_type)
                since = _since(domain, op_type, opsets.get(domain, _UNKNOWN))
                versions.setdefault(operator_name(domain, op_type), set()).add(since)
            elif called not in entered:
                entered.add(called)
                count(function.node, opsets_of(function))

    count(model.graph.node, opsets_of(model))
    return {name: tuple(sorted(found)) for name, found in sorted(versions.items())}


@functools.lru_cache(maxsize=4096)
def _since(domain: str, op_type: str, opset: int) -> int:
    import onnx.defs

    try:
        return onnx.defs.get_schema(op_type, opset, domain).since_version
    except onnx.defs.SchemaError:
        return _UNKNOWN
