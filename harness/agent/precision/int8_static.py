"""Static quantization: eight bits for weights and activations, QDQ, ranges measured on the model's inputs."""

from __future__ import annotations

import os
from typing import Any

from harness.agent.precision.attention_ranges import attention_ranges
from harness.agent.precision.kept import kept_nodes
from harness.agent.precision.weights import at_least, generated_bytes
from harness.agent.system import scratch_folder
from harness.agent.target_errors import DoesNotApplyError

NOTHING = "no operator of it would be quantized"
OPSET = 13  # the first in which QuantizeLinear has an axis
_LEAST_RANGE = 1e-4  # of an activation, so that a constant one has a scale; as in QNN's own recipe
_QUANTIZED = {"QuantizeLinear", "DequantizeLinear"}  # on these, onnxruntime's quantizer may never end
PER_CHANNEL = ("Conv", "ConvTranspose")  # every integer runtime takes their weights by channel
_FOLDED_LIMIT = 128 << 20  # bytes of generated weights up to which the model is optimized first


def converted(model: Any, feeds: list[dict[str, Any]]) -> Any:
    """Return the whole model quantized, with the configuration of onnxruntime's ``get_qdq_config``.

    Activations and weights are uint8, as in QNN's own recipe. Products of uint8 and int8 saturate at 16 bits
    on x86-64 processors without VNNI, in the CPU EP and in OpenVINO (mobilenet of the zoo: a relative error
    of 0.12 instead of 0.014), so the right result would depend on the machine. Activation functions stay in
    the graph, so that the provider computes them, although their ranges alone would suffice.
    """
    import onnx
    from onnxruntime.quantization.quant_utils import QuantType
    from onnxruntime.quantization.quantize import get_qdq_config, quantize
    from onnxruntime.quantization.shape_inference import quant_pre_process

    operators = {node.op_type for node in model.graph.node}
    if operators & _QUANTIZED:
        raise DoesNotApplyError("it is quantized already")
    with scratch_folder() as folder:
        given, prepared, path = (
            os.path.join(folder, name + ".onnx") for name in ("given", "prepared", "made")
        )
        onnx.save(at_least(model, OPSET), given)
        # Given a model in memory, it would also lose weights that are inputs.
        as_it_is = generated_bytes(model) > _FOLDED_LIMIT
        quant_pre_process(given, prepared, skip_symbolic_shape=True, skip_optimization=as_it_is)
        reader: Any = _Feeds(feeds)
        recipe = get_qdq_config(
            prepared,
            reader,
            per_channel=not operators.isdisjoint(PER_CHANNEL),
            keep_removable_activations=True,
            min_real_range=_LEAST_RANGE,
            weight_type=QuantType.QUInt8,
            tensor_quant_overrides=attention_ranges(onnx.load(prepared), feeds),
            nodes_to_exclude=kept_nodes(model) or None,
        )
        quantize(prepared, path, recipe)
        return onnx.load(path)


def reduced_nodes(model: Any) -> int:
    """Return how many nodes read a quantized value."""
    levels = {name for node in model.graph.node if node.op_type == "DequantizeLinear" for name in node.output}
    return sum(
        node.op_type != "QuantizeLinear" and not levels.isdisjoint(node.input) for node in model.graph.node
    )


class _Feeds:
    """A calibration data reader of onnxruntime: one set of inputs after another, then None."""

    def __init__(self, feeds: list[dict[str, Any]]) -> None:
        self.left = iter(feeds)

    def get_next(self) -> dict[str, Any] | None:
        """Return the next set."""
        return next(self.left, None)

    def __iter__(self) -> Any:
        return self.left
