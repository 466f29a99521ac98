"""A model without its large weights, by which a candidate is checked and its types are inferred."""

from typing import TYPE_CHECKING, Any

from harness.corpus.element_types import NUMBERS
from harness.triage.net import Net
from harness.triage.node import Weight

if TYPE_CHECKING:
    import onnx

SMALL = 1024
"""Bytes up to which a weight stays: shapes, axes and the like decide types of other tensors."""


def outline(net: Net) -> bytes:
    """Serialize a net with a graph input in place of each large weight."""
    small = [weight for weight in net.weights.values() if not _large(weight)]
    moved = [_declared(weight) for weight in net.weights.values() if _large(weight)]
    return net.model_bytes(weights=small, inputs=[one for one in moved if one.name not in net.inputs])


def problem(net: Net) -> str:
    """Return why onnx's checker refuses a net; empty if it does not."""
    import onnx.checker

    try:
        onnx.checker.check_model(outline(net))
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        return str(error) or type(error).__name__
    return ""


def inferred(net: Net) -> "onnx.ModelProto | None":
    """Return the outline of a net with the types of its inner tensors; None if onnx finds a contradiction."""
    import onnx
    import onnx.shape_inference

    try:
        # Old declarations would be believed, and a dimension of another size be merged into them.
        bare = onnx.ModelProto.FromString(outline(net.replace(infos={})))
        return onnx.shape_inference.infer_shapes(bare, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        return None


def _large(weight: Weight) -> bool:
    return weight.external or len(weight.wire) > SMALL


def _declared(weight: Weight) -> Any:
    import onnx.helper

    return onnx.helper.make_tensor_value_info(weight.name, NUMBERS.get(weight.dtype, 0), weight.shape)
