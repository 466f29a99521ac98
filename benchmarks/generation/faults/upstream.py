"""The six failures in shipped products, planted as they are described there."""

import numpy as np

from benchmarks.detection.net import Array, Net
from benchmarks.generation.faults.fault import fault
from benchmarks.generation.faults.surgery import attentions, length, of_type, spoil_where


@fault("gqa-h64-norm", layer=0, since={"step": 0}, upstream="onnxruntime #27079")
def buffer_pointer_of_attention(net: Net) -> bool:
    """A pointer is wrong before the attention: values come from the buffer of keys."""
    for node in attentions(net):
        node.input[2] = node.input[1]
    return True


@fault("gqa-h64-f16", layer=0, since={"step": 0}, upstream="onnxruntime #29739")
def fused_normalization_wrong(net: Net) -> bool:
    """Fused normalizations give what is not normalized, nor summed with the skip."""
    for node in of_type(net, "SimplifiedLayerNormalization"):
        net.before(node).replace(node.input[0])
    for node in of_type(net, "SkipSimplifiedLayerNormalization"):
        net.behind(node).write(node.input[1])
    return True


@fault("mha-h64", "gqa-h64-f16", layer=1, since={"step": 0, "from_first": 5}, upstream="onnxruntime #28195")
def nan_from_length_6_on(net: Net) -> bool:
    """From 6 tokens on, the first layer's attention gives NaN."""
    node = attentions(net)[0]
    site = net.behind(node)
    total = length(net, site, "attention_mask", 1)
    spoil_where(net, site, site.op("Greater", total, net.constant(5, np.int64)))
    return True


@fault("gqa-h64-int4", "gqa-h64-int8", layer=0, since={"step": 0}, upstream="transformers.js #1728")
def quantized_products_orthogonal(net: Net) -> bool:
    """Weights of 4 and 8 bits are read block by block for row by row: no error, and cosines near 0."""

    def change(weight: Array) -> Array:
        rows, blocks, size = weight.shape
        return weight.reshape(blocks, rows, size).transpose(1, 0, 2)

    nodes = of_type(net, "MatMulNBits")
    for node in nodes:
        weight = net.weight(node.input[1])
        if weight is None:
            return False
        node.input[1] = net.constant(np.ascontiguousarray(change(weight)))
    return bool(nodes)
