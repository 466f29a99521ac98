"""Initial sizes: usual ones for pictures and sound, different small primes for the rest."""

import re
from collections.abc import Mapping, Sequence

from harness.corpus.model.element_types import is_floating
from harness.corpus.model.port import Port
from harness.corpus.model.symbols import axis_name

DRAWS = 3
"""Number of draws for each model: the sizes in use, and two others for a failing cell."""

_PICTURES = ((64, 96), (96, 160), (160, 64))
"""Height and width in each draw: most networks for pictures halve them five times."""

CHANNELS = frozenset({1, 3})
PICTURE_RANKS = frozenset({4, 5})
"""Axes of pictures: batch, channels, height and width; videos have one more."""

SOUND = re.compile(r"audio|wave|pcm|speech|sound|signal|samples", re.IGNORECASE)
SOUND_RANK = 3
_SAMPLES = (4000, 4800, 3200)

_TIME = re.compile(r"time|frames|samples", re.IGNORECASE)
_FRAMES = (64, 96, 80)
"""Length of an axis whose name means time, such as that of a spectrogram."""

_ROOM = 2
"""A dimension that needs more than its prime gets this multiple of its least size, and more in other
draws: then a window has several places."""


def beginning(
    ports: Sequence[Port], chosen: Mapping[str, int], least: Mapping[str, int], draw: int
) -> dict[str, int]:
    """Return a size for each dimension of ``least``.

    ``chosen`` are the sizes of dimensions about which nothing is known: a batch and different primes.
    """
    known: dict[str, int] = {}
    for port in ports:
        known |= _of_picture(port, least, draw) or _of_sound(port, draw)
    sizes = {}
    for name, needed in least.items():
        size = known.get(name, chosen[name])
        sizes[name] = size if size >= needed else (_ROOM + draw) * needed + 1
    return sizes


def _of_picture(port: Port, least: Mapping[str, int], draw: int) -> dict[str, int]:
    """Return the sizes of a picture's open axes; nothing for any other input."""
    shape, names = port.type.shape or (), _names(port)
    if port.type.rank not in PICTURE_RANKS or not may_be_picture(port.type.dtype):
        return {}
    if shape[1] in CHANNELS:
        axes = (-2, -1)
    elif shape[-1] in CHANNELS:
        axes = (-3, -2)
    elif shape[1] is None and least.get(names[1]) in CHANNELS - {1}:  # the weights fix it
        axes = (-2, -1)
    else:
        return {}
    return {
        names[axis]: size for axis, size in zip(axes, _PICTURES[draw], strict=True) if shape[axis] is None
    }


def _of_sound(port: Port, draw: int) -> dict[str, int]:
    """Return the sizes of axes of time, by the name of the input or of the axis."""
    shape, names = port.type.shape or (), _names(port)
    if not is_floating(port.type.dtype) or not 0 < len(shape) <= SOUND_RANK:
        return {}
    found = {
        name: _FRAMES[draw]
        for name, size in zip(names, shape, strict=True)
        if size is None and _TIME.search(name)
    }
    if SOUND.search(port.name) and shape[-1] is None:
        found[names[-1]] = _SAMPLES[draw]
    return found


def _names(port: Port) -> tuple[str, ...]:
    return tuple(name or axis_name(axis) for axis, name in enumerate(port.type.axes))


def may_be_picture(dtype: str) -> bool:
    """Return whether pictures come in an element type."""
    return is_floating(dtype) or dtype == "uint8"
