"""Decoders as Model Builder of onnxruntime-genai writes them, of the operators of ``com.microsoft``."""

from typing import NamedTuple

from harness.annex.made.decoders import ports
from harness.annex.made.decoders.expert_mixture import experts
from harness.annex.made.decoders.form import KEY_SPREAD, LAYERS, DecoderForm
from harness.annex.made.decoders.onnx_decoders import attention_output, attention_parts, head, swiglu
from harness.annex.made.decoders.positions import additive_mask, ones_and_total, rotary_tables, sinks
from harness.annex.made.decoders.weight_products import (
    EPSILON,
    embedded,
    product,
    scale_weight,
    simplified_norm,
)
from harness.annex.made.zoo.graph_builder import CONTRIB_DOMAIN, GraphBuilder


class _Shared(NamedTuple):
    """Values that all layers share; ``masks`` are the attention inputs that restrict what is visible."""

    masks: tuple[str, ...]
    positions: str
    tables: tuple[str, str]


def build(g: GraphBuilder, form: DecoderForm) -> None:
    """Add the whole decoder to an empty graph."""
    ids = ports.tokens(g)
    mask = ports.mask(g)
    positions = ports.positions(g) if form.rotary == "nodes" else ""
    caches = ports.past(g, form)
    with g.scope("model"):
        grouped = form.attention == "GroupQueryAttention"
        shared = _Shared(
            masks=ones_and_total(g, mask) if grouped else (additive_mask(g, form, ids, mask),),
            positions=positions,
            tables=rotary_tables(g, form),
        )
        x, skip = "", embedded(g, form, ids)
        made = []
        for layer in range(LAYERS):
            with g.scope(f"layers.{layer}"):
                y, skip = _norm(g, form, "input_layernorm", skip, x)
                y, kept = _attention(g, form, y, caches[layer], shared)
                made.append(kept)
                y, skip = _norm(g, form, "post_attention_layernorm", skip, y)
                x = experts(g, form, y) if form.experts else swiglu(g, form, y)
        y, _ = _norm(g, form, "norm", skip, x)
    ports.logits(g, form, head(g, form, y))
    ports.present(g, form, made)


def _norm(g: GraphBuilder, form: DecoderForm, name: str, skip: str, x: str) -> tuple[str, str]:
    """Add a normalization of ``skip + x``; the first has nothing to add. Return its result and the sum."""
    with g.scope(name):
        if not x:
            return simplified_norm(g, form, skip, form.width), skip
        inputs = (skip, x, scale_weight(g, form, form.width))
        normed, _, _, total = g.ops(
            4, "SkipSimplifiedLayerNormalization", *inputs, domain=CONTRIB_DOMAIN, epsilon=EPSILON
        )
        return normed, total


def _attention(
    g: GraphBuilder, form: DecoderForm, x: str, cache: list[str], shared: _Shared
) -> tuple[str, list[str]]:
    """Add attention. Return its result, and the keys and values with the new ones."""
    with g.scope("attn"):
        parts = attention_parts(form)
        if form.packed:
            inputs = [product(g, form, x, form.width, parts), "", ""]
        else:
            inputs = [product(g, form, x, form.width, {name: part}) for name, part in parts.items()]
            for index, (name, heads) in enumerate((("q_norm", form.heads), ("k_norm", form.key_heads))):
                if form.head_norm:
                    inputs[index] = _head_norm(g, form, name, inputs[index], heads)
                if form.rotary == "nodes":
                    inputs[index] = _turned(g, form, inputs[index], heads, shared)
        attend = _grouped if form.attention == "GroupQueryAttention" else _multi_head
        y, *kept = attend(g, form, inputs, cache, shared)
        return attention_output(g, form, y), kept


def _grouped(
    g: GraphBuilder, form: DecoderForm, inputs: list[str], cache: list[str], shared: _Shared
) -> list[str]:
    """Add GroupQueryAttention with the inputs and attributes of its form."""
    tables = shared.tables if form.rotary == "inside" else ("", "")
    optional = (*tables, "", "", sinks(g, form) if form.sinks else "")
    return g.ops(
        3, "GroupQueryAttention", *inputs, *cache, *shared.masks, *optional,
        domain=CONTRIB_DOMAIN,
        num_heads=form.heads,
        kv_num_heads=form.key_heads,
        scale=form.head**-0.5,
        local_window_size=form.window or -1,
        softcap=form.soft_cap,
        do_rotary=int(form.rotary == "inside"),
        rotary_interleaved=int(form.interleaved),
    )  # fmt: skip


def _multi_head(
    g: GraphBuilder, form: DecoderForm, inputs: list[str], cache: list[str], shared: _Shared
) -> list[str]:
    """Add MultiHeadAttention, whose mask is added to the scores."""
    return g.ops(
        3, "MultiHeadAttention", *inputs, "", "", *shared.masks, *cache,
        domain=CONTRIB_DOMAIN, num_heads=form.heads, scale=form.head**-0.5,
    )  # fmt: skip


def _head_norm(g: GraphBuilder, form: DecoderForm, name: str, x: str, heads: int) -> str:
    """Add a normalization of each head by itself, as Qwen 3 has it."""
    with g.scope(name):
        rows = g.op("Reshape", x, g.ints(0, -1, form.head))
        normed = simplified_norm(g, form, rows, form.head, mean=KEY_SPREAD)
        return g.op("Reshape", normed, g.ints(0, -1, heads * form.head))


def _turned(g: GraphBuilder, form: DecoderForm, x: str, heads: int, shared: _Shared) -> str:
    part = {"rotary_embedding_dim": form.rotary_part, "num_heads": heads} if form.rotary_part else {}
    return g.op(
        "RotaryEmbedding", x, shared.positions, *shared.tables,
        domain=CONTRIB_DOMAIN, interleaved=int(form.interleaved), **part,
    )  # fmt: skip
