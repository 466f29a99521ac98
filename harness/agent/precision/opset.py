"""Models of older opsets, brought to the form that a quantizer needs."""

from __future__ import annotations

from typing import Any

WEIGHTS_APART = 4  # the first IR version in which weights are not inputs, too, which nobody feeds


def at_least(model: Any, opset: int) -> Any:
    """The model in an opset of ONNX's own domain that is not lower than that asked for."""
    from onnx import version_converter

    own = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not own or own[0] >= opset:
        return model
    raised = version_converter.convert_version(model, opset)
    raised.ir_version = max(raised.ir_version, model.ir_version, WEIGHTS_APART)
    # Else calibration would ask for each of them.
    weights = {tensor.name for tensor in raised.graph.initializer}
    fed = [port for port in raised.graph.input if port.name not in weights]
    del raised.graph.input[:]
    raised.graph.input.extend(fed)
    return raised
