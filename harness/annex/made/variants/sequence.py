"""A seeded sequence of transformations of one model."""

from collections.abc import Collection

import msgspec
import onnx
import onnx.defs

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.variants.algebra import ALGEBRA
from harness.annex.made.variants.cancel import CANCELLING
from harness.annex.made.variants.constant_variants import CONSTANTS
from harness.annex.made.variants.control_flow_variants import CONTROL_FLOW
from harness.annex.made.variants.draft import OLDEST_OPSET, Draft
from harness.annex.made.variants.function_variants import FUNCTIONS
from harness.annex.made.variants.layout import LAYOUT
from harness.annex.made.variants.order import ORDER
from harness.annex.made.variants.pieces import PIECES
from harness.annex.made.variants.transformation import Transformation
from harness.corpus.model.element_types import is_floating
from harness.corpus.model.nodes import all_nodes, domain_of, number_of, opsets_of
from harness.corpus.noise.operator_rounding import DISCONTINUOUS

TRANSFORMATIONS: dict[str, Transformation] = {
    one.name: one
    for one in (
        *CANCELLING, *PIECES, *ALGEBRA, *LAYOUT, *CONSTANTS, *CONTROL_FLOW, *FUNCTIONS, *ORDER,
    )
}  # fmt: skip
"""All transformations by name; the order is part of a seed's meaning."""


class AppliedTransformation(msgspec.Struct, frozen=True, kw_only=True):
    """One of ``TRANSFORMATIONS`` that was applied, with the tensors or the operator that it changed."""

    name: str
    where: str


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A model that keeps the answer of another one: to the last bit, or else within rounding noise."""

    model: onnx.ModelProto
    steps: tuple[AppliedTransformation, ...]
    exact: bool


def vary(
    original: onnx.ModelProto,
    random: ChoiceStream,
    count: int,
    names: Collection[str] = tuple(TRANSFORMATIONS),
) -> Variant | None:
    """Return a variant of a model, which itself stays unchanged; ``random`` decides on everything.

    ``count`` of the named transformations are applied; fewer if there is no place for a further one.

    Returns:
        Return None if there is no place for any, the opset is older than 13, onnx cannot infer the types, or
        the model has operators of ``ai.onnx.ml``.
    """
    opsets = opsets_of(original)
    # onnx 1.23's type inference, which is native code, crashes for TreeEnsemble of ai.onnx.ml 5.
    if opsets.get("", 0) < OLDEST_OPSET or _CLASSICAL in opsets:
        return None
    model = onnx.ModelProto.FromString(original.SerializeToString())
    known = [TRANSFORMATIONS[name] for name in names]
    steps: list[AppliedTransformation] = []
    try:
        draft = Draft(model, random)
        for _ in range(count):
            step = _applied(draft, known)
            if step is None:
                break
            steps.append(step)
            draft.infer()
    except ValueError:
        return None
    exact = all(TRANSFORMATIONS[step.name].exact for step in steps)
    return Variant(model=model, steps=tuple(steps), exact=exact) if steps else None


def _applied(draft: Draft, known: list[Transformation]) -> AppliedTransformation | None:
    # Other rounding may change a decision completely, so such models are left alone.
    jumps = has_decisions(draft.model, {name: kind.dtype for name, kind in draft.types.items()})
    fits = [one for one in known if one.exact or not jumps]
    for one in draft.random.some(fits, len(fits)):
        if where := one.apply(draft):
            return AppliedTransformation(name=one.name, where=where)
    return None


def has_decisions(model: onnx.ModelProto, dtypes: dict[str, str]) -> bool:
    """Return whether some result of a model jumps: the least noise may change it completely."""
    own = {"", *(domain_of(function) for function in model.functions)}
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    for node in all_nodes(nodes):
        # Nothing is known about operators that are neither ONNX's nor the model's.
        if domain_of(node) not in own or node.op_type in DISCONTINUOUS:
            return True
        to = number_of(node, "to", 1)
        if node.op_type == "Cast" and to not in _FLOATS and is_floating(dtypes.get(node.input[0], "float")):
            return True
    return False


_CLASSICAL = "ai.onnx.ml"

_FLOATS = frozenset({1.0, 10.0, 11.0, 16.0})
"""float32, float16, float64 and bfloat16 by their numbers."""
