"""Recurrent layers: directions, gates, states, lengths."""

import numpy as np
import onnx

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.net import Net, attribute, set_attribute

CELLS = ("LSTM", "GRU", "RNN")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
LENGTHS, STATE = 4, 5
"""Places of these inputs, the same for all three operators."""


@fault("LSTM", "GRU")
def gates_mixed_up(net: Net, node: onnx.NodeProto) -> bool:
    """The last two gates are swapped: another framework's order."""
    gates = GATES[node.op_type]
    order = [*range(gates - 2), gates - 1, gates - 2]
    for index in (1, 2, 3):
        weight = net.weight(node.input[index]) if len(node.input) > index else None
        if weight is None:
            return False
        count = 2 * gates if index == 3 else gates  # the bias holds those of input and recurrence
        full = order + [gates + one for one in order] if index == 3 else order
        parts = np.split(weight, count, axis=1)
        node.input[index] = net.constant(np.concatenate([parts[one] for one in full], axis=1))
    return True


@fault(*CELLS)
def directions_swapped(net: Net, node: onnx.NodeProto) -> bool:
    """Forward and backward are swapped, in their weights or as such."""
    if attribute(node, "direction", b"forward") != b"bidirectional":
        set_attribute(node, "direction", "reverse")
        return True
    for index in (1, 2, 3):
        weight = net.weight(node.input[index]) if len(node.input) > index else None
        if weight is not None:
            node.input[index] = net.constant(np.ascontiguousarray(weight[::-1]))
    return True


@fault(*CELLS)
def recurrent_bias_dropped(net: Net, node: onnx.NodeProto) -> bool:
    """The bias of the recurrence is not added."""
    bias = net.weight(node.input[3]) if len(node.input) > 3 else None
    if bias is None:
        return False
    bias = bias.copy()
    bias[:, bias.shape[1] // 2 :] = 0
    node.input[3] = net.constant(bias)
    return True


@fault("GRU")
def linear_before_reset_flipped(_net: Net, node: onnx.NodeProto) -> bool:
    """A GRU resets before the recurrence for behind it, or the other way round."""
    set_attribute(node, "linear_before_reset", 1 - attribute(node, "linear_before_reset", 0))
    return True


@fault(*CELLS)
def lengths_ignored(_net: Net, node: onnx.NodeProto) -> bool:
    """The lengths of the sequences are not read."""
    if len(node.input) <= LENGTHS or not node.input[LENGTHS]:
        return False
    node.input[LENGTHS] = ""
    return True


@fault(*CELLS)
def state_ignored(_net: Net, node: onnx.NodeProto) -> bool:
    """A recurrent layer starts from 0 for the state that it is given."""
    if len(node.input) <= STATE or not node.input[STATE]:
        return False
    node.input[STATE] = ""
    return True


@fault("LSTM")
def forget_gate_biased(net: Net, node: onnx.NodeProto) -> bool:
    """The forget gate gets 1 added, as some frameworks do on their own."""
    bias = net.weight(node.input[3]) if len(node.input) > 3 else None
    if bias is None:
        return False
    bias = bias.copy()
    hidden = bias.shape[1] // 8
    bias[:, 2 * hidden : 3 * hidden] += 1
    node.input[3] = net.constant(bias)
    return True
