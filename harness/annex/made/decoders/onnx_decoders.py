"""Decoders of ONNX's own operators, from opset 23 on: Attention, RotaryEmbedding, RMSNormalization."""

from typing import Any, NamedTuple

import numpy as np

from harness.annex.made.decoders import ports
from harness.annex.made.decoders.form import KEY_SPREAD, LAYERS, VOCABULARY, DecoderForm
from harness.annex.made.decoders.positions import additive_mask, fixed_mask, rotary_tables
from harness.annex.made.decoders.weight_products import EPSILON, ProductPart, embedded, product, scale_weight
from harness.annex.made.zoo.graph_builder import GraphBuilder
from harness.annex.made.zoo.layers import merge_heads, silu, split_heads

_LOGIT_SPREAD = 3.0
"""Standard deviation of the logits: of 256 tokens, the first two are some 0.9 apart."""


class _Shared(NamedTuple):
    """Values that all layers share."""

    mask: str
    positions: str
    tables: tuple[str, str]
    written: str


def build(g: GraphBuilder, form: DecoderForm) -> None:
    """Add the whole decoder to an empty graph."""
    ids = ports.tokens(g)
    mask = "" if form.scatter else ports.mask(g)
    positions = ports.positions(g)
    caches = ports.past(g, form)
    with g.scope("model"):
        shared = _Shared(
            mask=fixed_mask(g, form, positions) if form.scatter else additive_mask(g, form, ids, mask),
            positions=positions,
            tables=rotary_tables(g, form),
            # The place of the first new token of each text.
            written=g.op("Gather", positions, g.constant(np.array(0)), axis=1) if form.scatter else "",
        )
        x = embedded(g, form, ids)
        made = []
        for layer in range(LAYERS):
            with g.scope(f"layers.{layer}"):
                y, kept = _attention(g, form, _norm(g, form, x, "input_layernorm"), caches[layer], shared)
                made.append(kept)
                x = g.op("Add", x, y)
                x = g.op("Add", x, swiglu(g, form, _norm(g, form, x, "post_attention_layernorm")))
        y = _norm(g, form, x, "norm")
    ports.logits(g, form, head(g, form, y))
    ports.present(g, form, made)


def head(g: GraphBuilder, form: DecoderForm, x: str) -> str:
    """Add the product that computes the logits, and their bound."""
    with g.scope("lm_head"):
        y = product(g, form, x, form.width, {"out": ProductPart(VOCABULARY, _LOGIT_SPREAD**2)})
        if form.final_cap:
            cap = g.constant(np.array(form.final_cap, form.numpy_type))
            y = g.op("Mul", g.op("Tanh", g.op("Div", y, cap)), cap)
        return y


def attention_parts(form: DecoderForm) -> dict[str, ProductPart]:
    """Return the products before the attention."""
    keys = form.key_heads * form.head
    return {
        "q_proj": ProductPart(form.heads * form.head, KEY_SPREAD**2),
        "k_proj": ProductPart(keys, KEY_SPREAD**2),
        "v_proj": ProductPart(keys),
    }


def attention_output(g: GraphBuilder, form: DecoderForm, x: str) -> str:
    """Add the product after the attention; its gain compensates for the mean over several values."""
    width = form.heads * form.head
    return product(g, form, x, width, {"o_proj": ProductPart(form.width, 4.0)})


def swiglu(g: GraphBuilder, form: DecoderForm, x: str) -> str:
    """Add a feed-forward part: two products, one of which gates the other, and a third."""
    with g.scope("mlp"):
        gate = silu(g, product(g, form, x, form.width, {"gate_proj": ProductPart(form.inner, 2.0)}))
        up = product(g, form, x, form.width, {"up_proj": ProductPart(form.inner)})
        return product(g, form, g.op("Mul", gate, up), form.inner, {"down_proj": ProductPart(form.width)})


def _norm(g: GraphBuilder, form: DecoderForm, x: str, name: str) -> str:
    with g.scope(name):
        return g.op("RMSNormalization", x, scale_weight(g, form, form.width), axis=-1, epsilon=EPSILON)


def _attention(
    g: GraphBuilder, form: DecoderForm, x: str, cache: list[str], shared: _Shared
) -> tuple[str, list[str]]:
    """Add attention. Return its result, and the keys and values with the new ones."""
    with g.scope("attn"):
        query, key, value = (
            split_heads(g, product(g, form, x, form.width, {name: part}), part.width // form.head, form.head)
            for name, part in attention_parts(form).items()
        )
        query, key = (_turned(g, form, one, shared) for one in (query, key))
        attributes: dict[str, Any] = {"softcap": form.soft_cap} if form.soft_cap else {}
        if form.scatter:
            kept = [
                g.op("TensorScatter", old, new, shared.written, axis=2, mode="linear")
                for old, new in zip(cache, (key, value), strict=True)
            ]
            y = g.op("Attention", query, *kept, shared.mask, **attributes)
        else:
            y, *kept = g.ops(3, "Attention", query, key, value, shared.mask, *cache, **attributes)
        merged = merge_heads(g, y, form.heads * form.head)
        return attention_output(g, form, merged), kept


def _turned(g: GraphBuilder, form: DecoderForm, x: str, shared: _Shared) -> str:
    return g.op(
        "RotaryEmbedding", x, *shared.tables, shared.positions,
        interleaved=int(form.interleaved), rotary_embedding_dim=form.rotary_part,
    )  # fmt: skip
