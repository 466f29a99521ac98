"""Sizes to begin with: pictures and sound as people have them, and different small primes for the rest."""

import re
from collections.abc import Mapping, Sequence

from harness.corpus.element_types import is_floating
from harness.corpus.port import Port
from harness.corpus.sizes import axis_name

DRAWS = 3
"""Sizes that are chosen for each model: those that are used, and two others for what fails."""

_PICTURES = ((64, 96), (96, 160), (160, 64))
"""Height and width in each draw: most networks for pictures halve them five times."""

_CHANNELS = frozenset({1, 3})
_PICTURE_RANKS = frozenset({4, 5})
"""Axes of pictures: batch, channels, height and width; videos have one more."""

_SOUND = re.compile(r"audio|wave|pcm|speech|sound|signal|samples", re.IGNORECASE)
_SOUND_RANK = 3
_SAMPLES = (4000, 4800, 3200)

_ROOM = 2
"""A dimension that needs more than its prime gets so many times its least size, more in other draws: then a
window has several places."""


def beginning(
    ports: Sequence[Port], chosen: Mapping[str, int], least: Mapping[str, int], draw: int
) -> dict[str, int]:
    """Return a size for each dimension of ``least``.

    ``chosen`` are the sizes where nothing is known about a dimension: a batch and different primes.
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
    if port.type.rank not in _PICTURE_RANKS or not _may_be_picture(port.type.dtype):
        return {}
    channels = [least.get(names[axis]) if shape[axis] is None else shape[axis] for axis in (1, -1)]
    if channels[0] in _CHANNELS:
        axes = (-2, -1)
    elif channels[1] in _CHANNELS and channels[1] == shape[-1]:
        axes = (-3, -2)
    else:
        return {}
    return {
        names[axis]: size
        for axis, size in zip(axes, _PICTURES[draw], strict=True)
        if shape[axis] is None
    }


def _of_sound(port: Port, draw: int) -> dict[str, int]:
    """Return the number of samples of an input that is sound by its name."""
    shape = port.type.shape or ()
    sounds = is_floating(port.type.dtype) and _SOUND.search(port.name) is not None
    if not sounds or not 0 < len(shape) <= _SOUND_RANK or shape[-1] is not None:
        return {}
    return {_names(port)[-1]: _SAMPLES[draw]}


def _names(port: Port) -> tuple[str, ...]:
    return tuple(name or axis_name(axis) for axis, name in enumerate(port.type.axes))


def _may_be_picture(dtype: str) -> bool:
    return is_floating(dtype) or dtype == "uint8"
