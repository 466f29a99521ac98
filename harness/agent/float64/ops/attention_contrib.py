"""Attention operators of com.microsoft, from their documentation and the CPU provider's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.ops.attention import Weights, heads_of, joined, products, turned
from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError

_FILTERED = -10000.0  # the default of ``mask_filter_value``
_PLANE = 3  # rank of (B, S, heads * size)


def _causal(queries: int, keys: int) -> AnyArray:
    places, own = np.arange(keys)[None, :], np.arange(queries)[:, None] + keys - queries
    return np.where(places <= own, 0.0, -np.inf)


def _padding(node: VersionedNode, given: AnyArray, batch: int, keys: int) -> AnyArray:
    """Return the additive mask of keys: the filter value, not infinity, where a key is padding."""
    if given is None:
        return 0.0
    places = np.arange(keys)
    if given.ndim == 1 and given.shape[0] == batch:
        seen = places < given.reshape(-1, 1, 1, 1)
    elif given.ndim == 1 and given.shape[0] == 2 * batch:
        ends, starts = given[:batch].reshape(-1, 1, 1, 1), given[batch:].reshape(-1, 1, 1, 1)
        seen = (places < ends) & (places >= starts)
    elif given.ndim == 2:  # noqa: PLR2004 - (B, T)
        seen = (given != 0)[:, None, None, :]
    elif given.ndim == _PLANE:
        seen = (given != 0)[:, None]
    else:
        raise UnsupportedError("nothing computes this form of the mask of %s in float64" % node.name)
    return np.where(seen, 0.0, node.get("mask_filter_value", _FILTERED))


def attention(node: VersionedNode, x: AnyArray, w: AnyArray, bias: AnyArray = None, *rest: AnyArray) -> Any:
    """Attention of com.microsoft; its weights of queries, keys and values are one tensor."""
    mask, past, added, length = [*rest, None, None, None, None][:4]
    if node.get("do_rotary", 0) or length is not None or node.get("past_present_share_buffer", 0):
        raise UnsupportedError("nothing computes this form of com.microsoft.Attention in float64")
    heads = node.get("num_heads")
    sizes = node.get("qkv_hidden_sizes") or [w.shape[1] // 3] * 3
    y = x @ w + (0.0 if bias is None else bias)
    q, k, v = (heads_of(part, heads) for part in np.split(y, np.cumsum(sizes)[:2], -1))
    if past is not None:
        k, v = np.concatenate((past[0], k), 2), np.concatenate((past[1], v), 2)
    scores = products(node, q, k, node.get("scale") or q.shape[-1] ** -0.5)
    total = _padding(node, mask, x.shape[0], k.shape[2]) + (0.0 if added is None else added)
    if node.get("unidirectional", 0):
        total = total + _causal(q.shape[2], k.shape[2])
    out = joined(Weights(scores, total).probabilities @ v)
    return (out, np.stack((k, v))) if node.wanted > 1 else out


def multi_head_attention(
    node: VersionedNode, q: AnyArray, k: AnyArray = None, v: AnyArray = None, *rest: AnyArray
) -> Any:
    """MultiHeadAttention of com.microsoft."""
    bias, mask, added, past_k, past_v, length = [*rest, *[None] * 6][:6]
    heads = node.get("num_heads")
    if length is not None or (k is not None and k.ndim > _PLANE + 1):
        raise UnsupportedError("nothing computes this form of MultiHeadAttention in float64")
    parts = [None] * 3 if bias is None else np.split(bias, np.cumsum([_hidden(q, heads)] * 2)[:2])
    if k is None:
        packed = q.transpose(3, 0, 2, 1, 4)
        q, k, v = (_shifted(one, part) for one, part in zip(packed, parts))
    else:
        q = _shifted(heads_of(q, heads), parts[0])
        if k.ndim == _PLANE:
            k, v = _shifted(heads_of(k, heads), parts[1]), _shifted(heads_of(v, heads), parts[2])
    if past_k is not None:
        k, v = np.concatenate((past_k, k), 2), np.concatenate((past_v, v), 2)
    scores = products(node, q, k, node.get("scale") or q.shape[-1] ** -0.5)
    total = _padding(node, mask, q.shape[0], k.shape[2]) + (0.0 if added is None else added)
    if node.get("unidirectional", 0):
        total = total + _causal(q.shape[2], k.shape[2])
    weights = Weights(scores, total)
    return joined(weights.probabilities @ v), k, v, weights.probabilities


def _hidden(q: AnyArray, heads: int) -> int:
    return int(q.shape[-1]) if q.ndim == _PLANE else heads * int(q.shape[-1])


def _shifted(x: AnyArray, bias: AnyArray) -> AnyArray:
    return x if bias is None else x + bias.reshape(1, x.shape[1], 1, -1)


def rotary_embedding(
    node: VersionedNode, x: AnyArray, positions: AnyArray, cos: AnyArray, sin: AnyArray
) -> AnyArray:
    """RotaryEmbedding of com.microsoft: a single position is that of the first token."""
    flat = x.ndim == _PLANE
    size = node.get("rotary_embedding_dim", 0) and node.get("num_heads", 0)
    heads = size or (x.shape[-1] // (2 * cos.shape[-1]) if flat else 0)
    inner = heads_of(x, heads) if flat else x
    where = positions
    if positions.ndim < 2:  # noqa: PLR2004 - (B, S)
        where = np.broadcast_to(
            positions.reshape(()) + np.arange(inner.shape[2]), (x.shape[0], inner.shape[2])
        )
    y = turned(inner, cos[where], sin[where], interleaved=bool(node.get("interleaved", 0))) * node.get(
        "scale", 1.0
    )
    return joined(y) if flat else y


def group_query_attention(node: VersionedNode, q: AnyArray, k: AnyArray, v: AnyArray, *rest: AnyArray) -> Any:
    """GroupQueryAttention of com.microsoft, with a cache of real numbers."""
    past_k, past_v, lasts, total, cos, sin, positions, added, sink, *scales = [*rest, *[None] * 13][:13]
    if (
        node.get("sliding_window_cache", 0)
        or not node.get("causal", 1)
        or any(one is not None for one in scales[:2])
    ):
        raise UnsupportedError("nothing computes this form of GroupQueryAttention in float64")
    many, few = node.get("num_heads"), node.get("kv_num_heads")
    if k is None:
        size = q.shape[-1] // (many + 2 * few)
        q, k, v = np.split(q, [many * size, (many + few) * size], -1)
    q, k, v = heads_of(q, many), heads_of(k, few), heads_of(v, few)
    if scales[2] is not None:
        q, k = (_normed(node, one, weight) for one, weight in zip((q, k), scales[2:4]))
    fresh, length = q.shape[2], int(np.asarray(total).reshape(-1)[0])
    ends = lasts.reshape(-1).astype(np.int64) + 1
    starts = np.zeros_like(ends) if fresh == length else ends - fresh
    if node.get("do_rotary", 0):
        where = starts[:, None] + np.arange(fresh) if positions is None else positions
        where = np.clip(where, 0, cos.shape[0] - 1)
        q, k = (
            turned(one, cos[where], sin[where], interleaved=bool(node.get("rotary_interleaved", 0)))
            for one in (q, k)
        )
    room = max(length, 0 if past_k is None else past_k.shape[2])
    keys, values = _cached(past_k, k, starts, room), _cached(past_v, v, starts, room)
    seen_k, seen_v = keys[:, :, :length], values[:, :, :length]
    scores = products(node, q, seen_k, node.get("scale") or q.shape[-1] ** -0.5)
    own = starts.reshape(-1, 1, 1, 1) + np.arange(fresh)[:, None]
    beyond = np.arange(length) - own
    window = node.get("local_window_size", -1)
    seen = (beyond <= 0) & ((beyond > -window) if window > 0 else True)
    mask = np.where(seen, 0.0, -np.inf) + (0.0 if added is None else added)
    if sink is None and node.get("smooth_softmax", 0):
        sink = np.zeros(many)
    weights = Weights(scores, mask, node.get("softcap", 0.0), sink)
    out = joined(weights.probabilities @ np.repeat(seen_v, many // few, 1))
    return out, keys, values, weights.masked if node.get("qk_output", 0) == 1 else weights.probabilities


def _normed(node: VersionedNode, x: AnyArray, weight: AnyArray) -> AnyArray:
    epsilon = node.get("qk_norm_epsilon", float(np.float32(1e-6)))
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def _cached(past: AnyArray, new: AnyArray, starts: AnyArray, room: int) -> AnyArray:
    """Return the cache with new rows after those of each text; the rest has no meaning."""
    found = np.zeros((*new.shape[:2], room, new.shape[3]))
    for text, start in enumerate(starts):
        if past is not None:
            found[text, :, :start] = past[text, :, :start]
        found[text, :, start : start + new.shape[2]] = new[text, :, : room - start]
    return found
