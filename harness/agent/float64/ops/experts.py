"""Mixtures of experts of com.microsoft: for each token a router chooses some."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.ops.activations import gelu
from harness.agent.float64.ops.matmul import unpacked
from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError


def moe(
    node: VersionedNode,
    x: AnyArray,
    router: AnyArray,
    w1: AnyArray,
    b1: AnyArray,
    w2: AnyArray,
    *rest: AnyArray,
) -> AnyArray:
    """MoE."""
    b2, w3, b3 = [*rest, None, None, None][:3]

    def expert(number: int, rows: AnyArray) -> AnyArray:
        gate = None if w3 is None else rows @ w3[number].T + _bias(b3, number)
        hidden = _activated(node, rows @ w1[number].T + _bias(b1, number), gate)
        return hidden @ w2[number].T + _bias(b2, number)

    return _mixed(node, x, router, router, expert)


def qmoe(
    node: VersionedNode, x: AnyArray, router: AnyArray, w1: AnyArray, s1: AnyArray, *rest: AnyArray
) -> AnyArray:
    """QMoE with integers of a few bits; activations stay real."""
    b1, w2, s2, b2, w3, s3, b3, z1, z2, z3, mixing = [*rest, *[None] * 11][:11]
    bits, block = node.get("expert_weight_bits", 4), node.get("block_size", 0)
    overrides = ["fc%d_expert_weight_bits" % number for number in (1, 2, 3)]
    if node.get("quant_type", "int") != "int" or any(map(node.has, overrides)):
        raise UnsupportedError("nothing computes this form of QMoE in float64")

    def weight(packed: AnyArray, scales: AnyArray, zeros: AnyArray, number: int) -> AnyArray:
        values = unpacked(packed[number], bits).astype(np.float64)
        scale = scales[number].reshape(values.shape[0], -1)
        shift: Any = float(1 << bits - 1)
        if zeros is not None:
            points = (
                unpacked(zeros[number].reshape(-1), bits)
                if scale.shape[1] == 1
                else unpacked(zeros[number], bits)
            )
            shift = points.astype(np.float64).reshape(values.shape[0], -1)[:, : scale.shape[1]]
            shift = np.repeat(shift, block or values.shape[1], 1)[:, : values.shape[1]]
        return (values - shift) * np.repeat(scale, block or values.shape[1], 1)[:, : values.shape[1]]

    def expert(number: int, rows: AnyArray) -> AnyArray:
        gate = None if w3 is None else rows @ weight(w3, s3, z3, number).T + _bias(b3, number)
        hidden = _activated(node, rows @ weight(w1, s1, z1, number).T + _bias(b1, number), gate)
        return hidden @ weight(w2, s2, z2, number).T + _bias(b2, number)

    return _mixed(node, x, router, router if mixing is None else mixing, expert, given=mixing is not None)


def _bias(bias: AnyArray, number: int) -> Any:
    return 0.0 if bias is None else bias[number]


def _mixed(
    node: VersionedNode, x: AnyArray, router: AnyArray, mixing: AnyArray, expert: Any, *, given: bool = False
) -> AnyArray:
    """Return the sum of the chosen experts' results, weighted by the router."""
    if node.get("use_sparse_mixer", 0):
        raise UnsupportedError("nothing computes use_sparse_mixer in float64")
    rows = x.reshape(-1, x.shape[-1])
    chosen = np.argsort(-router, -1, kind="stable")[:, : node.get("k", 1)]
    shares = mixing
    if not given:
        powers = np.exp(router - router.max(-1, keepdims=True))
        shares = powers / powers.sum(-1, keepdims=True)
    shares = np.take_along_axis(shares, chosen, -1)
    if node.get("normalize_routing_weights", 0):
        shares = shares / shares.sum(-1, keepdims=True)
    y = np.zeros_like(rows)
    for number in np.unique(chosen):
        tokens, slots = np.nonzero(chosen == number)
        y[tokens] += expert(int(number), rows[tokens]) * shares[tokens, slots][:, None]
    return y.reshape(x.shape)


def _activated(node: VersionedNode, hidden: AnyArray, gate: AnyArray) -> AnyArray:
    name = node.get("activation_type", "relu")
    if name == "swiglu":
        return _swiglu(node, hidden, gate)
    functions: dict[str, Any] = {
        "relu": lambda: np.maximum(hidden, 0.0),
        "gelu": lambda: gelu(node, hidden),
        "silu": lambda: hidden / (1.0 + np.exp(-hidden)),
        "identity": lambda: hidden,
    }
    found = functions[name]()
    return found if gate is None else found * gate


def _swiglu(node: VersionedNode, hidden: AnyArray, linear: AnyArray) -> AnyArray:
    fusion = node.get("swiglu_fusion", 0)
    if fusion == 1:
        hidden, linear = hidden[:, 0::2], hidden[:, 1::2]
    elif fusion:
        hidden, linear = np.split(hidden, 2, -1)
    limit = node.get("swiglu_limit", np.inf)
    hidden, linear = np.minimum(hidden, limit), np.clip(linear, -limit, limit)
    alpha, beta = node.get("activation_alpha", 1.0), node.get("activation_beta", 0.0)
    return hidden / (1.0 + np.exp(-alpha * hidden)) * (linear + beta)
