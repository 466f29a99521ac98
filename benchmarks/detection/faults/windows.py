"""Windows over space: padding, rounding of sizes, coordinates."""

import numpy as np
import onnx

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.net import Net, attribute, set_attribute

POOLS = ("MaxPool", "AveragePool")


@fault("Conv", *POOLS)
def pads_shifted(_net: Net, node: onnx.NodeProto) -> bool:
    """Padding goes to the other end, as with SAME_LOWER for SAME_UPPER."""
    pads = list(attribute(node, "pads", ()))
    if not any(pads):
        return False
    half = len(pads) // 2
    before, after = pads[:half], pads[half:]
    if before == after:
        before, after = [max(0, one - 1) for one in before], [one + (one > 0) for one in after]
    else:
        before, after = after, before
    set_attribute(node, "pads", before + after)
    return True


@fault("Pad")
def pad_at_the_end(net: Net, node: onnx.NodeProto) -> bool:
    """Pad adds at the end of an axis what belongs before it."""
    pads = net.weight(node.input[1])
    if pads is None:
        return False
    half = len(pads) // 2
    if (pads[:half] == pads[half:]).all():
        return False
    node.input[1] = net.constant(np.concatenate([pads[half:], pads[:half]]))
    return True


@fault("Pad")
def pad_value_ignored(net: Net, node: onnx.NodeProto) -> bool:
    """Pad repeats the edge."""
    if attribute(node, "mode", b"constant") != b"constant":
        return False
    set_attribute(node, "mode", "edge")
    del node.input[2:]
    return net.is_float(node.input[0])


@fault("AveragePool")
def count_include_pad_flipped(_net: Net, node: onnx.NodeProto) -> bool:
    """A mean counts the padding where it should not, or does not where it should."""
    if not any(attribute(node, "pads", ())):
        return False
    set_attribute(node, "count_include_pad", 1 - attribute(node, "count_include_pad", 0))
    return True


@fault(*POOLS)
def ceil_mode_ignored(net: Net, node: onnx.NodeProto) -> bool:
    """ceil_mode is ignored: the last windows stay as they were allocated, 0."""
    if not attribute(node, "ceil_mode", 0):
        return False
    value = net.values[node.output[0]]
    kept = np.zeros(value.shape, bool)
    kept[tuple(slice(size - (axis > 1)) for axis, size in enumerate(value.shape))] = True
    site = net.behind(node)
    site.write(site.op("Where", net.constant(kept), site.value, net.scalar(0)))
    return True


@fault("MaxPool")
def pool_pads_with_zero(net: Net, node: onnx.NodeProto) -> bool:
    """A maximum sees the padding as 0."""
    pads = list(attribute(node, "pads", ()))
    if not any(pads) or attribute(node, "ceil_mode", 0):
        return False
    half = len(pads) // 2
    site = net.before(node)
    around = net.constant([0, 0, *pads[:half], 0, 0, *pads[half:]], np.int64)
    node.input[0] = site.op("Pad", node.input[0], around, net.scalar(0))
    set_attribute(node, "pads", [0] * len(pads))
    return True


@fault("MaxPool")
def window_cut(net: Net, node: onnx.NodeProto) -> bool:
    """A maximum leaves the last column of its window out."""
    kernel = list(attribute(node, "kernel_shape"))
    if kernel[-1] < 2 or attribute(node, "ceil_mode", 0) or any(attribute(node, "pads", ())):
        return False
    x, site = node.input[0], net.before(node)
    width = net.values[x].shape[-1]
    cut = [net.constant([number], np.int64) for number in (0, width - 1, -1)]
    kernel[-1] -= 1
    set_attribute(node, "kernel_shape", kernel)
    node.input[0] = site.op("Slice", x, *cut)
    return True


@fault("Resize")
def resize_coordinates(_net: Net, node: onnx.NodeProto) -> bool:
    """Resize maps coordinates in another mode."""
    mode = attribute(node, "coordinate_transformation_mode", b"half_pixel")
    set_attribute(
        node, "coordinate_transformation_mode", "half_pixel" if mode == b"asymmetric" else "asymmetric"
    )
    return True


@fault("Resize")
def resize_nearest(net: Net, node: onnx.NodeProto) -> bool:
    """Resize takes the nearest element for an interpolation, or the next one for the nearest."""
    if attribute(node, "mode", b"nearest") == b"nearest":
        kind = attribute(node, "nearest_mode", b"round_prefer_floor")
        set_attribute(node, "nearest_mode", "ceil" if kind in {b"floor", b"round_prefer_floor"} else "floor")
    else:
        set_attribute(node, "mode", "nearest")
    return net.is_float(node.input[0])
