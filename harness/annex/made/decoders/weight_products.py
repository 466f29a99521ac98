"""Products with weights: floating ones, and those of 4 or 8 bits; and the table of embeddings."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from harness.annex.made.decoders.blocks import in_blocks, shifted
from harness.annex.made.decoders.form import VOCABULARY, WEIGHT_BLOCK, DecoderForm
from harness.annex.made.zoo.graph_builder import CONTRIB_DOMAIN, GraphBuilder
from harness.core.values.value import Array

EPSILON = 1e-5
"""Epsilon of normalizations."""


class ProductPart(NamedTuple):
    """One of the results of a product: its width, and its variance over that of the input."""

    width: int
    gain: float = 1.0


def product(g: GraphBuilder, form: DecoderForm, x: str, width: int, parts: Mapping[str, ProductPart]) -> str:
    """Add one product whose result has the parts side by side.

    Each part draws its weights under its own name, so packed and separate products have the same. The input
    has the shape ``(..., width)``.
    """
    columns = [_drawn(g, form, name, width, part) for name, part in parts.items()]
    weights = np.concatenate(columns, axis=1)
    with g.scope("_".join(parts)):
        if not form.bits:
            return g.op("MatMul", x, g.weight("weight", weights.astype(form.numpy_type)))
        blocks = in_blocks(weights.T, form.bits, form.numpy_type, zero_points=form.zero_points)
        numbers = blocks.numbers.reshape(
            weights.shape[1], width // WEIGHT_BLOCK, WEIGHT_BLOCK * form.bits // 8
        )
        inputs = [g.weight("weight_Q", numbers), g.weight("weight_scales", blocks.scales)]
        if blocks.zero_points is not None:
            inputs.append(g.weight("weight_zero_points", blocks.zero_points))
        return g.op(
            "MatMulNBits", x, *inputs,
            domain=CONTRIB_DOMAIN, K=width, N=weights.shape[1], bits=form.bits, block_size=WEIGHT_BLOCK,
        )  # fmt: skip


def embedded(g: GraphBuilder, form: DecoderForm, ids: str) -> str:
    """Add the embeddings of tokens, from a table of the weights' type."""
    with g.scope("embed_tokens"):
        table = g.random("weight").standard_normal((VOCABULARY, form.width))
        if not form.bits:
            return g.op("Gather", g.weight("weight", table.astype(form.numpy_type)), ids)
        if form.zero_points:
            table = shifted(g.random("weight_shift"), table)
        blocks = in_blocks(table, form.bits, form.numpy_type, zero_points=form.zero_points)
        points = [] if blocks.zero_points is None else [g.weight("weight_zero_points", blocks.zero_points)]
        numbers, scales = g.weight("weight_Q", blocks.numbers), g.weight("weight_scales", blocks.scales)
        return g.op(
            "GatherBlockQuantized", numbers, ids, scales, *points,
            domain=CONTRIB_DOMAIN, bits=form.bits, block_size=WEIGHT_BLOCK, gather_axis=0, quantize_axis=1,
        )  # fmt: skip


def scale_weight(g: GraphBuilder, form: DecoderForm, width: int, mean: float = 1.0) -> str:
    """Add the weight of a normalization."""
    values = mean + 0.2 * g.random("weight").standard_normal(width)
    return g.weight("weight", values.astype(form.numpy_type))


def simplified_norm(g: GraphBuilder, form: DecoderForm, x: str, width: int, mean: float = 1.0) -> str:
    """Add a normalization without a mean or a bias; its results have the spread of its weight."""
    weight = scale_weight(g, form, width, mean)
    return g.op("SimplifiedLayerNormalization", x, weight, axis=-1, epsilon=EPSILON, stash_type=1)


def _drawn(g: GraphBuilder, form: DecoderForm, name: str, width: int, part: ProductPart) -> Array:
    with g.scope(name):
        weights: Array = (part.gain / width) ** 0.5 * g.random("weight").standard_normal((width, part.width))
        if form.bits and form.zero_points:
            return shifted(g.random("weight_shift"), weights.T).T
        return weights
