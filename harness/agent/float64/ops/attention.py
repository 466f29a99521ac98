"""Attention and RotaryEmbedding of ONNX, and the core that they share with those of com.microsoft."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode

_AFTER_CAP, _WITH_MASK, _PROBABILITIES = 1, 2, 3  # qk_matmul_output_mode


class Weights:
    """The scores of queries and keys, from the products to the probabilities.

    Args:
        scores: Scaled products ``(B, heads, S, T)``.
        mask: Added to the scores, ``-inf`` where a key must not be visible; it broadcasts.
        cap: A bound enforced by a tangent, before the mask; 0 for none.
        sink: A further logit of each head ``(heads)`` whose probability is dropped; None for none.
    """

    def __init__(self, scores: AnyArray, mask: AnyArray, cap: float = 0.0, sink: AnyArray = None) -> None:
        self.capped = cap * np.tanh(scores / cap) if cap else scores
        self.masked = self.capped + mask
        highest = self.masked.max(-1, keepdims=True)
        if sink is not None:
            highest = np.maximum(highest, sink.reshape(1, -1, 1, 1))
        highest = np.where(np.isneginf(highest), 0.0, highest)  # a row without any key
        powers = np.exp(self.masked - highest)
        total = powers.sum(-1, keepdims=True)
        if sink is not None:
            total = total + np.exp(sink.reshape(1, -1, 1, 1) - highest)
        self.probabilities = powers / np.where(total == 0, 1.0, total)


def heads_of(x: AnyArray, count: int) -> AnyArray:
    """Return ``(B, S, heads * size)`` as ``(B, heads, S, size)``."""
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(0, 2, 1, 3)


def joined(x: AnyArray) -> AnyArray:
    """Return ``(B, heads, S, size)`` as ``(B, S, heads * size)``."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def products(node: VersionedNode, q: AnyArray, k: AnyArray, scale: float) -> AnyArray:
    """Return scaled products of queries and keys; several heads of queries may share one of keys."""
    node.budget.need(float(np.prod(q.shape[:3])) * k.shape[2] * 8 * 4)
    return (q @ np.repeat(k, q.shape[1] // k.shape[1], 1).swapaxes(-1, -2)) * scale


def attention(node: VersionedNode, q: AnyArray, k: AnyArray, v: AnyArray, *rest: AnyArray) -> Any:
    """Attention."""
    mask, past_k, past_v, lengths = [*rest, None, None, None, None][:4]
    flat = q.ndim == 3  # noqa: PLR2004 - (B, S, heads * size)
    if flat:
        many, few = node.get("q_num_heads"), node.get("kv_num_heads")
        q, k, v = heads_of(q, many), heads_of(k, few), heads_of(v, few)
    past = 0 if past_k is None else past_k.shape[2]
    if past_k is not None:
        k, v = np.concatenate((past_k, k), 2), np.concatenate((past_v, v), 2)
    cap, mode = node.get("softcap", 0.0), node.get("qk_matmul_output_mode", 0)
    scale = node.get("scale") or q.shape[-1] ** -0.5
    scores = products(node, q, k, scale)
    weights = Weights(scores, _mask(node, q, k, mask, past, lengths), cap)
    kept = {_AFTER_CAP: weights.capped, _WITH_MASK: weights.masked, _PROBABILITIES: weights.probabilities}
    y = weights.probabilities @ np.repeat(v, q.shape[1] // v.shape[1], 1)
    return (joined(y) if flat else y), k, v, kept.get(mode, scores)


def _mask(
    node: VersionedNode, q: AnyArray, k: AnyArray, given: AnyArray, past: int, lengths: AnyArray
) -> AnyArray:
    """Return the mask that is added to the scores."""
    queries, keys = q.shape[2], k.shape[2]
    mask = np.zeros((queries, keys))
    if given is not None:
        added = np.where(given, 0.0, -np.inf) if given.dtype == np.bool_ else given
        missing = keys - added.shape[-1]
        if missing > 0:
            added = np.pad(added, [(0, 0)] * (added.ndim - 1) + [(0, missing)], constant_values=-np.inf)
        mask = mask + added
    places = np.arange(keys)
    offset: Any = past
    if lengths is not None:
        if past == 0:
            offset = lengths.reshape(-1, 1, 1, 1) - queries
        mask = mask + np.where(places < lengths.reshape(-1, 1, 1, 1), 0.0, -np.inf)
    beyond = places[None, :] - (np.arange(queries)[:, None] + offset)  # keys after the query's own position
    if node.get("is_causal", 0):
        mask = mask + np.where(beyond <= 0, 0.0, -np.inf)
    left, right = node.get("left_window_size", -1), node.get("right_window_size", -1)
    if left >= 0:
        mask = mask + np.where(-beyond <= left, 0.0, -np.inf)
    if right >= 0:
        mask = mask + np.where(beyond <= right, 0.0, -np.inf)
    return mask


def turned(x: AnyArray, cos: AnyArray, sin: AnyArray, *, interleaved: bool) -> AnyArray:
    """Return ``(B, heads, S, size)`` with its first elements turned, by tables ``(B, S, half)``."""
    half = cos.shape[-1]
    part, rest = x[..., : 2 * half], x[..., 2 * half :]
    first, second = (
        (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., :half], part[..., half:])
    )
    cos, sin = cos[:, None], sin[:, None]
    real, imaginary = cos * first - sin * second, sin * first + cos * second
    if interleaved:
        both = np.stack((real, imaginary), -1).reshape(part.shape)
    else:
        both = np.concatenate((real, imaginary), -1)
    return np.concatenate((both, rest), -1)


def rotary_embedding(
    node: VersionedNode, x: AnyArray, cos: AnyArray, sin: AnyArray, positions: AnyArray = None
) -> AnyArray:
    """RotaryEmbedding."""
    flat = x.ndim == 3  # noqa: PLR2004 - (B, S, heads * size)
    inner = heads_of(x, node.get("num_heads")) if flat else x
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    y = turned(inner, cos, sin, interleaved=bool(node.get("interleaved", 0)))
    return joined(y) if flat else y
