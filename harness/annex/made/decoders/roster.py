"""The decoders by name. Listing them builds nothing and imports no onnx."""

from functools import partial
from pathlib import Path

import msgspec

from harness.annex.made.decoders.form import DecoderForm
from harness.annex.made.decoders.genai import genai_config
from harness.annex.made.zoo.graph_builder import GraphBuilder
from harness.corpus.beside.genai_config import CONFIG_NAME
from harness.corpus.beside.value_file import write_model_folder

_onnx = partial(DecoderForm, dialect="onnx", attention="Attention")
_contrib = partial(DecoderForm, dialect="contrib")
_gqa = partial(DecoderForm, dialect="contrib", packed=True, rotary="inside")

DECODERS: dict[str, DecoderForm] = {
    # ONNX's own operators.
    "onnx23-h64": _onnx(what="as many heads of keys as of queries", opset=23),
    "onnx23-h80-cap": _onnx(
        what="grouped by 4, a soft cap, heads turned in part",
        opset=23, key_heads=1, head=80, soft_cap=4.0, rotary_part=40,
    ),
    "onnx23-h96-window": _onnx(
        what="grouped by 4, a window of 16 keys in the mask",
        opset=23, heads=8, key_heads=2, head=96, inner=128, window=16,
    ),
    "onnx23-h64-f16": _onnx(what="grouped by 4, in float16", opset=23, key_heads=1, dtype="float16"),
    "onnx23-h64-bf16": _onnx(what="grouped by 4, in bfloat16", opset=23, key_heads=1, dtype="bfloat16"),
    "onnx24-h128": _onnx(
        what="grouped by 8, neighbours turned together",
        opset=24, heads=8, key_heads=1, head=128, width=64, inner=128, interleaved=True,
    ),
    "onnx24-h64-scatter": _onnx(
        what="grouped by 4, new keys scattered into a cache of fixed length",
        opset=24, key_heads=1, static=True, scatter=True,
    ),
    # Those of Model Builder: as for the CPU EP, with one product and positions turned inside.
    "gqa-h64": _gqa(what="as many heads of keys as of queries; packed, positions turned by the attention"),
    "gqa-h64-long": _gqa(
        what="grouped by 4, a context of 4608; packed, positions turned by the attention",
        key_heads=1, context=4608, base=500000.0, inner=128,
    ),
    "gqa-h80": _gqa(
        what="grouped by 4; packed, positions turned by the attention", heads=8, key_heads=2, head=80
    ),
    "gqa-h96-window": _gqa(
        what="grouped by 4, a window of 16 keys; packed, positions turned by the attention",
        heads=8, key_heads=2, head=96, inner=128, window=16,
    ),
    "gqa-h128": _gqa(
        what="grouped by 8; packed, positions turned by the attention",
        heads=8, key_heads=1, head=128, width=64, inner=128,
    ),
    "gqa-h256-cap": _gqa(
        what="grouped by 4, soft caps of scores and logits, as Gemma 2",
        key_heads=1, head=256, width=64, inner=128, soft_cap=4.0, final_cap=6.0,
    ),
    "gqa-h512": _gqa(
        what="grouped by 4; packed, positions turned by the attention",
        key_heads=1, head=512, width=32, inner=128,
    ),
    "gqa-h64-static": _gqa(
        what="grouped by 4, a cache of fixed length; packed, positions turned by the attention",
        heads=8, key_heads=2, static=True,
    ),
    # As for DirectML and others: positions turned by nodes.
    "gqa-h64-nodes": _contrib(what="grouped by 4, positions turned by nodes", heads=8, key_heads=2),
    "gqa-h64-interleaved": _contrib(
        what="grouped by 4, half of a head turned, neighbours together",
        heads=8, key_heads=2, rotary_part=32, interleaved=True,
    ),
    "gqa-h64-norm": _contrib(
        what="grouped by 4, each head normalized, as Qwen 3",
        rotary="inside", heads=8, key_heads=2, head_norm=True,
    ),
    "gqa-h64-sinks": _gqa(
        what="grouped by 4, a sink in each head's softmax and a window, as gpt-oss",
        key_heads=1, sinks=True, window=24,
    ),
    "gqa-h64-f16": _gqa(what="grouped by 4, in float16", key_heads=1, dtype="float16"),
    "gqa-h64-bf16": _gqa(what="grouped by 4, in bfloat16", key_heads=1, dtype="bfloat16"),
    "mha-h64": _contrib(
        what="as many heads of keys as of queries, the mask added to the scores",
        attention="MultiHeadAttention",
    ),
    "mha-h64-f16": _contrib(what="the same in float16", attention="MultiHeadAttention", dtype="float16"),
    # Quantized weights.
    "gqa-h64-int4": _gqa(what="grouped by 4, weights of 4 bits", heads=8, key_heads=2, bits=4),
    "gqa-h64-int4-points": _gqa(
        what="grouped by 4, weights of 4 bits with zero points",
        heads=8, key_heads=2, bits=4, zero_points=True,
    ),
    "gqa-h64-int4-f16": _gqa(
        what="grouped by 4, weights of 4 bits with zero points, in float16",
        key_heads=1, bits=4, zero_points=True, dtype="float16",
    ),
    "gqa-h64-int4-bf16": _gqa(
        what="grouped by 4, weights of 4 bits with zero points, in bfloat16",
        key_heads=1, bits=4, zero_points=True, dtype="bfloat16",
    ),
    "gqa-h64-int8": _gqa(what="grouped by 4, weights of 8 bits", key_heads=1, bits=8),
    "gqa-h64-int8-points": _gqa(
        what="grouped by 4, weights of 8 bits with zero points",
        heads=8, key_heads=2, bits=8, zero_points=True,
    ),
    # Experts.
    "moe-h64": _gqa(
        what="grouped by 4, two of four experts", heads=8, key_heads=2, width=64, inner=96, experts=4
    ),
    "moe-h64-int4": _gqa(
        what="grouped by 4, two of four experts, weights of 4 bits", key_heads=1, experts=4, bits=4
    ),
    "moe-h64-int8": _gqa(
        what="grouped by 4, two of four experts, weights of 8 bits", key_heads=1, experts=4, bits=8
    ),
    # Beside an encoder.
    "whisper-h64": DecoderForm(
        what="its own cache, and a fixed one from an encoder",
        dialect="whisper", attention="MultiHeadAttention", rotary="none",
    ),
}  # fmt: skip
"""Every form by the name of its model."""

LEFT_OUT: dict[str, str] = {
    "onnx23-h64-bf16": "`MatMul` of bfloat16",
    "gqa-h64-bf16": "`MatMul` of bfloat16",
    "gqa-h64-int4-bf16": "`GatherBlockQuantized` to bfloat16",
}
"""Forms without a golden, because the CPU EP lacks a kernel, and the first kernel that it lacks."""


FOLDERS: dict[str, str] = {
    "folder-pipeline": (
        "a decoder in four models: embeddings, two layers (the second with a session for prompts and one for "
        "later tokens), logits"
    ),
    "folder-speech": "an encoder of sound, which gives the cache of the attention to it, and a decoder",
    "folder-translation": "an encoder of text, and a decoder that takes its states",
    "folder-vision": "a model of pictures, one of embeddings that takes its features, and a decoder",
}
"""Folders of several sessions by their names, and what they are; ``folders.py`` builds them."""


def decoder_names() -> tuple[str, ...]:
    """Return the names of the suite's models with one session, sorted."""
    return tuple(sorted(name for name in DECODERS if name not in LEFT_OUT))


def build(name: str) -> GraphBuilder:
    """Return the finished graph of a form, with its inputs."""
    form = DECODERS[name]
    g = GraphBuilder(seed=name, opset=form.opset)
    add(g, form)
    return g


def add(g: GraphBuilder, form: DecoderForm) -> None:
    """Add a decoder to an empty graph."""
    if form.dialect == "onnx":
        from harness.annex.made.decoders.onnx_decoders import build as build_dialect
    elif form.dialect == "contrib":
        from harness.annex.made.decoders.contrib import build as build_dialect
    else:
        from harness.annex.made.decoders.whisper import build as build_dialect
    build_dialect(g, form)


def write_decoder(name: str, folder: Path) -> None:
    """Write a model with its inputs into an empty folder; most have a ``genai_config.json``, too."""
    if name in FOLDERS:
        from harness.annex.made.decoders.folders import write_folder

        write_folder(name, folder)
        return
    g = build(name)
    write_model_folder(folder, g.model(name), g.inputs)
    if DECODERS[name].dialect != "onnx":
        text = msgspec.json.format(msgspec.json.encode(genai_config(DECODERS[name])), indent=4)
        (folder / CONFIG_NAME).write_bytes(text)
