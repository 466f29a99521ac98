"""Pictures of a generated scene: a ground with texture, a horizon, shaded things, the noise of a sensor.

As in photographs, neighbours are similar, channels are correlated, and there are edges of any size. Pixels
are whole numbers from 0 to 255, so that no machine rounds them differently.
"""

import math
from collections.abc import Iterator

import numpy as np

from harness.core.values.value import Array

_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and deviation of ImageNet's channels, as torchvision documents them."""

_OCTAVES = 6
_THINGS = 7
_OF_LETTERS = 0.4
_RANGES = {"255": (0.0, 255.0), "signed": (-1.0, 1.0), "": (0.0, 1.0)}


def pictures(recipe: str, shape: tuple[int, ...], random: np.random.Generator, *, whole: bool) -> Array:
    """Return pictures of a shape, each of a different scene.

    Args:
        recipe: Such as ``rgb-255``; or ``region``, which is 1 within a region and 0 outside.
        shape: ``(..., C, H, W)`` or ``(..., H, W, C)``; without C for one channel.
        random: The source of the scenes.
        whole: Whether the input takes whole numbers.

    Raises:
        ValueError: The shape has no axis of as many channels.
    """
    kind, _, scale = recipe.partition("-")
    channels = 3 if kind == "rgb" else 1
    axis = channel_axis(shape, channels)
    if whole and scale in {"signed", "imagenet"}:
        raise ValueError(f"the recipe {recipe!r} has fractions, and the input takes integers; write {kind!r}")
    height, width = height_and_width(shape, channels)
    leading = shape[: len(shape) - (2 if axis is None else 3)]
    made = [_scene(height, width, channels, random) for _ in range(math.prod(leading))]
    pixels = np.array(made, np.float64).reshape((*leading, height, width, channels))
    if kind == "region":
        scaled = (pixels > np.median(pixels, axis=(-3, -2), keepdims=True)).astype(np.float64)
    elif scale == "imagenet":
        mean, deviation = (np.array(each) for each in _IMAGENET)
        scaled = (pixels / 255.0 - mean) / deviation
    else:
        low, high = _RANGES["255" if whole else scale]
        scaled = low + pixels / 255.0 * (high - low)
    if axis is None:
        return np.asarray(scaled[..., 0])
    return np.moveaxis(scaled, -1, axis)


def channel_axis(shape: tuple[int, ...], channels: int) -> int | None:
    """Return -3 or -1, the axis of the channels; None if pictures of one channel have no such axis.

    Raises:
        ValueError: There is no such axis, or no height and width beside it.
    """
    fits = [axis for axis in (-3, -1) if len(shape) >= -min(axis, -3) and shape[axis] == channels]
    if fits:
        return fits[0]
    if channels == 1 and len(shape) >= 2:  # noqa: PLR2004 - height and width
        return None
    spelled = "x".join(map(str, shape)) or "a scalar"
    raise ValueError(
        f"a picture of {channels} channels needs an axis of {channels}, and the shape is {spelled}"
    )


def height_and_width(shape: tuple[int, ...], channels: int) -> tuple[int, int]:
    """Return the size of the pictures in a shape."""
    if channel_axis(shape, channels) == -1:
        return shape[-3], shape[-2]
    return shape[-2], shape[-1]


def _scene(height: int, width: int, channels: int, random: np.random.Generator) -> Array:
    """Return pixels from 0 to 255 of shape ``(height, width, channels)``."""
    rows, columns = np.arange(height)[:, None], np.arange(width)[None, :]
    if not height or not width:
        return np.zeros((height, width, channels))
    horizon = random.integers(height // 4, height // 2 + 1)
    sky, ground = (random.integers(60, 220, channels) for _ in range(2))
    texture = _texture(height, width, random)
    fading = (rows - horizon) / max(height, 1)
    below = (rows >= horizon)[..., None]
    picture = np.where(below, ground, sky) + 60.0 * fading[..., None]
    picture = picture + np.where(below, 50.0, 12.0) * texture[..., None]
    for inside, shade in _things(rows, columns, random):
        colour = random.integers(0, 256, channels)
        lit = colour + 70.0 * shade[..., None] + 15.0 * texture[..., None]
        picture = np.where(inside[..., None], lit, picture)
    picture = picture + random.integers(-3, 4, picture.shape)
    return np.asarray(np.clip(np.rint(picture), 0, 255))


def _things(rows: Array, columns: Array, random: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Yield where a thing is, and how it is lit: round ones, boxes, and rows of strokes like letters."""
    height, width = rows.shape[0], columns.shape[1]
    for number in range(_THINGS):
        middle = random.integers(0, height), random.integers(0, width)
        half = (
            max(1, int(random.integers(height // 12, height // 4 + 1))),
            max(1, int(random.integers(width // 12, width // 4 + 1))),
        )
        up, across = (rows - middle[0]) / half[0], (columns - middle[1]) / half[1]
        shade = np.clip(-(up + across) / 2, -1, 1)
        if number % 3 == 0:
            inside = up * up + across * across <= 1
        elif number % 3 == 1:
            inside = (np.abs(up) <= 1) & (np.abs(across) <= 1)
        else:
            stroke = max(1, half[1] // 6)
            letters = (columns // stroke) % 3 == 0
            inside = (np.abs(up) <= _OF_LETTERS) & (np.abs(across) <= 1) & letters
        yield np.asarray(inside), np.asarray(shade)


def _texture(height: int, width: int, random: np.random.Generator) -> Array:
    """Return noise from about -1 to 1, half as strong at each finer scale, as natural textures are."""
    total = np.zeros((height, width))
    for octave in range(_OCTAVES):
        cells = 2 << octave
        if cells > max(height, width):
            break
        lattice = random.integers(-128, 129, (cells + 1, cells + 1)) / 128.0
        total += _between(lattice, height, width) / (1 << octave)
    return total


def _between(lattice: Array, height: int, width: int) -> Array:
    """Return the values of a lattice, interpolated at each pixel."""
    cells = lattice.shape[0] - 1
    y, x = (np.arange(size) * cells / size for size in (height, width))
    top, left = y.astype(np.int64), x.astype(np.int64)
    down, right = (y - top)[:, None], (x - left)[None, :]
    upper = lattice[np.ix_(top, left)] * (1 - right) + lattice[np.ix_(top, left + 1)] * right
    lower = lattice[np.ix_(top + 1, left)] * (1 - right) + lattice[np.ix_(top + 1, left + 1)] * right
    return np.asarray(upper * (1 - down) + lower * down)
