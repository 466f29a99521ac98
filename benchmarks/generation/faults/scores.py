"""The scores of attention: scale, caps, heads, sinks, range."""

import numpy as np
from onnx import TensorProto

from benchmarks.detection.net import Net, attribute, drop_attribute, set_attribute
from benchmarks.generation.faults.fault import AFTER, fault
from benchmarks.generation.faults.surgery import (
    attentions,
    of_type,
    past_length,
    reversed_axis,
    rounded,
    spoil_where,
)

CAPPED = ("gqa-h256-cap", "onnx23-h80-cap")


@fault("gqa-h64", "mha-h64", "onnx23-h64", layer=1, since={"step": 1})
def scale_missing(net: Net) -> bool:
    """Scores are not divided by the root of the head's size."""
    return _scaled(net, 1.0)


@fault("gqa-h128", layer=1, since={"step": 1})
def scale_without_root(net: Net) -> bool:
    """Scores are divided by the head's size, not by its root."""
    return _scaled(net, 1 / 128)


@fault("gqa-h80", layer=1, since={"step": 1})
def scale_of_another_head_size(net: Net) -> bool:
    """Scores have the scale of heads of 96, to which those of 80 were padded."""
    return _scaled(net, 96**-0.5)


def _scaled(net: Net, scale: float) -> bool:
    for node in attentions(net):
        set_attribute(node, "scale", scale)
    return True


@fault("gqa-h64-nodes", layer=1)
def grouped_heads_permuted(net: Net) -> bool:
    """Heads of queries take turns at the heads of keys, for following each other."""
    node = attentions(net)[0]
    heads, groups = attribute(node, "num_heads"), attribute(node, "kv_num_heads")
    order = np.arange(heads).reshape(-1, groups).T.reshape(-1)
    site = net.before(node)
    shape = net.constant([0, 0, heads, -1], np.int64)
    flat = net.constant([0, 0, -1], np.int64)
    query = site.op("Gather", site.op("Reshape", node.input[0], shape), net.constant(order), axis=2)
    node.input[0] = site.op("Reshape", query, flat)
    site = net.behind(node)
    back = net.constant(np.argsort(order))
    mixed = site.op("Gather", site.op("Reshape", site.value, shape), back, axis=2)
    site.write(site.op("Reshape", mixed, flat))
    return True


@fault("gqa-h64", "mha-h64", layer=1, since={"step": 0})
def heads_of_the_result_reversed(net: Net) -> bool:
    """The heads of the first layer's attention come in the reverse order."""
    node = attentions(net)[0]
    site = net.behind(node)
    shape = net.constant([0, 0, attribute(node, "num_heads"), -1], np.int64)
    mixed = reversed_axis(net, site, site.op("Reshape", site.value, shape), 2)
    site.write(site.op("Reshape", mixed, net.constant([0, 0, -1], np.int64)))
    return True


@fault(*CAPPED, layer=1, since={"step": 1})
def soft_cap_missing(net: Net) -> bool:
    """Scores have no soft cap."""
    for node in attentions(net):
        drop_attribute(node, "softcap")
    return True


@fault(*CAPPED, layer=1, since={"step": 1})
def soft_cap_of_another_model(net: Net) -> bool:
    """The soft cap of scores is 50, as in Gemma 2, for 4."""
    for node in attentions(net):
        set_attribute(node, "softcap", 50.0)
    return True


@fault("gqa-h256-cap", layer=AFTER, since={"step": 0})
def cap_of_logits_missing(net: Net) -> bool:
    """Logits have no cap."""
    (node,) = of_type(net, "Tanh")
    node.op_type = "Identity"
    return True


@fault("gqa-h64-sinks", layer=1, since={"step": 0})
def sinks_ignored(net: Net) -> bool:
    """The softmax has no sinks."""
    for node in attentions(net):
        node.input[11] = ""
    return True


@fault("gqa-h64-sinks", layer=1, since={"step": 0})
def sink_without_exponential(net: Net) -> bool:
    """The logarithm of the sinks is taken for the sinks."""
    for node in attentions(net):
        weight = net.weight(node.input[11])
        if weight is None:
            return False
        node.input[11] = net.constant(np.log(np.abs(weight) + 1e-3).astype(weight.dtype))
    return True


@fault("mha-h64-f16", "mha-h64", layer=1)
def softmax_overflows(net: Net) -> bool:
    """A softmax in float16 overflows: a query with a score above 6 gets NaN from the first layer."""
    node = attentions(net)[0]
    heads = attribute(node, "num_heads")
    site = net.behind(node)
    shape = net.constant([0, 0, heads, -1], np.int64)
    query = site.op("Transpose", site.op("Reshape", node.input[0], shape), perm=[0, 2, 1, 3])
    key = site.op("Transpose", node.output[1], perm=[0, 1, 3, 2])
    full = {"to": TensorProto.FLOAT}
    scores = site.op("MatMul", site.op("Cast", query, **full), site.op("Cast", key, **full))
    scores = site.op("Mul", scores, net.scalar(attribute(node, "scale")))
    scores = site.op("Add", scores, site.op("Cast", node.input[5], **full))
    largest = site.op("ReduceMax", scores, net.constant([1, 3], np.int64), keepdims=0)
    over = site.op("Unsqueeze", site.op("Greater", largest, net.scalar(6)), net.constant([2], np.int64))
    spoil_where(net, site, over)
    return True


@fault("gqa-h64", "mha-h64", layer=1, since={"step": 0})
def attention_in_bfloat16(net: Net) -> bool:
    """What the first layer's attention gives is rounded to bfloat16."""
    site = net.behind(attentions(net)[0])
    site.write(rounded(site, site.value, TensorProto.BFLOAT16))
    return True


@fault("gqa-h64", "onnx23-h64", layer=1, since={"step": 32, "from_first": 32})
def attention_lost_in_long_texts(net: Net) -> bool:
    """From 32 cached positions on, the first layer's attention gives zeros."""
    node = attentions(net)[0]
    site = net.behind(node)
    few = site.op("Less", past_length(net, site), net.constant(32, np.int64))
    site.write(site.op("Mul", site.value, site.op("Cast", few, to=TensorProto.FLOAT)))
    return True
