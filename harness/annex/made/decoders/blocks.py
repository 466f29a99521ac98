"""Weights of 4 or 8 bits in blocks, as ``MatMulNBits``, ``GatherBlockQuantized`` and ``QMoE`` store them."""

from typing import NamedTuple

import numpy as np

from harness.annex.made.decoders.form import WEIGHT_BLOCK
from harness.core.values.value import Array


class Blocks(NamedTuple):
    """A quantized matrix: ``weight = scale * (number - zero point)``.

    Attributes:
        numbers: uint8 of shape ``(..., rows, columns * bits / 8)``; the low four bits are the first of two
            numbers in a byte.
        scales: ``(..., rows, blocks)``.
        zero_points: uint8 of shape ``(..., rows, blocks * bits / 8)``, packed likewise; None if all are the
            middle of the range.
    """

    numbers: Array
    scales: Array
    zero_points: Array | None


def in_blocks(
    weights: Array, bits: int, dtype: np.dtype[np.generic], *, zero_points: bool, block: int = WEIGHT_BLOCK
) -> Blocks:
    """Quantize the last axis of weights ``(..., rows, columns)`` in blocks with a scale each, to 4 or 8 bits.

    Neighbouring weights, of which ``columns`` is a multiple, share a scale. Without zero points of each
    block, the range is symmetric.
    """
    *rest, columns = weights.shape
    blocks = weights.astype(np.float64).reshape(*rest, columns // block, block)
    top = (1 << bits) - 1
    middle = 1 << (bits - 1)
    if zero_points:
        # Zero stays exact, as in onnxruntime's quantizer.
        low, high = np.minimum(blocks.min(axis=-1), 0), np.maximum(blocks.max(axis=-1), 0)
        scales = ((high - low) / top).astype(dtype)
        points = np.rint(-low / scales.astype(np.float64)).clip(0, top)
    else:
        scales = (np.abs(blocks).max(axis=-1) / (middle - 1)).astype(dtype)
        points = np.full(scales.shape, float(middle))
    steps = np.rint(blocks / scales.astype(np.float64)[..., None]) + points[..., None]
    numbers = steps.clip(0, top).astype(np.uint8).reshape(weights.shape)
    packed = _packed(points.astype(np.uint8), bits) if zero_points else None
    return Blocks(_packed(numbers, bits), scales, packed)


def shifted(random: np.random.Generator, weights: Array) -> Array:
    """Shift each block of weights by as much as its weights spread, so that zero points matter.

    The variance of a sum over the weights stays the same.
    """
    *rest, columns = weights.shape
    blocks = weights.reshape(*rest, columns // WEIGHT_BLOCK, WEIGHT_BLOCK)
    shift = weights.std() * random.standard_normal((*rest, columns // WEIGHT_BLOCK, 1))
    moved: Array = (blocks + shift) / np.sqrt(2)
    return moved.reshape(weights.shape)


def _packed(numbers: Array, bits: int) -> Array:
    """Pack the last axis; pad an odd number of 4-bit numbers with a 0."""
    if bits == 8:  # noqa: PLR2004 - a byte each
        return numbers
    if numbers.shape[-1] % 2:
        numbers = np.concatenate([numbers, np.zeros_like(numbers[..., :1])], axis=-1)
    packed: Array = numbers[..., 0::2] | (numbers[..., 1::2] << 4)
    return packed
