"""A provider of 16-bit floats, made of the CPU provider: every intermediate result is rounded."""

import ml_dtypes
import numpy as np
import onnx

from benchmarks.detection.faults.rounding import round_to_bits
from benchmarks.detection.net import Array, Net

LARGEST = 65504.0
"""The largest finite float16, at which converters cut off."""

LARGEST_BFLOAT16 = 2.0**127 * (2 - 2.0**-7)
"""The largest finite bfloat16."""

BFLOAT16_BITS = 8
"""Of the significand, the hidden bit included."""


def reduce_precision(net: Net, precision: str) -> None:
    """Round weights, inputs and the results of all nodes of the main graph to ``float16`` or ``bfloat16``."""
    fed: dict[str, str] = {}
    for node in list(net.nodes):
        for index, name in enumerate(node.input):
            weight = net.weight(name)
            if net.is_float(name) and (weight is not None or net.producer(name) is None):
                if name not in fed:
                    fed[name] = _rounded_weight(net, weight, precision) if weight is not None else name
                node.input[index] = fed[name]
    for node in list(net.nodes):
        for index, name in enumerate(node.output):
            if net.is_float(name):
                site = net.behind(node, index)
                if precision == "bfloat16":
                    site.write(round_to_bits(net, site, site.value, BFLOAT16_BITS))
                else:
                    value = site.op("Clip", site.value, net.scalar(-LARGEST), net.scalar(LARGEST))
                    value = site.op("Cast", value, to=onnx.TensorProto.FLOAT16)
                    site.write(site.op("Cast", value, to=onnx.TensorProto.FLOAT))


def _rounded_weight(net: Net, weight: Array, precision: str) -> str:
    dtype = np.dtype(np.float16 if precision == "float16" else ml_dtypes.bfloat16)
    largest = LARGEST if precision == "float16" else LARGEST_BFLOAT16
    return net.constant(weight.clip(-largest, largest).astype(dtype).astype(np.float32))
