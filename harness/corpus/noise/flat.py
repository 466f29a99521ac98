"""The form of a model that noise can be added to: ONNX's operators only, no functions, opset 7 or later."""

from collections.abc import Iterator

import onnx
import onnx.defs
import onnx.inliner

from harness.corpus.model.nodes import all_nodes, bodies, domain_of

_OLDEST_OPSET = 7
"""Earlier operators do not broadcast by default."""

_MOST_SEEN = 64_000_000
"""Largest product of control-flow bodies and nodes: each body gets its own list of all visible tensors."""


class NotFlatError(Exception):
    """The model has no such form; the text says why."""


def flattened(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with its functions inlined, in opset 7 or later.

    An opset before 7 is raised if every operator of the model means the same in opset 7.

    Raises:
        NotFlatError: A function has another opset, an operator changed its meaning, or there are too many
            bodies.
    """
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
        if model.functions:
            raise NotFlatError("the model has functions of another opset than its own")
    nodes = [*all_nodes(model.graph.node)]
    inner = sum(1 for node in nodes for _ in bodies(node))
    if inner * len(nodes) > _MOST_SEEN:
        raise NotFlatError(f"the model has {inner:,} branches and bodies, and {len(nodes):,} nodes")
    for one in model.opset_import:
        if domain_of(one) == "" and one.version < _OLDEST_OPSET:
            changed = ", ".join(sorted(set(_changed(model, one.version))))
            if changed:
                raise NotFlatError(
                    f"the model is of an opset before {_OLDEST_OPSET}, which changed {changed}"
                )
            one.version = _OLDEST_OPSET
    return model


def _changed(model: onnx.ModelProto, opset: int) -> Iterator[str]:
    """Yield the operators that have another meaning in opset 7."""
    for node in all_nodes(model.graph.node):
        if not domain_of(node):
            old, new = (onnx.defs.get_schema(node.op_type, at) for at in (opset, _OLDEST_OPSET))
            if old.since_version != new.since_version:
                yield node.op_type
