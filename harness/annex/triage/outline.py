"""A model without its large weights, used to check a candidate and to infer its types."""

from typing import TYPE_CHECKING

from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetWeight
from harness.annex.triage.onnx_process import ONNX
from harness.corpus.model.element_types import NUMBERS

if TYPE_CHECKING:
    import onnx

_SMALL = 1024
"""Bytes up to which a weight stays: shapes, axes and similar ones decide types of other tensors."""


def outline(net: Net) -> bytes:
    """Serialize a net with a graph input in place of each large weight."""
    import onnx.helper

    small = [weight for weight in net.weights.values() if not is_large(weight)]
    moved = [
        onnx.helper.make_tensor_value_info(weight.name, NUMBERS.get(weight.dtype, 0), weight.shape)
        for weight in net.weights.values()
        if is_large(weight)
    ]
    return net.model_bytes(weights=small, inputs=[one for one in moved if one.name not in net.inputs])


def net_problem(net: Net) -> str:
    """Return why onnx's checker refuses a net; empty if it does not."""
    return ONNX.problem(outline(net))


def inferred(net: Net) -> "onnx.ModelProto | None":
    """Return the outline of a net with the types of its inner tensors; None if onnx finds a contradiction."""
    import onnx

    # Old declarations would be trusted, and a dimension of another size be merged into them.
    typed = ONNX.inferred(outline(net.replace(infos={})))
    if typed is None:
        return None
    model: onnx.ModelProto = onnx.ModelProto.FromString(typed)
    return model


def is_large(weight: NetWeight) -> bool:
    """Return whether a weight is left out of the outline."""
    return weight.external or (len(weight.wire) > _SMALL and bool(weight.dtype))
