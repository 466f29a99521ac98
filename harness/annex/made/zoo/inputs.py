"""Data for the zoo's inputs, in the ranges of real ones.

It uses only arithmetic that is rounded equally everywhere, so that all machines get the same inputs.
"""

import numpy as np

from harness.annex.made.zoo.graph_builder import MakeInput
from harness.core.values.value import Array

_Shape = tuple[int, ...]

_PATCH = 4
"""Side of the patches of even colour in a picture, in pixels."""


def images(random: np.random.Generator, shape: _Shape) -> Array:
    """Draw pictures ``(N, C, H, W)`` as ``photographs``, from -2 to 2 as after the usual normalisation."""
    return (4 * photographs(random, shape) - 2).astype(np.float32)


def photographs(random: np.random.Generator, shape: _Shape) -> Array:
    """Draw pictures ``(N, C, H, W)``: patches of colour and grain, from 0 to 1."""
    n, channels, height, width = shape
    patches = random.random((n, channels, -(-height // _PATCH), -(-width // _PATCH)))
    smooth = patches.repeat(_PATCH, axis=2).repeat(_PATCH, axis=3)[:, :, :height, :width]
    return (0.8 * smooth + 0.2 * random.random(shape)).astype(np.float32)


def digits(random: np.random.Generator, shape: _Shape) -> Array:
    """Draw handwriting ``(N, 1, H, W)``: a stroke on empty ground, from 0 to 1."""
    pictures = np.zeros(shape, np.float32)
    for picture in pictures:
        row, column = shape[2] // 2, shape[3] // 2
        for down, right in random.integers(-2, 3, (4 * shape[2], 2)):
            row = int(np.clip(row + down, 4, shape[2] - 6))
            column = int(np.clip(column + right, 4, shape[3] - 6))
            picture[0, row : row + 2, column : column + 2] = random.integers(128, 256) / 255
    return pictures


def token_ids(vocabulary: int) -> MakeInput:
    """Return a function that draws token ids, int64, from the whole vocabulary."""
    return lambda random, shape: random.integers(0, vocabulary, shape)


def positions_after(past: int) -> MakeInput:
    """Return a function that makes the positions of new tokens, int64, after so many cached ones."""
    return lambda _, shape: np.broadcast_to(np.arange(past, past + shape[1]), shape).astype(np.int64)


def padding_mask(random: np.random.Generator, shape: _Shape) -> Array:
    """Draw an attention mask ``(N, sequence)``, int64: ones, then zeros; the first text is the longest."""
    lengths = random.integers(shape[1] // 2, shape[1], (shape[0], 1))
    lengths[:1] = shape[1]
    return (np.arange(shape[1]) < lengths).astype(np.int64)


def activations(random: np.random.Generator, shape: _Shape) -> Array:
    """Draw standard normal float32: hidden states, latent images, cached keys and values."""
    return random.standard_normal(shape).astype(np.float32)


def log_mel(random: np.random.Generator, shape: _Shape) -> Array:
    """Draw features of sound ``(N, frames, bands)``, float32: near 0, each frame like the one before."""
    frames = random.standard_normal(shape)
    for frame in range(1, shape[1]):
        frames[:, frame] = 0.8 * frames[:, frame - 1] + 0.6 * frames[:, frame]
    return frames.astype(np.float32)
