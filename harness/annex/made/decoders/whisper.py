"""A decoder beside an encoder, in the form of Whisper: its own cache grows, the encoder's stays."""

from harness.annex.made.decoders import ports
from harness.annex.made.decoders.form import KEY_SPREAD, LAYERS, VOCABULARY, DecoderForm
from harness.annex.made.decoders.onnx_decoders import attention_output, attention_parts, head
from harness.annex.made.decoders.weight_products import EPSILON, ProductPart, product, scale_weight
from harness.annex.made.zoo.graph_builder import CONTRIB_DOMAIN, GraphBuilder
from harness.annex.made.zoo.layers import gelu, length

_FRAMES = 40
"""Frames of the encoder: half a second of sound, where Whisper has 30 seconds."""


def build(g: GraphBuilder, form: DecoderForm) -> None:
    """Add the whole decoder to an empty graph."""
    ids = ports.tokens(g, "int32")
    caches = ports.past(g, form, "past_{part}_self_{layer}")
    crosses = ports.past(g, form, "past_{part}_cross_{layer}", _FRAMES)
    with g.scope("model"):
        x, skip = "", _embedded(g, form, ids, caches[0][0])
        made = []
        for layer in range(LAYERS):
            with g.scope(f"layers.{layer}"):
                y, skip = _norm(g, form, "self_attn_layer_norm", skip, x)
                x, kept = _self_attention(g, form, y, caches[layer])
                made.append(kept)
                y, skip = _norm(g, form, "encoder_attn_layer_norm", skip, x)
                x = _cross_attention(g, form, y, crosses[layer])
                y, skip = _norm(g, form, "final_layer_norm", skip, x)
                with g.scope("mlp"):
                    y = gelu(g, product(g, form, y, form.width, {"fc1": ProductPart(form.inner, 2.0)}))
                    x = product(g, form, y, form.inner, {"fc2": ProductPart(form.width, 2.0)})
        y, _ = _norm(g, form, "layer_norm", skip, x)
    ports.logits(g, form, head(g, form, y))
    ports.present(g, form, made, "present_{part}_self_{layer}")


def _embedded(g: GraphBuilder, form: DecoderForm, ids: str, past: str) -> str:
    """Add the embeddings of tokens and of their positions, which follow the cached ones."""
    with g.scope("embeddings"):
        words = g.random("word").standard_normal((VOCABULARY, form.width))
        places = g.random("position").standard_normal((form.context, form.width))
        start = length(g, past, 2)
        end = g.op("Add", start, length(g, ids, 1))
        start, end = (g.op("Unsqueeze", one, g.ints(0)) for one in (start, end))
        table = g.weight("position", places.astype(form.numpy_type))
        found = g.op("Gather", g.weight("word", words.astype(form.numpy_type)), ids)
        return g.op("Add", found, g.op("Slice", table, start, end, g.ints(0)))


def _norm(g: GraphBuilder, form: DecoderForm, name: str, skip: str, x: str) -> tuple[str, str]:
    """Add a normalization of ``skip + x``; the first has nothing to add. Return its result and the sum."""
    with g.scope(name):
        weights = [scale_weight(g, form, form.width), g.normal("bias", (form.width,), 0.2)]
        if not x:
            return g.op("LayerNormalization", skip, *weights, axis=-1, epsilon=EPSILON), skip
        normed, _, _, total = g.ops(
            4, "SkipLayerNormalization", skip, x, *weights, domain=CONTRIB_DOMAIN, epsilon=EPSILON
        )
        return normed, total


def _self_attention(g: GraphBuilder, form: DecoderForm, x: str, cache: list[str]) -> tuple[str, list[str]]:
    with g.scope("attn"):
        inputs = [
            product(g, form, x, form.width, {name: part}) for name, part in attention_parts(form).items()
        ]
        y, *kept = g.ops(
            3, "MultiHeadAttention", *inputs, "", "", "", *cache,
            domain=CONTRIB_DOMAIN, num_heads=form.heads, scale=form.head**-0.5, unidirectional=1,
        )  # fmt: skip
        return attention_output(g, form, y), kept


def _cross_attention(g: GraphBuilder, form: DecoderForm, x: str, cross: list[str]) -> str:
    with g.scope("cross_attn"):
        query = product(
            g, form, x, form.width, {"q_proj": ProductPart(form.heads * form.head, KEY_SPREAD**2)}
        )
        y = g.op(
            "MultiHeadAttention", query, *cross,
            domain=CONTRIB_DOMAIN, num_heads=form.heads, scale=form.head**-0.5,
        )  # fmt: skip
        return attention_output(g, form, y)
