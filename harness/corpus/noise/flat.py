"""A model as noise is put into it: of ONNX's operators alone, in an opset that noise can be written in."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from harness.corpus.schema_types import bodies, domain_of

if TYPE_CHECKING:
    import onnx

OLDEST_OPSET = 7
"""Earlier operators do not broadcast by themselves."""


class NotFlatError(Exception):
    """The model cannot be written so; the text says why."""


def flattened(model: "onnx.ModelProto") -> "onnx.ModelProto":
    """The model with the bodies of its own functions in the place of their calls, in opset 7 at least.

    An opset before 7 is raised where every operator of the model means the same there.

    Raises:
        NotFlatError: A function is of another opset, or an operator has changed its meaning.
    """
    import onnx.inliner

    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
        if model.functions:
            raise NotFlatError("the model has functions of another opset than its own")
    for one in model.opset_import:
        if domain_of(one) == "" and one.version < OLDEST_OPSET:
            changed = sorted(set(_changed(model.graph.node, one.version)))
            if changed:
                raise NotFlatError(
                    f"the model is of an opset before {OLDEST_OPSET}, which changed {', '.join(changed)}"
                )
            one.version = OLDEST_OPSET
    return model


def _changed(nodes: "Iterable[onnx.NodeProto]", opset: int) -> Iterator[str]:
    """Operators that mean something else in opset 7."""
    import onnx.defs

    for node in nodes:
        for body in bodies(node):
            yield from _changed(body.node, opset)
        if domain_of(node):
            continue
        meanings = [onnx.defs.get_schema(node.op_type, at).since_version for at in (opset, OLDEST_OPSET)]
        if meanings[0] != meanings[1]:
            yield node.op_type
