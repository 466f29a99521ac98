"""Speech recognisers without transformers: a streaming LSTM and a bidirectional GRU."""

from typing import Any

import numpy as np

from harness.annex.made.zoo.graph_builder import (
    BATCH_DIM,
    FLOAT,
    INT32,
    Architecture,
    GraphBuilder,
    SymbolicDim,
)
from harness.annex.made.zoo.inputs import activations, log_mel
from harness.annex.made.zoo.layers import length, linear
from harness.core.values.value import Array

_FRAMES = SymbolicDim("frames", 24)

_MELS = 40

_TOKENS = 32
"""Characters, the blank included."""

_GATES = {"LSTM": 4, "GRU": 3}


def build_lstm(g: GraphBuilder, *, hidden: int, layers: int) -> None:
    """Add layers of one direction, each with its state as inputs and outputs."""
    x = _front(g, g.input("features", (BATCH_DIM, _FRAMES, _MELS), log_mel), hidden)
    states = []
    for layer in range(layers):
        before = [
            g.input(f"{part}_{layer}", (1, BATCH_DIM, hidden), activations) for part in ("hidden", "cell")
        ]
        with g.scope(f"layer{layer}"):
            weights = _weights(g, "LSTM", (hidden, hidden), directions=1)
            y, *after = g.ops(3, "LSTM", x, *weights, "", *before, hidden_size=hidden)
            x = g.op("Squeeze", y, g.ints(1))
            states.append(after)
    _finish(g, x, hidden)
    for layer, after in enumerate(states):
        for part, state in zip(("hidden", "cell"), after, strict=True):
            g.output(f"next_{part}_{layer}", state, "float32", (1, BATCH_DIM, hidden))


def build_gru(g: GraphBuilder, *, hidden: int, layers: int) -> None:
    """Add layers of both directions over recordings of several lengths."""
    features = g.input("features", (BATCH_DIM, _FRAMES, _MELS), log_mel)
    shares = g.input("lengths", (BATCH_DIM,), _shares)
    with g.scope("lengths"):
        frames = g.op("Cast", length(g, features, 1), to=FLOAT)
        lengths = g.op("Cast", g.op("Ceil", g.op("Mul", shares, frames)), to=INT32)
    x = _front(g, features, hidden)
    before = hidden
    for layer in range(layers):
        with g.scope(f"layer{layer}"):
            weights = _weights(g, "GRU", (before, hidden), directions=2)
            kind: dict[str, Any] = {"direction": "bidirectional", "linear_before_reset": 1}
            (y,) = g.ops(1, "GRU", x, *weights, lengths, hidden_size=hidden, **kind)
            x = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, 2 * hidden))
        before = 2 * hidden
    _finish(g, x, before)


def _front(g: GraphBuilder, features: str, hidden: int) -> str:
    """Add a causal convolution over time, with a result ``(frames, N, hidden)`` for recurrent operators."""
    with g.scope("front"):
        x = g.op("Transpose", features, perm=[0, 2, 1])
        x = g.op("Pad", x, g.ints(0, 0, 2, 0, 0, 0), g.scalar(0))
        weight = g.normal("weight", (hidden, _MELS, 3), (2 / (3 * _MELS)) ** 0.5)
        x = g.op("Conv", x, weight, g.normal("bias", (hidden,), 0.05), kernel_shape=[3])
        return g.op("Transpose", g.op("Relu", x), perm=[2, 0, 1])


def _weights(g: GraphBuilder, cell: str, sizes: tuple[int, int], directions: int) -> list[str]:
    before, hidden = sizes
    rows = _GATES[cell] * hidden
    return [
        g.normal("input", (directions, rows, before), (1 / before) ** 0.5),
        g.normal("recurrence", (directions, rows, hidden), (1 / hidden) ** 0.5),
        g.normal("bias", (directions, 2 * rows), 0.1),
    ]


def _finish(g: GraphBuilder, x: str, width: int) -> None:
    with g.scope("head"):
        scores = linear(g, g.op("Transpose", x, perm=[1, 0, 2]), (width, _TOKENS), gain=8.0)
    g.output(
        "log_probabilities", g.op("LogSoftmax", scores, axis=-1), "float32", (BATCH_DIM, _FRAMES, _TOKENS)
    )


def _shares(_random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return the length of each recording over that of the longest, the first one, float32."""
    return np.where(np.arange(*shape) == 0, 1, 0.75).astype(np.float32)


SPEECH_LSTM = Architecture(
    name="speech-lstm",
    what="streaming speech recogniser: Pad, Conv over time, LSTM with its state as inputs and outputs",
    build=build_lstm,
    sizes={"small": {"hidden": 48, "layers": 2}, "base": {"hidden": 256, "layers": 3}},
)

SPEECH_GRU = Architecture(
    name="speech-gru",
    what="speech recogniser: Pad, Conv over time, GRU in both directions with the length of each recording",
    build=build_gru,
    sizes={"small": {"hidden": 32, "layers": 2}, "base": {"hidden": 192, "layers": 3}},
)
