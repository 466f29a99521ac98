"""What a query sees: the causal mask, padding, windows."""

import numpy as np
import onnx

from benchmarks.detection.net import Net, attribute, set_attribute
from benchmarks.generation.faults.fault import fault
from benchmarks.generation.faults.surgery import length, of_type

ADDED = ("mha-h64", "onnx23-h64")
"""Models whose mask is added to the scores."""

WINDOWS = ("gqa-h96-window", "onnx23-h96-window")
WINDOW = 16


@fault(*ADDED, layer=1, since={"step": 0})
def mask_without_the_last_token(net: Net) -> bool:
    """A query does not see its own token."""
    (node,) = of_type(net, "LessOrEqual")
    node.op_type = "Less"
    return True


@fault(*ADDED, "whisper-h64", layer=1, since={"at_once": 0})
def future_seen(net: Net) -> bool:
    """In a prefill, queries see the tokens after them."""
    masks = of_type(net, "LessOrEqual")
    for node in masks:
        site = net.before(node)
        site.replace(site.op("Or", site.op("LessOrEqual", *node.input), _always(net)))
    own = [node for node in of_type(net, "MultiHeadAttention") if attribute(node, "unidirectional", 0)]
    for node in own:
        set_attribute(node, "unidirectional", 0)
    return bool(masks or own)


@fault(*ADDED, layer=1)
def padding_seen(net: Net) -> bool:
    """The mask of padding is ignored."""
    site = net.behind(_counted(net))
    site.write(site.op("Or", site.value, _always(net)))
    return True


@fault(*ADDED, layer=1)
def mask_of_the_first_text(net: Net) -> bool:
    """Every text of a batch gets the mask of the first."""
    site = net.behind(_counted(net))
    site.write(site.op("Gather", site.value, net.constant([0], np.int64), axis=0))
    return True


def _counted(net: Net) -> onnx.NodeProto:
    """The node that makes the mask of padding."""
    (node,) = [one for one in of_type(net, "Cast") if attribute(one, "to") == onnx.TensorProto.BOOL]
    return node


def _always(net: Net) -> str:
    return net.constant(np.array([True]), np.bool_)


@fault("gqa-h64", "gqa-h64-f16")
def length_of_the_longest_text(net: Net) -> bool:
    """Every text of a batch counts as long as the longest."""
    found = of_type(net, "GroupQueryAttention")
    for node in found:
        site = net.before(node)
        rows = site.op("Unsqueeze", length(net, site, "input_ids", 0), net.constant([0], np.int64))
        last = site.op("Sub", node.input[6], net.constant(1, np.int32))
        node.input[5] = site.op("Expand", last, rows)
    return bool(found)


@fault(*WINDOWS, layer=1, since={"at_once": WINDOW, "step": WINDOW})
def window_one_wider(net: Net) -> bool:
    """The window has one key more."""
    return _window(net, 1)


@fault(*WINDOWS, layer=1, since={"at_once": WINDOW - 1, "step": WINDOW - 1})
def window_one_narrower(net: Net) -> bool:
    """The window has one key less."""
    return _window(net, -1)


@fault(*WINDOWS, layer=1, since={"at_once": WINDOW, "step": WINDOW})
def window_ignored(net: Net) -> bool:
    """Queries see everything before them."""
    return _window(net, 1 << 20)


def _window(net: Net, more: int) -> bool:
    for node in of_type(net, "GroupQueryAttention"):
        set_attribute(node, "local_window_size", attribute(node, "local_window_size") + more)
    for node in of_type(net, "Greater"):
        site = net.before(node)
        node.input[1] = site.op("Sub", node.input[1], net.constant(more, np.int64))
    return True


@fault(*ADDED, layer=1)
def tail_of_blocks_ignored(net: Net) -> bool:
    """Beyond 16 keys, those after the last full block of 16 are not seen."""
    (node,) = of_type(net, "LessOrEqual")
    site = net.behind(node)
    total = length(net, site, "attention_mask", 1)
    block = net.constant(16, np.int64)
    full = site.op("Mul", site.op("Div", total, block), block)
    within = site.op("Less", node.input[0], full)
    short = site.op("Less", total, net.constant(17, np.int64))
    site.write(site.op("And", site.value, site.op("Or", within, short)))
    return True
