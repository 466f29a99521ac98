"""A form: the sizes and parts of one decoder."""

from typing import Literal

import ml_dtypes
import msgspec
import numpy as np

WEIGHT_BLOCK = 32
"""Neighbouring weights along a sum that share a scale; Model Builder's default."""


class DecoderForm(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes and parts of one decoder.

    Attributes:
        dialect: ``onnx``: operators of ONNX alone. ``contrib``: operators of onnxruntime, as Model Builder of
            onnxruntime-genai writes them. ``whisper``: the same for a decoder beside an encoder.
        dtype: Element type of weights, activations and cache.
        width: Width of the hidden states.
        inner: Width of the feed-forward part.
        key_heads: Heads of keys and values; each serves ``heads / key_heads`` heads of queries.
        head: Elements of a head.
        context: Largest number of positions; the length of the rotary tables. Few, because prompts of many
            lengths in the scenario ``generate`` reach the model's limit; one long model is enough.
        packed: Whether one product computes queries, keys and values.
        rotary: Where positions are rotated: by separate nodes, by the attention operator, or nowhere.
        rotary_part: Elements of a head that are rotated; 0 for all.
        interleaved: Whether neighbours are rotated together, not the halves of a head.
        window: Keys that a query sees, itself included; 0 for all.
        soft_cap: Bound of the attention's scores; 0 for none.
        final_cap: Bound of the logits; 0 for none.
        sinks: Whether each head adds a number to the denominator of its softmax.
        head_norm: Whether each head of queries and keys is normalized.
        scatter: Whether new keys are scattered into the cache, which has a fixed length.
        static: Whether the cache has a fixed length, that of the context.
        bits: Bits of the weights, in blocks; 0 for weights of ``dtype``.
        zero_points: Whether blocks have a zero point of their own.
        experts: Number of feed-forward parts, two of which are used for each token; 0 for a single plain
            part.
    """

    what: str
    dialect: Literal["onnx", "contrib", "whisper"]
    opset: int = 22
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    width: int = 128
    inner: int = 256
    heads: int = 4
    key_heads: int = 4
    head: int = 64
    context: int = 96
    attention: Literal["Attention", "GroupQueryAttention", "MultiHeadAttention"] = "GroupQueryAttention"
    packed: bool = False
    rotary: Literal["nodes", "inside", "none"] = "nodes"
    rotary_part: int = 0
    interleaved: bool = False
    base: float = 10000.0
    window: int = 0
    soft_cap: float = 0.0
    final_cap: float = 0.0
    sinks: bool = False
    head_norm: bool = False
    scatter: bool = False
    static: bool = False
    bits: Literal[0, 4, 8] = 0
    zero_points: bool = False
    experts: int = 0

    @property
    def numpy_type(self) -> np.dtype[np.generic]:
        """The element type of weights, activations and cache."""
        return np.dtype(ml_dtypes.bfloat16 if self.dtype == "bfloat16" else self.dtype)

    @property
    def lowest(self) -> float:
        """The lowest finite number: exporters add it to the scores of hidden positions.

        Infinity would turn a row without any visible position into NaN.
        """
        return float(ml_dtypes.finfo(self.numpy_type).min)  # type: ignore[no-untyped-call]


LAYERS = 2
"""Layers of every decoder: the second layer reveals a fault in the first layer's cache."""

VOCABULARY = 256
"""Token ids of every decoder."""

KEY_SPREAD = 2**0.5
"""Standard deviation of queries and keys; that of the scores is its square, 2.

Then some 4 of 200 keys have most of the weight. With a smaller one, attention averages all keys, and no
single key, position or window matters.
"""
