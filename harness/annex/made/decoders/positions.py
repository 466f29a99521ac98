"""Positions and visibility: rotary tables and the additive mask."""

import numpy as np
from onnx import TensorProto, helper

from harness.annex.made.decoders.form import DecoderForm
from harness.annex.made.zoo.graph_builder import GraphBuilder
from harness.annex.made.zoo.layers import length
from harness.core.values.value import Array


def rotary_tables(g: GraphBuilder, form: DecoderForm) -> tuple[str, str]:
    """Add the tables of cosine and sine: a row for each position, a column for each pair of elements."""
    turned = form.rotary_part or form.head
    frequencies = form.base ** (-np.arange(0, turned, 2) / turned)
    angles = np.outer(np.arange(form.context), frequencies)
    with g.scope("rotary"):
        return tuple(  # type: ignore[return-value]  # two of them
            g.weight(name, table.astype(form.numpy_type))
            for name, table in (("cos_cache", np.cos(angles)), ("sin_cache", np.sin(angles)))
        )


def additive_mask(g: GraphBuilder, form: DecoderForm, ids: str, mask: str) -> str:
    """Add the mask that is added to the scores, ``(batch, 1, new, past + new)``: 0 where a key is visible.

    A key is visible if its place in the cache is not after the query's, it is within the window, and the mask
    counts it.
    """
    with g.scope("mask"):
        total = length(g, mask, 1)
        places = _range(g, g.constant(np.array(0)), total)
        queries = g.op("Unsqueeze", _range(g, g.op("Sub", total, length(g, ids, 1)), total), g.ints(-1))
        counted = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=TensorProto.BOOL)
        return hidden(g, form, g.op("And", _seen(g, form, places, queries), counted))


def fixed_mask(g: GraphBuilder, form: DecoderForm, positions: str) -> str:
    """Add the same for a cache of a fixed length, in which a key's place is its position."""
    with g.scope("mask"):
        places = g.constant(np.arange(form.context))
        queries = g.op("Unsqueeze", positions, g.ints(1, 3))
        return hidden(g, form, _seen(g, form, places, queries))


def hidden(g: GraphBuilder, form: DecoderForm, seen: str) -> str:
    """Add the choice between 0 and the lowest number of the model's type."""
    chosen = g.op("Where", seen, g.scalar(0), g.scalar(form.lowest))
    if form.dtype == "float32":
        return chosen
    return g.op("Cast", chosen, to=helper.np_dtype_to_tensor_dtype(form.numpy_type))


def ones_and_total(g: GraphBuilder, mask: str) -> tuple[str, str]:
    """Add the lengths that ``GroupQueryAttention`` takes as a mask, as Model Builder computes them.

    Returns:
        The last counted place of each text, int32 ``(batch,)``, and the length with the cache, int32 scalar.
    """
    with g.scope("attn_mask_reformat"):
        ones = g.op("ReduceSum", mask, g.ints(1), keepdims=0)
        last = g.op("Cast", g.op("Sub", ones, g.constant(np.array(1))), to=TensorProto.INT32)
        return last, g.op("Cast", length(g, mask, 1), to=TensorProto.INT32)


def _range(g: GraphBuilder, start: str, end: str) -> str:
    return g.op("Range", start, end, g.constant(np.array(1)))


def _seen(g: GraphBuilder, form: DecoderForm, places: str, queries: str) -> str:
    seen = g.op("LessOrEqual", places, queries)
    if not form.window:
        return seen
    oldest = g.op("Sub", queries, g.constant(np.array(form.window)))
    return g.op("And", seen, g.op("Greater", places, oldest))


def sinks(g: GraphBuilder, form: DecoderForm) -> str:
    """Add the number that each head adds to the denominator of its softmax."""
    values: Array = 2 + g.random("sinks").standard_normal(form.heads)
    return g.weight("sinks", values.astype(form.numpy_type))
