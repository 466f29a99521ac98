"""The other parts: normalization, experts, feed-forward parts, the residual stream."""

import numpy as np
from onnx import TensorProto

from benchmarks.detection.net import Net, attribute, set_attribute
from benchmarks.generation.faults.fault import AFTER, fault
from benchmarks.generation.faults.surgery import in_decode, of_type, rounded

NORMS = ("RMSNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization")
MIXED = ("moe-h64", "moe-h64-int4")


@fault("gqa-h64", "onnx23-h64", layer=0, since={"step": 0})
def epsilon_hundredfold(net: Net) -> bool:
    """Normalizations have an epsilon of 0.001 for 0.00001."""
    for node in of_type(net, *NORMS):
        set_attribute(node, "epsilon", attribute(node, "epsilon") * 100)
    return True


@fault("gqa-h64", "gqa-h64-int4", layer=1, since={"step": 0})
def sum_without_the_skip(net: Net) -> bool:
    """In the second layer, what goes on beside the normalization lacks the sum so far."""
    node = of_type(net, "SkipSimplifiedLayerNormalization")[0]
    site = net.behind(node, 3)
    site.write(node.input[1])
    return True


@fault("gqa-h64-norm", layer=0, since={"step": 0})
def norm_over_all_heads(net: Net) -> bool:
    """Keys are normalized over all heads together."""
    node = of_type(net, "SimplifiedLayerNormalization")[2]
    site = net.behind(node)
    square = site.op("Mul", node.input[0], node.input[0])
    power = site.op("ReduceMean", square, net.constant([1, 2], np.int64))
    site.write(site.op("Mul", node.input[0], site.op("Reciprocal", site.op("Sqrt", power))))
    return True


@fault(*MIXED, layer=1, since={"step": 0})
def one_expert_for_two(net: Net) -> bool:
    """Only the best expert is asked."""
    return _experts(net, "k", 1)


@fault("moe-h64", layer=1, since={"step": 0})
def routing_not_normalized(net: Net) -> bool:
    """The shares of the chosen experts do not add up to 1."""
    return _experts(net, "normalize_routing_weights", 0)


@fault(*MIXED, layer=1, since={"step": 0})
def activation_without_its_factor(net: Net) -> bool:
    """The gate's factor of 1.702 is 1."""
    return _experts(net, "activation_alpha", 1.0)


def _experts(net: Net, name: str, value: float) -> bool:
    nodes = of_type(net, "MoE", "QMoE")
    for node in nodes:
        set_attribute(node, name, value)
    return bool(nodes)


@fault("moe-h64", layer=1, since={"step": 0})
def gate_and_value_swapped(net: Net) -> bool:
    """Gate and value of the experts are taken for each other."""
    for node in of_type(net, "MoE"):
        for index in (2, 3):
            weight = net.weight(node.input[index])
            if weight is None:
                return False
            pairs = weight.reshape(weight.shape[0], -1, 2, *weight.shape[2:])
            node.input[index] = net.constant(pairs[:, :, ::-1].reshape(weight.shape))
    return True


@fault("moe-h64", layer=1)
def scores_of_the_next_expert(net: Net) -> bool:
    """Each expert is chosen by the score of the next."""
    for node in of_type(net, "MoE"):
        site = net.before(node)
        order = net.constant(np.roll(np.arange(4), -1))
        node.input[1] = site.op("Gather", node.input[1], order, axis=1)
    return True


@fault("whisper-h64", layer=1, since={"step": 0})
def gelu_by_tanh(net: Net) -> bool:
    """Gelu is computed by its approximation with the hyperbolic tangent."""
    for node in of_type(net, "Gelu"):
        set_attribute(node, "approximate", "tanh")
    return True


@fault("gqa-h64", "onnx23-h64", layer=AFTER, since={"step": 0})
def last_product_in_bfloat16(net: Net) -> bool:
    """Logits are rounded to bfloat16."""
    site = net.behind(net.nodes[-1])
    site.write(rounded(site, site.value, TensorProto.BFLOAT16))
    return True


@fault("gqa-h64", "onnx23-h64", layer=AFTER, since={"step": 32, "from_first": 1})
def last_part_lost_in_decode(net: Net) -> bool:
    """With a cache, the feed-forward part of the last layer gives zeros."""
    node = next(one for one in of_type(net, "MatMul") if "layers.1/mlp/down_proj" in one.name)
    site = net.behind(node)
    kept = site.op("Cast", site.op("Not", in_decode(net, site)), to=TensorProto.FLOAT)
    site.write(site.op("Mul", site.value, kept))
    return True
