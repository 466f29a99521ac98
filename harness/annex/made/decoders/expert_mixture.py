"""A mixture of experts: of several feed-forward parts, a router chooses two for each token."""

from typing import Any

import numpy as np

from harness.annex.made.decoders.blocks import in_blocks
from harness.annex.made.decoders.form import WEIGHT_BLOCK, DecoderForm
from harness.annex.made.zoo.graph_builder import CONTRIB_DOMAIN, GraphBuilder
from harness.core.values.value import Array

_CHOSEN = 2
"""Experts for each token."""

_ALPHA, _LIMIT = 1.702, 7.0
"""Parameters of the activation ``swiglu`` in gpt-oss."""


_IN_BLOCKS = 4
"""Bits of weights in blocks. 8-bit weights have a scale for each row: in blocks, the CPU EP would also
round activations to 8 bits, and its answer would be no golden."""


def experts(g: GraphBuilder, form: DecoderForm, x: str) -> str:
    """Add the router and its experts, with the activation and the interleaved weights of gpt-oss."""
    with g.scope("moe"):
        with g.scope("router"):
            # A wide spread: two experts are rarely so close that rounding decides between them.
            weights = (9.0 / form.width) ** 0.5 * g.random("weight").standard_normal(
                (form.width, form.experts)
            )
            scores = g.op("MatMul", x, g.weight("weight", weights.astype(form.numpy_type)))
            scores = g.op("Reshape", scores, g.ints(-1, form.experts))
        up = _weights(g, form, "gate_up_proj", (2 * form.inner, form.width))
        down = _weights(g, form, "down_proj", (form.width, form.inner))
        attributes: dict[str, Any] = {
            "activation_alpha": _ALPHA,
            "activation_beta": 1.0,
            "activation_type": "swiglu",
            "k": _CHOSEN,
            "normalize_routing_weights": 1,
            "swiglu_fusion": 1,
            "swiglu_limit": _LIMIT,
        }
        biases = [
            _bias(g, form, name, width) for name, width in (("up", 2 * form.inner), ("down", form.width))
        ]
        if not form.bits:
            inputs = [*up, biases[0], *down, biases[1]]
            return g.op("MoE", x, scores, *inputs, domain=CONTRIB_DOMAIN, **attributes)
        attributes["expert_weight_bits"] = form.bits
        if form.bits == _IN_BLOCKS:
            attributes["block_size"] = WEIGHT_BLOCK
        points = ["", "", "", up[2], down[2]] if form.zero_points else []
        inputs = [*up[:2], biases[0], *down[:2], biases[1], *points]
        return g.op("QMoE", x, scores, *inputs, domain=CONTRIB_DOMAIN, **attributes)


def _weights(g: GraphBuilder, form: DecoderForm, name: str, shape: tuple[int, int]) -> list[str]:
    """Add the weights of all experts: one tensor, or numbers and scales, and zero points if there are any."""
    with g.scope(name):
        drawn: Array = shape[1] ** -0.5 * g.random("weight").standard_normal((form.experts, *shape))
        if not form.bits:
            return [g.weight("weight", drawn.astype(form.numpy_type))]
        block = WEIGHT_BLOCK if form.bits == _IN_BLOCKS else shape[1]
        blocks = in_blocks(drawn, form.bits, np.dtype(np.float32), zero_points=form.zero_points, block=block)
        scales = blocks.scales if form.bits == _IN_BLOCKS else blocks.scales[..., 0]
        points = [] if blocks.zero_points is None else [g.weight("weight_zero_points", blocks.zero_points)]
        return [g.weight("weight_Q", blocks.numbers), g.weight("weight_scales", scales), *points]


def _bias(g: GraphBuilder, form: DecoderForm, name: str, width: int) -> str:
    with g.scope(name):
        drawn = 0.2 * g.random("bias").standard_normal((form.experts, width))
        return g.weight("bias", drawn.astype(form.numpy_type))
