"""The operators of a model with the versions of their schemas, by which claims about them are looked up."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.corpus.errors import blame
from harness.corpus.model_file import parse_model, read_model_file
from harness.corpus.port import model_text
from harness.corpus.schema_types import bodies, domain_of

if TYPE_CHECKING:
    import onnx

UNKNOWN = 0
"""The version of an operator that ONNX has no schema of, such as one of ``com.microsoft``."""

Operators = dict[tuple[str, str], frozenset[int]]
"""Domain (empty for ONNX's own) and operator -> ``since_version`` of the schemas that its nodes follow."""


def operators_in(path: Path) -> Operators:
    """Return the operators of a model's file.

    Raises:
        ModelError: It cannot be read.
    """
    with blame(path):
        return used_operators(parse_model(read_model_file(path)))


def used_operators(model: "onnx.ModelProto") -> Operators:
    """Return the operators of a model.

    Nodes of branches and bodies count, and so do the nodes of a local function in place of each call of it. A
    function that nothing calls does not count. Several versions of one operator occur where a function
    imports another opset than the model does.
    """
    return _Census(model).found()


class _Census:
    def __init__(self, model: "onnx.ModelProto") -> None:
        self._versions: dict[tuple[str, str], set[int]] = {}
        self._functions = {(domain_of(one), one.name, one.overload): one for one in model.functions}
        self._entered: set[tuple[str, str, str]] = set()
        self._nodes(model.graph.node, {domain_of(one): one.version for one in model.opset_import})

    def found(self) -> Operators:
        return {key: frozenset(versions) for key, versions in sorted(self._versions.items())}

    def _nodes(self, nodes: "Iterable[onnx.NodeProto]", opsets: Mapping[str, int]) -> None:
        for node in nodes:
            for body in bodies(node):
                self._nodes(body.node, opsets)
            called = (domain_of(node), node.op_type, node.overload)
            function = self._functions.get(called)
            if function is None:
                key = model_text(domain_of(node)), model_text(node.op_type)
                self._versions.setdefault(key, set()).add(_since(key, opsets))
            elif called not in self._entered:
                self._entered.add(called)
                self._nodes(function.node, {domain_of(one): one.version for one in function.opset_import})


def _since(key: tuple[str, str], opsets: Mapping[str, int]) -> int:
    import onnx.defs

    domain, op_type = key
    try:
        return onnx.defs.get_schema(op_type, opsets.get(domain, UNKNOWN), domain).since_version
    except onnx.defs.SchemaError:
        return UNKNOWN
