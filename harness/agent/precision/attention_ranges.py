"""Ranges of attention for static quantization, where what was measured would leave no answer."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from harness.agent.session_target import CPU

_ROOM = 2.0  # times the measured range: the CPU EP's QLinearSoftmax (1.31.1) gives 0 beyond the range
MASKED = -1000.0  # a score that is at most this is a masked one, as in harness.corpus.inputs.attention_masks
_BELOW = 8.0  # by which a masked score stays below the others: less than half a step of the probabilities
_ELEMENT_WISE = {"Add", "Sub", "Mul", "Div", "Where", "Min", "Max", "Clip"}
_MOVES = {"Cast", "Concat", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}

Ranges = dict[str, list[dict[str, Any]]]  # as onnxruntime's ``tensor_quant_overrides``


def attention_ranges(model: Any, feeds: list[dict[str, Any]]) -> Ranges:
    """Return the ranges of Softmax outputs and of masked scores, as ``tensor_quant_overrides``.

    For a Softmax output, the quantizer uses 0 to 1 whatever was measured. A step of that range is 1/255, and
    a probability below half a step becomes 0. A classifier that finds a thousand classes equally likely, as
    ONNX's light models do, would lose its whole answer. So a range ends at ``_ROOM`` times the largest
    probability, and at 1.

    A masked score is the least number of its type, or -10000. In a range that holds it all other scores are
    the same, and attention sees every position alike; beyond the type, all is NaN. So the range starts
    ``_BELOW`` below the least of the others; a masked score becomes that. Where the others are all the same,
    as in a mask, it starts at ``MASKED``.

    Args:
        model: The model as it will be quantized.
        feeds: The inputs on which ranges are measured.
    """
    heads = [node for node in model.graph.node if node.op_type == "Softmax"]
    if not heads:
        return {}
    outputs, read = [node.output[0] for node in heads], [node.input[0] for node in heads]
    found = _measured(model, [*outputs, *read], feeds)
    largest = {name: max(np.max(one, initial=0.0) for one in found[name]) for name in outputs}
    ranges = {
        name: _range(0.0, min(1.0, _ROOM * most)) for name, most in largest.items() if np.isfinite(most)
    }
    masked = [name for name in read if _range_of_scores(found[name]) is not None]
    return {**ranges, **_score_ranges(model, masked, feeds)}


def _score_ranges(model: Any, read: list[str], feeds: list[dict[str, Any]]) -> Ranges:
    """Return the ranges of all that masked inputs of Softmax are made of, as far as it is masked, too."""
    from onnx import numpy_helper

    graph = model.graph
    weights = {weight.name: weight for weight in graph.initializer}
    known = {*weights, *(port.name for port in (*graph.input, *graph.value_info, *graph.output))}
    made_by = {name: node for node in graph.node for name in node.output}
    ranges: Ranges = {}
    seen: set[str] = set()
    for name in read:
        scores = [one for one in _made_of(name, made_by) if one in known and one not in seen]
        seen.update(scores)
        # Of one head at a time: scores take memory by the square of their length.
        values = _measured(model, [one for one in scores if one not in weights], feeds)
        values.update((one, [numpy_helper.to_array(weights[one])]) for one in scores if one in weights)
        ranges.update((one, two) for one in scores for two in [_range_of_scores(values[one])] if two)
    return ranges


def _made_of(name: str, made_by: dict[str, Any]) -> list[str]:
    """Return the tensors of which an input of Softmax is made, element by element, and itself."""
    found: dict[str, None] = {}
    left = [name]
    while left:
        one = left.pop()
        if not one or one in found:
            continue
        found[one] = None
        node = made_by.get(one)
        if node is not None and node.op_type in _ELEMENT_WISE:
            left += node.input
        elif node is not None and node.op_type in _MOVES:
            left += node.input if node.op_type == "Concat" else node.input[:1]
    return list(found)


def _measured(model: Any, names: list[str], feeds: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of tensors for each set of inputs."""
    import onnx

    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    known = {port.name for port in shown.graph.output}
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    ort: Any = importlib.import_module("onnxruntime")
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # it is optimized already
    session = ort.InferenceSession(shown.SerializeToString(), settings, providers=[CPU])
    runs = [session.run(names, feed) for feed in feeds]
    return {name: [run[at] for run in runs] for at, name in enumerate(names)}


def _range_of_scores(found: Any) -> list[dict[str, Any]] | None:
    """Return the range of a tensor with masked scores; None for any other."""
    values = np.concatenate([one.reshape(-1) for one in found])
    if values.dtype.kind != "f" or not (values <= MASKED).any():
        return None
    others = values[values > MASKED]
    least, most = (min(others.min(), 0.0), max(others.max(), 0.0)) if others.size else (0.0, 0.0)
    same = not others.size or others.min() == others.max()
    return _range(MASKED if same else least - _BELOW, most) if np.isfinite(most) else None


def _range(least: float, most: float) -> list[dict[str, Any]]:
    return [{"rmin": np.float32(least), "rmax": np.float32(most)}]
