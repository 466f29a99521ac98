"""A model whose large weights stay in the file that holds them: what is derived from it is small."""

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.corpus.external import make_external
from harness.corpus.protos import parse_proto

if TYPE_CHECKING:
    import onnx

WEIGHTS_FILE = "weights.onnx"
"""The copy of a model's file beside what is derived from it."""

LARGE = 1 << 20
"""Bytes of a model from which on it is worth while."""

SMALLEST = 1 << 16
"""Bytes from which on a weight stays where it is."""


def without_own_weights(
    model: "onnx.ModelProto", file: Path, is_kept: "Callable[[onnx.TensorProto], bool]" = lambda _: False
) -> "onnx.ModelProto":
    """Return a model that reads its large weights from a copy of its own file, ``WEIGHTS_FILE`` beside it.

    Args:
        model: The content of the file, which this call changes.
        file: An ONNX model.
        is_kept: Whether a weight stays in the model.

    Returns:
        A weight whose bytes are not found in the file stays in the model, too.
    """
    import onnx

    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = 0
        for weight in model.graph.initializer:
            if weight.ByteSize() < SMALLEST or not weight.HasField("raw_data") or is_kept(weight):
                continue
            # Mostly the next bytes but few: a serialized model has its weights in their order.
            found = content.find(weight.raw_data, at)
            if found >= 0:
                at = found + len(weight.raw_data)
                weight.ClearField("raw_data")
                make_external(weight, WEIGHTS_FILE, found, at - found)
    # Cleared fields keep their memory as long as their message.
    lean: onnx.ModelProto = parse_proto(onnx.ModelProto, model.SerializeToString())
    return lean
