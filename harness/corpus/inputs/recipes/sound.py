"""A generated voice at 16 kHz: syllables of a gliding pitch, vowel resonances, hissing, pauses."""

import math

import numpy as np

from harness.core.values.value import Array
from harness.corpus.inputs.recipes.row_lengths import row_lengths

RATE_HZ = 16_000

_SYLLABLE_S = 0.18
_HARMONICS = 24
_WIDTH_HZ = 120.0
_VOWELS_HZ = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410))
"""The first three resonances of five vowels, as Peterson and Barney measured them in 1952."""

_LOUDEST = 32_767
_PAUSE, _HISS = 5, 4


def time_axis(shape: tuple[int, ...]) -> int:
    """Return the axis of the samples: the longest one, the last of several.

    Raises:
        ValueError: It is a scalar.
    """
    if not shape:
        raise ValueError("a sound needs an axis of samples, and the shape is a scalar")
    return max(range(len(shape)), key=lambda axis: (shape[axis], axis))


def sounds(
    recipe: str, shape: tuple[int, ...], random: np.random.Generator, *, whole: bool, padded: bool
) -> Array:
    """Return a voice for each row of a shape, from -1 to 1.

    With 16 bits for integers and for ``audio-int16``.

    With ``padded``, later rows of the first axis are silent from their length on; see ``row_lengths``.
    """
    axis = time_axis(shape)
    leading = shape[:axis] + shape[axis + 1 :]
    voices = np.array([_voice(shape[axis], random) for _ in range(math.prod(leading))], np.float64)
    samples = np.rint(voices * _LOUDEST).reshape((*leading, shape[axis]))
    if padded and leading:
        lengths = row_lengths(shape[0], shape[axis]).reshape((-1,) + (1,) * len(leading))
        samples = np.where(np.arange(shape[axis]) < lengths, samples, 0.0)
    moved = np.moveaxis(samples, -1, axis)
    return np.asarray(moved if whole or recipe == "audio-int16" else moved / (_LOUDEST + 1))


def _voice(count: int, random: np.random.Generator) -> Array:
    """Return samples of one voice, -1 to 1."""
    base_hz = float(random.integers(95, 220))
    pieces: list[Array] = []
    made = 0
    while made < count:
        length = int(RATE_HZ * _SYLLABLE_S * (0.6 + random.random()))
        pieces.append(_syllable(length, base_hz, random))
        made += length
    voice = np.concatenate(pieces)[:count] if pieces else np.zeros(0)
    return np.asarray(np.clip(voice + 0.002 * (random.random(count) - 0.5), -1, 1))


def _syllable(length: int, base_hz: float, random: np.random.Generator) -> Array:
    kind = int(random.integers(0, _PAUSE + 1))
    time = np.arange(length) / length
    envelope = 16 * (time * (1 - time)) ** 2
    loud = 0.3 + 0.5 * random.random()
    if kind == _PAUSE:
        return np.zeros(length)
    noise = random.random(length + 1) - 0.5
    if kind == _HISS:
        return np.asarray(loud * envelope * (noise[1:] - noise[:-1]))
    pitch = base_hz * (1 + 0.15 * (random.random() - 0.5) + 0.1 * (0.5 - time))
    phase = np.cumsum(2 * np.pi * pitch / RATE_HZ)
    resonances = np.array(_VOWELS_HZ[int(random.integers(0, len(_VOWELS_HZ)))])
    total = np.zeros(length)
    sum_of_weights = 0.0
    for harmonic in range(1, _HARMONICS + 1):
        off = (harmonic * base_hz - resonances) / _WIDTH_HZ
        weight = float(np.sum(1 / (1 + off * off)) + 0.05) / harmonic**0.5
        total += weight * np.sin(harmonic * phase)
        sum_of_weights += weight
    return np.asarray(loud * envelope * (total / sum_of_weights * 2 + 0.02 * noise[1:]))
