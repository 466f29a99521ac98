"""The decoders by name. Listing them builds nothing and imports no onnx."""

from pathlib import Path
from typing import Final

import msgspec

from harness.corpus.decoders.form import Form
from harness.corpus.decoders.genai import genai_config
from harness.corpus.genai_config import CONFIG_NAME
from harness.corpus.protos import write_model
from harness.corpus.zoo.graph import Graph

_ONNX: Final = "onnx"
_CONTRIB: Final = "contrib"

DECODERS: dict[str, Form] = {
    # ONNX's own operators.
    "onnx23-h64": Form(
        what="as many heads of keys as of queries", dialect=_ONNX, opset=23, attention="Attention"
    ),
    "onnx23-h80-cap": Form(
        what="grouped by 4, a soft cap, heads turned in part",
        dialect=_ONNX, opset=23, attention="Attention", key_heads=1, head=80, soft_cap=4.0, rotary_part=40,
    ),
    "onnx23-h96-window": Form(
        what="grouped by 4, a window of 16 keys in the mask",
        dialect=_ONNX, opset=23, attention="Attention", heads=8,
        key_heads=2, head=96, inner=128,
        window=16,
    ),
    "onnx23-h64-f16": Form(
        what="grouped by 4, in float16",
        dialect=_ONNX, opset=23, attention="Attention", key_heads=1, dtype="float16",
    ),
    "onnx23-h64-bf16": Form(
        what="grouped by 4, in bfloat16",
        dialect=_ONNX, opset=23, attention="Attention", key_heads=1, dtype="bfloat16",
    ),
    "onnx24-h128": Form(
        what="grouped by 8, neighbours turned together",
        dialect=_ONNX, opset=24, attention="Attention", heads=8, key_heads=1, head=128, width=64, inner=128,
        interleaved=True,
    ),
    "onnx24-h64-scatter": Form(
        what="grouped by 4, new keys scattered into a cache of fixed length",
        dialect=_ONNX, opset=24, attention="Attention", key_heads=1, static=True, scatter=True,
    ),
    # Those of Model Builder: as for the CPU EP, with one product and positions turned inside.
    "gqa-h64": Form(
        what="as many heads of keys as of queries; packed, positions turned by the attention",
        dialect=_CONTRIB, packed=True, rotary="inside",
    ),
    "gqa-h64-long": Form(
        what="grouped by 4, a context of 4608; packed, positions turned by the attention",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, context=4608, base=500000.0, inner=128,
    ),
    "gqa-h80": Form(
        what="grouped by 4; packed, positions turned by the attention",
        dialect=_CONTRIB, packed=True, rotary="inside", heads=8,
        key_heads=2, head=80,
    ),
    "gqa-h96-window": Form(
        what="grouped by 4, a window of 16 keys; packed, positions turned by the attention",
        dialect=_CONTRIB, packed=True, rotary="inside", heads=8,
        key_heads=2, head=96, inner=128,
        window=16,
    ),
    "gqa-h128": Form(
        what="grouped by 8; packed, positions turned by the attention",
        dialect=_CONTRIB, packed=True, rotary="inside", heads=8, key_heads=1, head=128, width=64, inner=128,
    ),
    "gqa-h256-cap": Form(
        what="grouped by 4, soft caps of scores and logits, as Gemma 2",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, head=256, width=64, inner=128,
        soft_cap=4.0, final_cap=6.0,
    ),
    "gqa-h512": Form(
        what="grouped by 4; packed, positions turned by the attention",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, head=512, width=32, inner=128,
    ),
    "gqa-h64-static": Form(
        what="grouped by 4, a cache of fixed length; packed, positions turned by the attention",
        dialect=_CONTRIB, packed=True, rotary="inside", heads=8, key_heads=2, static=True,
    ),
    # As for DirectML and others: positions turned by nodes.
    "gqa-h64-nodes": Form(
        what="grouped by 4, positions turned by nodes", dialect=_CONTRIB, heads=8,
        key_heads=2
    ),
    "gqa-h64-interleaved": Form(
        what="grouped by 4, half of a head turned, neighbours together",
        dialect=_CONTRIB, heads=8,
        key_heads=2, rotary_part=32, interleaved=True,
    ),
    "gqa-h64-norm": Form(
        what="grouped by 4, each head normalized, as Qwen 3",
        dialect=_CONTRIB, rotary="inside", heads=8,
        key_heads=2, head_norm=True,
    ),
    "gqa-h64-sinks": Form(
        what="grouped by 4, a sink in each head's softmax and a window, as gpt-oss",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, sinks=True, window=24,
    ),
    "gqa-h64-f16": Form(
        what="grouped by 4, in float16",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, dtype="float16",
    ),
    "gqa-h64-bf16": Form(
        what="grouped by 4, in bfloat16",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, dtype="bfloat16",
    ),
    "mha-h64": Form(
        what="as many heads of keys as of queries, the mask added to the scores",
        dialect=_CONTRIB, attention="MultiHeadAttention",
    ),
    "mha-h64-f16": Form(
        what="the same in float16", dialect=_CONTRIB, attention="MultiHeadAttention", dtype="float16"
    ),
    # Quantized weights.
    "gqa-h64-int4": Form(
        what="grouped by 4, weights of 4 bits",
        dialect=_CONTRIB, packed=True, rotary="inside", heads=8,
        key_heads=2, bits=4,
    ),
    "gqa-h64-int4-points": Form(
        what="grouped by 4, weights of 4 bits with zero points",
        dialect=_CONTRIB, packed=True, rotary="inside", heads=8,
        key_heads=2, bits=4, zero_points=True,
    ),
    "gqa-h64-int4-f16": Form(
        what="grouped by 4, weights of 4 bits with zero points, in float16",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, bits=4, zero_points=True,
        dtype="float16",
    ),
    "gqa-h64-int4-bf16": Form(
        what="grouped by 4, weights of 4 bits with zero points, in bfloat16",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, bits=4, zero_points=True,
        dtype="bfloat16",
    ),
    "gqa-h64-int8": Form(
        what="grouped by 4, weights of 8 bits",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, bits=8,
    ),
    "gqa-h64-int8-points": Form(
        what="grouped by 4, weights of 8 bits with zero points",
        dialect=_CONTRIB, packed=True, rotary="inside", heads=8,
        key_heads=2, bits=8, zero_points=True,
    ),
    # Experts.
    "moe-h64": Form(
        what="grouped by 4, two of four experts",
        dialect=_CONTRIB, packed=True, rotary="inside", heads=8,
        key_heads=2, width=64, inner=96, experts=4,
    ),
    "moe-h64-int4": Form(
        what="grouped by 4, two of four experts, weights of 4 bits",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, experts=4, bits=4,
    ),
    "moe-h64-int8": Form(
        what="grouped by 4, two of four experts, weights of 8 bits",
        dialect=_CONTRIB, packed=True, rotary="inside", key_heads=1, experts=4, bits=8,
    ),
    # Beside an encoder.
    "whisper-h64": Form(
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
"""Forms that the CPU EP has no kernels for, so that there is no golden, and what it lacks first."""


def decoder_names() -> tuple[str, ...]:
    """Return the names of the suite's models, sorted."""
    return tuple(sorted(name for name in DECODERS if name not in LEFT_OUT))


def build(name: str) -> Graph:
    """Return the finished graph of a form, with its inputs."""
    form = DECODERS[name]
    g = Graph(seed=name, opset=form.opset)
    add(g, form)
    return g


def add(g: Graph, form: Form) -> None:
    """Add a decoder to an empty graph."""
    if form.dialect == "onnx":
        from harness.corpus.decoders.plain import build as build_dialect
    elif form.dialect == "contrib":
        from harness.corpus.decoders.contrib import build as build_dialect
    else:
        from harness.corpus.decoders.whisper import build as build_dialect
    build_dialect(g, form)


def write_decoder(name: str, folder: Path) -> None:
    """Write a model with its inputs into an empty folder; most have a ``genai_config.json``, too."""
    g = build(name)
    write_model(folder, g.model(name), g.inputs)
    if DECODERS[name].dialect != "onnx":
        text = msgspec.json.format(msgspec.json.encode(genai_config(DECODERS[name])), indent=4)
        (folder / CONFIG_NAME).write_bytes(text)
