"""The models that faults are planted in: the zoo's, transformers of three depths, two of rare operators."""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import onnx

from benchmarks.detection.net import Array
from harness.annex.made.zoo import bert, gpt
from harness.annex.made.zoo.graph_builder import BATCH_DIM, FLOAT, GraphBuilder
from harness.annex.made.zoo.inputs import activations, images
from harness.annex.made.zoo.layers import batch_norm, conv, gelu, layer_norm, linear, self_attention
from harness.annex.made.zoo.roster import zoo_models
from harness.core.values.value import Tensor, tensor
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.protos import tensor_proto
from harness.corpus.suites.suite import open_file

ZOO = {
    "mnist": (12, 22), "resnet": (17, 22), "mobilenet": (17, 22), "efficientnet": (17, 22), "unet": (17, 22),
    "vit": (17, 22), "bert": (17, 22), "gpt": (17, 22), "llama": (17, 23), "speech-lstm": (17, 22),
    "speech-gru": (17, 22), "detector": (17, 22), "diffusion": (17, 22), "int8-cnn": (17, 22),
    "int4-mlp": (21, 23), "trees": (17, 22),
}  # fmt: skip
"""Architectures of the zoo, in their small size, with the opset that is spoilt and that of a healthy twin."""

DEPTHS = (1, 4, 12)
"""Layers of the transformers whose depth varies."""

ML_OPSET = 3
"""Of ``ai.onnx.ml``, for the trees: the last with TreeEnsembleRegressor."""

MISSING = 0.1
"""Share of the measurements that are NaN."""

Build = Callable[[GraphBuilder], None]


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One model.

    Attributes:
        name: Such as ``resnet`` or ``gpt-12``.
        draw: Of its weights and inputs: faults are planted in draw 0, healthy results are wanted of all.
        layers: Of a transformer whose depth varies; None for the others.
        case: The model with the inputs that it is fed.
        quantized: Whether it computes with quantized tensors throughout.
        twin: The same weights and inputs at another opset.
    """

    name: str
    draw: int
    layers: int | None
    quantized: bool
    case: Case
    twin: Case

    @property
    def label(self) -> str:
        """The name with the draw."""
        return f"{self.name}.{self.draw}"

    @property
    def feeds(self) -> dict[str, Array]:
        """The inputs, as numpy arrays."""
        values = dict(self.case.data_sets[0].inputs)
        return {name: value.array for name, value in values.items() if isinstance(value, Tensor)}

    def model(self) -> onnx.ModelProto:
        """The model."""
        return onnx.load(self.case.model_path)


def subjects(folder: Path, names: Collection[str] = (), draws: int = 1) -> list[Subject]:
    """Build models below a folder, each with some draws of its weights and inputs.

    Args:
        folder: Where they are written.
        names: Which; all where there are none.
        draws: How many.
    """
    plans = _plans()
    wanted = [name for name in plans if not names or name in names]
    return [_subject(folder / str(draw), draw, name, plans[name]) for draw in range(draws) for name in wanted]


class Plan(NamedTuple):
    """How a model is built, its opset and that of its twin, and its layers where its depth varies."""

    build: Build
    opsets: tuple[int, int]
    layers: int | None = None


def _plans() -> dict[str, Plan]:
    known = zoo_models()
    plans = {}
    for name, opsets in ZOO.items():
        zoo = known[f"{name}-small-op{opsets[0]}"].architecture
        plans[name] = Plan(partial(zoo.build, **zoo.sizes["small"]), opsets)
    for layers in DEPTHS:
        for name, build in (("bert", bert.build), ("gpt", gpt.build)):
            deep = partial(build, width=64, heads=4, layers=layers, vocabulary=512)
            plans[f"{name}-{layers}"] = Plan(deep, (17, 22), layers)
        plans[f"stack-{layers}"] = Plan(partial(stack, layers=layers), (17, 22), layers)
    return plans | {"pooling": Plan(pooling, (17, 22)), "recommender": Plan(recommender, (17, 22))}


def stack(g: GraphBuilder, *, layers: int, width: int = 128) -> None:
    """Transformer layers and nothing else, whose hidden states grow from layer to layer."""
    x = g.input("hidden_states", (BATCH_DIM, 16, width), activations)
    for layer in range(layers):
        with g.scope(f"layer{layer}/attention"):
            x = g.op("Add", x, self_attention(g, layer_norm(g, x, width), width, heads=4))
        with g.scope(f"layer{layer}/mlp"):
            with g.scope("up"):
                y = gelu(g, linear(g, layer_norm(g, x, width), (width, 4 * width), gain=2.0))
            with g.scope("down"):
                x = g.op("Add", x, linear(g, y, (4 * width, width)))
    g.output("last_hidden_state", x, "float32", (BATCH_DIM, 16, width))


def pooling(g: GraphBuilder) -> None:
    """A classifier with the pools of GoogLeNet and SqueezeNet: ceil_mode, padding that counts, bounds."""
    x = g.input("image", (BATCH_DIM, 3, 29, 29), images)
    with g.scope("stem"):
        x = g.op("Clip", batch_norm(g, conv(g, x, (3, 16), 3), 16), g.scalar(0), g.scalar(1.5))
        x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    with g.scope("mean"):
        y = conv(g, x, (16, 16), 3)
        y = g.op(
            "AveragePool", y, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], count_include_pad=1
        )
        x = g.op("Elu", g.op("Add", x, y), alpha=0.5)
    with g.scope("down"):
        x = g.op("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        x = g.op(
            "MaxPool",
            conv(g, x, (16, 24), 3, gain=1.0),
            kernel_shape=[3, 3],
            strides=[2, 2],
            pads=[1, 1, 1, 1],
        )
    with g.scope("up"):
        sizes = g.constant(np.array([1, 1, 2, 2], np.float32))
        x = g.op(
            "Resize", x, "", sizes, mode="nearest", coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )  # fmt: skip
        x = conv(g, x, (24, 24), 3, gain=1.0)
    scores = g.op("Softmax", linear(g, g.op("Flatten", g.op("GlobalAveragePool", x)), (24, 10)), axis=-1)
    g.output("probabilities", scores, "float32", (BATCH_DIM, 10))


ROWS = 64
"""Of the hashed table."""


def recommender(g: GraphBuilder) -> None:
    """Hashed identities look up a table, half stars are stored as bytes, missing facts are filled in.

    One output keeps its NaN: the logarithm of scores of which some are negative.
    """
    users = g.input("users", (8, 4), lambda random, shape: random.integers(1, 1 << 20, shape))
    facts = g.input("facts", (8, 16), _facts)
    stars = g.input("stars", (8, 6), lambda random, shape: (random.integers(1, 11, shape) / 2).astype("f4"))
    with g.scope("hash"):
        # Knuth's multiplicative hash, whose products need 64 bits.
        product = g.op("Mul", users, g.constant(np.array(2654435761)))
        row = g.op("Mod", g.op("Div", product, g.constant(np.array(65536))), g.constant(np.array(ROWS)))
        found = g.op("Gather", g.normal("table", (ROWS, 16), 0.5), row)
        hashed = g.op("Reshape", found, g.ints(0, 64))
    with g.scope("facts"):
        known = g.op("Where", g.op("IsNaN", facts), g.normal("mean", (16,), 0.5), facts)
        missing = g.op("Cast", g.op("IsNaN", facts), to=FLOAT)
    with g.scope("stars"):
        one, zero = g.scalar(1), g.constant(np.array(0, np.uint8))
        rated = g.op("DequantizeLinear", g.op("QuantizeLinear", stars, one, zero), one, zero)
        latest = g.op("Unsqueeze", g.op("Gather", stars, g.constant(np.array(-1)), axis=1), g.ints(1))
    x = g.op("Concat", hashed, known, missing, rated, latest, axis=1)
    for layer, (before, after) in enumerate([(103, 64), (64, 32)]):
        with g.scope(f"layer{layer}"):
            x = g.op("LeakyRelu", linear(g, x, (before, after), gain=2.0), alpha=0.2)
    with g.scope("head"):
        score = linear(g, x, (32, 4))
        g.output("probabilities", g.op("Sigmoid", score), "float32", (8, 4))
        g.output("log_scores", g.op("Log", score), "float32", (8, 4))


def _facts(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    values = random.standard_normal(shape)
    values[random.random(shape) < MISSING] = np.nan
    return values.astype(np.float32)


def _subject(folder: Path, draw: int, name: str, plan: Plan) -> Subject:
    cases = []
    for opset in plan.opsets:
        # Without the opset: twins hold the same weights, and are fed the same.
        g = GraphBuilder(
            seed=f"{name}.{draw}", opset=opset, ml_opset=ML_OPSET if name == "trees" else None, fixed=True
        )
        plan.build(g)
        cases.append(_write(folder / f"{name}-op{opset}", g, name))
    quantized = name == "int8-cnn"
    return Subject(
        name=name, draw=draw, layers=plan.layers, quantized=quantized, case=cases[0], twin=cases[1]
    )


def _write(home: Path, g: GraphBuilder, name: str) -> Case:
    data = home / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    path = home / "model.onnx"
    path.write_bytes(g.model(name).SerializeToString())
    for index, (port, values) in enumerate(g.inputs.items()):
        proto = tensor_proto(tensor(values))
        proto.name = port
        (data / f"input_{index}.pb").write_bytes(proto.SerializeToString())
    return load_case(open_file(path), path.name, {})
