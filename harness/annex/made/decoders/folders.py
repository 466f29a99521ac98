"""Folders of several sessions, as ``genai_config.json`` chains them: one of each kind.

They have ONNX's operators alone. The model that gives the logits is ``model.onnx``, in whose cell the folder
is played.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.annex.made.decoders import ports
from harness.annex.made.decoders.folder_configs import FOLDER_FORM, IMAGE_TOKEN, LAYER_STATES, folder_config
from harness.annex.made.decoders.form import LAYERS, VOCABULARY
from harness.annex.made.decoders.positions import additive_mask, hidden
from harness.annex.made.zoo.graph_builder import GraphBuilder, SymbolicDim
from harness.annex.made.zoo.inputs import token_ids
from harness.annex.made.zoo.layers import attention, layer_norm, length, linear, merge_heads, mlp, split_heads
from harness.core.values.value import Array
from harness.corpus.beside.genai_config import CONFIG_NAME
from harness.corpus.beside.value_file import write_model_folder
from harness.corpus.derived.derived_models import MODEL_FILE

_BATCH = SymbolicDim("batch_size", 2)
_SEQUENCE = SymbolicDim("sequence_length", 1)
_SOURCE = SymbolicDim("source_length", 7)
_MELS, _FRAMES = 16, 48
_SIDE, _PATCH = 32, 16

IMAGE_TOKENS = (_SIDE // _PATCH) ** 2
"""Features of one picture."""

Models = dict[str, GraphBuilder]
"""The models of a folder by their files."""


def folder_models(name: str) -> Models:
    """Return the finished graphs of a folder, with their inputs."""
    return _MODELS[name](name)


def write_folder(name: str, folder: Path) -> None:
    """Write the models of a folder with their ``genai_config.json`` into an empty folder."""
    models = folder_models(name)
    player = models.pop(MODEL_FILE)
    write_model_folder(folder, player.model(name), player.inputs)
    for file, g in models.items():
        (folder / file).write_bytes(g.model(f"{name} {file}").SerializeToString(deterministic=True))
    config = msgspec.json.format(msgspec.json.encode(folder_config(name)), indent=4)
    (folder / CONFIG_NAME).write_bytes(config)


def _graph(name: str, file: str) -> GraphBuilder:
    return GraphBuilder(seed=f"{name}/{file}", opset=FOLDER_FORM.opset)


def _layer(g: GraphBuilder, x: str, mask: str, cache: list[str], cross: list[str]) -> tuple[str, list[str]]:
    """Add a layer: attention to itself with its cache, to an encoder if there is one, and an MLP."""
    width, heads = FOLDER_FORM.width, FOLDER_FORM.heads
    with g.scope("self_attn"):
        y = layer_norm(g, x, width)
        query, key, value = (_projected(g, part, y, gain=2.0) for part in ("query", "key", "value"))
        if cache:
            key, value = (
                g.op("Concat", old, new, axis=2) for old, new in zip(cache, (key, value), strict=True)
            )
        y = merge_heads(g, attention(g, query, key, value, size=width // heads, mask=mask), width)
        with g.scope("output"):
            x = g.op("Add", x, linear(g, y, (width, width), gain=3.0))
    if cross:
        with g.scope("cross_attn"):
            query = _projected(g, "query", layer_norm(g, x, width), gain=4.0)
            y = attention(g, query, *cross[:2], size=width // heads, mask=(cross[2:] or [""])[0])
            with g.scope("output"):
                x = g.op("Add", x, linear(g, merge_heads(g, y, width), (width, width), gain=3.0))
    with g.scope("mlp"):
        x = g.op("Add", x, mlp(g, layer_norm(g, x, width), width))
    return x, [key, value]


def _projected(g: GraphBuilder, name: str, x: str, gain: float = 1.0) -> str:
    """Add a projection of ``(N, sequence, width)`` to heads."""
    with g.scope(name):
        y = linear(g, x, (FOLDER_FORM.width, FOLDER_FORM.width), gain=gain)
    return split_heads(g, y, FOLDER_FORM.heads, FOLDER_FORM.head)


def _table(g: GraphBuilder, name: str, rows: int, ids: str) -> str:
    return g.op("Gather", g.normal(name, (rows, FOLDER_FORM.width), 1.0), ids)


def _head(g: GraphBuilder, x: str) -> None:
    """Add the logits as the first output."""
    with g.scope("lm_head"):
        y = linear(g, layer_norm(g, x, FOLDER_FORM.width), (FOLDER_FORM.width, VOCABULARY), gain=9.0)
    ports.logits(g, FOLDER_FORM, y)


def _states(g: GraphBuilder, name: str, sequence: SymbolicDim = _SEQUENCE) -> str:
    """Declare an input that has a vector for each token."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    return g.input(name, (_BATCH, sequence, FOLDER_FORM.width), draw)


def _give(g: GraphBuilder, name: str, value: str, sequence: SymbolicDim = _SEQUENCE) -> None:
    g.output(name, value, np.float32, (_BATCH, sequence, FOLDER_FORM.width))


def _of_past(g: GraphBuilder, x: str, past: str) -> tuple[str, str]:
    """Add the places of new tokens, which follow the cached ones, and the mask that hides later ones."""
    with g.scope("places"):
        zero, one = (g.constant(np.array(number)) for number in (0, 1))
        start = length(g, past, 2)
        total = g.op("Add", start, length(g, x, 1))
        own = g.op("Range", start, total, one)
        seen = g.op("LessOrEqual", g.op("Range", zero, total, one), g.op("Unsqueeze", own, g.ints(-1)))
        return own, hidden(g, FOLDER_FORM, seen)


def _decoder_beside_encoder(name: str, past: str, present: str, crossing: Callable[..., Any]) -> GraphBuilder:
    """Return a decoder that counts its cache; ``crossing`` declares what the encoder gives."""
    g = _graph(name, MODEL_FILE)
    ids = ports.tokens(g, "int32" if "self" in past else "int64")
    cross = crossing(g)
    caches = ports.past(g, FOLDER_FORM, past)
    places, mask = _of_past(g, ids, caches[0][0])
    x = g.op("Add", _table(g, "tokens", VOCABULARY, ids), _table(g, "positions", FOLDER_FORM.context, places))
    made = []
    for layer in range(LAYERS):
        with g.scope(f"layers.{layer}"):
            x, kept = _layer(g, x, mask, caches[layer], cross(layer))
            made.append(kept)
    _head(g, x)
    ports.present(g, FOLDER_FORM, made, present)
    return g


def _translation(name: str) -> Models:
    g = _graph(name, "encoder.onnx")
    ids = g.input("input_ids", (_BATCH, _SOURCE), token_ids(VOCABULARY))
    counted = g.input("attention_mask", (_BATCH, _SOURCE), lambda _, shape: np.ones(shape, np.int64))
    places = g.op("Range", g.constant(np.array(0)), length(g, ids, 1), g.constant(np.array(1)))
    x = g.op("Add", _table(g, "tokens", VOCABULARY, ids), _table(g, "positions", FOLDER_FORM.context, places))
    x, _ = _layer(g, x, _padding(g, counted), [], [])
    _give(g, "encoder_hidden_states", layer_norm(g, x, FOLDER_FORM.width), _SOURCE)

    def crossing(g: GraphBuilder) -> Callable[[int], list[str]]:
        states = _states(g, "encoder_hidden_states", _SOURCE)
        mask = g.input("encoder_attention_mask", (_BATCH, _SOURCE), lambda _, shape: np.ones(shape, np.int64))
        hiding = _padding(g, mask)

        def of_layer(_layer: int) -> list[str]:
            with g.scope("cross_attn"):
                return [_projected(g, part, states, gain=2.0) for part in ("key", "value")] + [hiding]

        return of_layer

    decoder = _decoder_beside_encoder(
        name, "past_key_values.{layer}.{part}", "present.{layer}.{part}", crossing
    )
    return {"encoder.onnx": g, MODEL_FILE: decoder}


def _padding(g: GraphBuilder, counted: str) -> str:
    """Add the mask that hides padding, ``(batch, 1, 1, length)``."""
    with g.scope("padding"):
        return hidden(g, FOLDER_FORM, g.op("Cast", g.op("Unsqueeze", counted, g.ints(1, 2)), to=9))


def speech(name: str, frames: int = _FRAMES) -> Models:
    """Return the models of a folder of sound of so many frames; onnxruntime-genai takes 3000 alone."""
    heard = frames // 2
    g = _graph(name, "encoder.onnx")

    def sound(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    features = g.input("audio_features", (_BATCH, _MELS, frames), sound)
    weight = g.normal("weight", (FOLDER_FORM.width, _MELS, 3), (2.0 / (3 * _MELS)) ** 0.5)
    x = g.op("Conv", features, weight, kernel_shape=[3], strides=[2], pads=[1, 1])
    x = g.op("Transpose", g.op("Relu", x), perm=[0, 2, 1])
    x = g.op("Add", x, g.normal("positions", (heard, FOLDER_FORM.width), 1.0))
    x, _ = _layer(g, x, "", [], [])
    x = layer_norm(g, x, FOLDER_FORM.width)
    shape = (_BATCH, FOLDER_FORM.heads, heard, FOLDER_FORM.head)
    for layer in range(LAYERS):
        with g.scope(f"cross.{layer}"):
            for part in ("key", "value"):
                g.output(f"present_{part}_cross_{layer}", _projected(g, part, x, gain=2.0), np.float32, shape)
    g.output("encoder_hidden_states", x, np.float32, (_BATCH, heard, FOLDER_FORM.width))

    def crossing(g: GraphBuilder) -> Callable[[int], list[str]]:
        caches = ports.past(g, FOLDER_FORM, "past_{part}_cross_{layer}", heard)
        return lambda layer: caches[layer]

    decoder = _decoder_beside_encoder(
        name, "past_{part}_self_{layer}", "present_{part}_self_{layer}", crossing
    )
    return {"encoder.onnx": g, MODEL_FILE: decoder}


def _vision(name: str) -> Models:
    g = _graph(name, "vision.onnx")

    def picture(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    pixels = g.input("pixel_values", (_BATCH, 3, _SIDE, _SIDE), picture)
    weight = g.normal("weight", (FOLDER_FORM.width, 3, _PATCH, _PATCH), (1.0 / (3 * _PATCH**2)) ** 0.5)
    x = g.op("Conv", pixels, weight, kernel_shape=[_PATCH] * 2, strides=[_PATCH] * 2)
    x = g.op("Transpose", g.op("Reshape", x, g.ints(0, FOLDER_FORM.width, IMAGE_TOKENS)), perm=[0, 2, 1])
    x, _ = _layer(g, x, "", [], [])
    x = g.op("Reshape", layer_norm(g, x, FOLDER_FORM.width), g.ints(-1, FOLDER_FORM.width))
    g.output("image_features", x, np.float32, ("num_image_tokens", FOLDER_FORM.width))
    embedding = _graph(name, "embedding.onnx")
    ids = ports.tokens(embedding)
    given = embedding.input(
        "image_features", (SymbolicDim("num_image_tokens", 0), FOLDER_FORM.width), picture
    )
    words = _table(embedding, "tokens", VOCABULARY, ids)
    own = embedding.op("Equal", ids, embedding.constant(np.array(IMAGE_TOKEN)))
    at = embedding.op("Transpose", embedding.op("NonZero", own), perm=[1, 0])
    _give(embedding, "inputs_embeds", embedding.op("ScatterND", words, at, given))
    decoder = _graph(name, MODEL_FILE)
    x = _states(decoder, "inputs_embeds")
    mask = ports.mask(decoder)
    positions = ports.positions(decoder)
    caches = ports.past(decoder, FOLDER_FORM)
    hiding = additive_mask(decoder, FOLDER_FORM, x, mask)
    x = decoder.op("Add", x, _table(decoder, "positions", FOLDER_FORM.context, positions))
    made = []
    for layer in range(LAYERS):
        with decoder.scope(f"layers.{layer}"):
            x, kept = _layer(decoder, x, hiding, caches[layer], [])
            made.append(kept)
    _head(decoder, x)
    ports.present(decoder, FOLDER_FORM, made)
    return {"vision.onnx": g, "embedding.onnx": embedding, MODEL_FILE: decoder}


def _pipeline(name: str) -> Models:
    embedding = _graph(name, "embedding.onnx")
    ids = ports.tokens(embedding)
    _give(embedding, "inputs_embeds", _table(embedding, "tokens", VOCABULARY, ids))
    models = {"embedding.onnx": embedding}
    for layer, (taken, given) in enumerate(LAYER_STATES):
        g = _graph(name, f"layer_{layer}.onnx")
        x = _states(g, taken)
        hiding = additive_mask(g, FOLDER_FORM, x, ports.mask(g))
        if layer == 0:
            x = g.op("Add", x, _table(g, "positions", FOLDER_FORM.context, ports.positions(g)))
        names = "past_key_values.{layer}.{part}", "present.{layer}.{part}"
        cache = ports.past(g, FOLDER_FORM, names[0], only=layer)[0]
        x, kept = _layer(g, x, hiding, cache, [])
        _give(g, given, x)
        ports.present(g, FOLDER_FORM, [kept], names[1], first=layer)
        models[f"layer_{layer}.onnx"] = g
    head = _graph(name, MODEL_FILE)
    _head(head, _states(head, "output_hidden_states"))
    return models | {MODEL_FILE: head}


_MODELS: dict[str, Callable[[str], Models]] = {
    "folder-pipeline": _pipeline,
    "folder-speech": speech,
    "folder-translation": _translation,
    "folder-vision": _vision,
}
"""For each folder its models."""
