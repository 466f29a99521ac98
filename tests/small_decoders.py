"""Decoders of a few nodes with a cache, for tests of the scenario ``generate``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PAST, PRESENT = "past_key_values.0.key", "present.0.key"
STATIC = 20
"""Positions of a cache of fixed length."""


def counting(folder: Path, *, forgets: bool = False, refuses: int = 0) -> None:
    """A decoder of sums: its logits are those of the sum of the tokens so far.

    Args:
        folder: Where it goes.
        forgets: Whether it adds 1 to the logits once the cache holds four positions, as no model should.
        refuses: The past length from which on it raises an error; 0 for never.
    """
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["embedded"]),
        helper.make_node("Unsqueeze", ["embedded", "one"], ["new"]),
        helper.make_node("Identity", [PAST], ["kept"]),
        helper.make_node("Concat", ["kept", "new"], [PRESENT], axis=2),
        helper.make_node("CumSum", [PRESENT, "two"], ["sums"]),
        helper.make_node("Shape", [PAST], ["length"], start=2, end=3),
        helper.make_node("Slice", ["sums", "length", "most", "two_1"], ["own"]),
        helper.make_node("Squeeze", ["own", "one"], ["right" if forgets or refuses else "logits"]),
    ]
    if forgets:
        nodes += [
            helper.make_node("Greater", ["length", "three"], ["late"]),
            helper.make_node("Cast", ["late"], ["wrong"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["right", "wrong"], ["logits"]),
        ]
    elif refuses:
        # A table of so many rows: beyond it, Gather refuses.
        nodes += [
            helper.make_node("Gather", ["zeros", "length"], ["nothing"]),
            helper.make_node("Add", ["right", "nothing"], ["logits"]),
        ]
    numbers = {"one": [1], "two": 2, "two_1": [2], "three": [3], "most": [1 << 40]}
    weights = [numpy_helper.from_array(np.array(one, np.int64), name) for name, one in numbers.items()]
    weights.append(numpy_helper.from_array(np.zeros(max(1, refuses), np.float32), "zeros"))
    _save(folder, nodes, weights)


def new_only(folder: Path) -> None:
    """A decoder whose cache output has the new positions alone, although it declares all of them."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["logits"]),
        helper.make_node("Unsqueeze", ["logits", "one"], ["new"]),
        helper.make_node("Slice", [PAST, "zero", "zero", "two"], ["none"]),
        helper.make_node("Concat", ["none", "new"], [PRESENT], axis=2),
    ]
    numbers = enumerate(("zero", "one", "two"))
    weights = [numpy_helper.from_array(np.array([number], np.int64), name) for number, name in numbers]
    _save(folder, nodes, weights)


def static(folder: Path, *, start: bool = False) -> None:
    """A decoder of sums with a cache of ``STATIC`` positions; ``cache_position`` tells where to write.

    Args:
        folder: Where it goes.
        start: Whether ``start_pos`` tells where the first token is written, in its place.
    """
    following = [
        helper.make_node("Shape", ["input_ids"], ["tokens"], start=1, end=2),
        helper.make_node("Squeeze", ["tokens"], ["count"]),
        helper.make_node("Add", ["start_pos", "count"], ["end"]),
        helper.make_node("Range", ["start_pos", "end", "step"], ["cache_position"]),
    ]
    nodes = [
        *(following if start else ()),
        helper.make_node("Gather", ["table", "input_ids"], ["embedded"]),
        helper.make_node("OneHot", ["cache_position", "length", "bits"], ["written"]),
        helper.make_node("Transpose", ["written"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["turned", "embedded"], ["spread"]),
        helper.make_node("Unsqueeze", ["spread", "one"], ["new"]),
        helper.make_node("ReduceSum", ["turned", "one"], ["taken"]),
        helper.make_node("Sub", ["unit", "taken"], ["free"]),
        helper.make_node("Mul", [PAST, "free"], ["kept"]),
        helper.make_node("Add", ["kept", "new"], [PRESENT]),
        helper.make_node("Unsqueeze", ["attention_mask", "sides"], ["columns"]),
        helper.make_node("Cast", ["columns"], ["counted"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [PRESENT, "counted"], ["seen"]),
        helper.make_node("CumSum", ["seen", "two"], ["sums"]),
        helper.make_node("Gather", ["sums", "cache_position"], ["own"], axis=2),
        helper.make_node("Squeeze", ["own", "one"], ["logits"]),
    ]
    numbers = {"one": [1], "two": 2, "sides": [1, 3], "length": STATIC, "step": 1}
    weights = [numpy_helper.from_array(np.array(each, np.int64), name) for name, each in numbers.items()]
    weights.append(numpy_helper.from_array(np.array([0, 1], np.float32), "bits"))
    weights.append(numpy_helper.from_array(np.array(1, np.float32), "unit"))
    value = helper.make_tensor_value_info
    told = [
        value("start_pos", TensorProto.INT64, [])
        if start
        else value("cache_position", TensorProto.INT64, ["sequence"]),
        value("attention_mask", TensorProto.INT64, ["batch", STATIC]),
    ]
    _save(folder, nodes, weights, told, lengths=(STATIC, STATIC))


def _save(
    folder: Path,
    nodes: Sequence[onnx.NodeProto],
    weights: Sequence[onnx.TensorProto],
    told: Sequence[onnx.ValueInfoProto] = (),
    lengths: tuple[str | int, str | int] = ("past", "total"),
) -> None:
    """Write a model of four tokens, which ``table`` embeds, with one tensor of cache and further inputs."""
    value = helper.make_tensor_value_info
    inputs = [
        value("input_ids", TensorProto.INT64, ["batch", "sequence"]),
        value(PAST, TensorProto.FLOAT, ["batch", 1, lengths[0], 4]),
        *told,
    ]
    outputs = [
        value("logits", TensorProto.FLOAT, ["batch", "sequence", 4]),
        value(PRESENT, TensorProto.FLOAT, ["batch", 1, lengths[1], 4]),
    ]
    table = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    weights = [numpy_helper.from_array(table, "table"), *weights]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
