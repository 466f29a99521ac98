"""One step of a decoder as inputs of a single run: some of its tokens, and the cache of those before."""

from collections.abc import Iterator, Mapping

import numpy as np

from harness.core.value import NamedValues, Tensor, Value
from harness.corpus.decoder import Decoder

_SEQUENCE_AXIS = 1
"""Of tokens, positions and mask."""


def step_inputs(
    decoder: Decoder, whole: NamedValues, computed: Mapping[str, Value], start: int, end: int
) -> NamedValues | None:
    """Return the inputs that feed the positions from ``start`` to ``end`` of a text.

    Args:
        decoder: The roles of inputs and outputs.
        whole: Inputs that feed the whole text at once, with an empty cache.
        computed: The outputs for these, of which the cache is taken.
        start: Positions that the cache holds; a decoder without a cache is fed all positions up to ``end``.
        end: The position behind the last one.

    Returns:
        None if the cache is not among the outputs.
    """
    if decoder.cache and start and not all(pair.present in computed for pair in decoder.cache):
        return None
    return tuple(_inputs(decoder, whole, computed, start if decoder.cache else 0, end))


def _inputs(
    decoder: Decoder, whole: NamedValues, computed: Mapping[str, Value], start: int, end: int
) -> Iterator[tuple[str, Value]]:
    pasts = {pair.past: pair for pair in decoder.cache}
    for name, value in whole:
        if name in (decoder.tokens, decoder.positions):
            yield name, _cut(value, _SEQUENCE_AXIS, start, end)
        elif name == decoder.mask:
            yield name, _kept(value, _SEQUENCE_AXIS, end, decoder.masks_cache)
        elif name in pasts and start:
            present, axis = computed[pasts[name].present], pasts[name].axis
            yield name, _kept(present, axis, start, decoder.cache_length is not None)
        elif decoder.counts.get(name) == "places":
            yield name, _cut(value, 0, start, end)
        elif name in decoder.counts:
            yield name, _moved(value, start)
        else:
            yield name, value


def _moved(value: Value, start: int) -> Value:
    if not isinstance(value, Tensor):
        return value
    return Tensor(dtype=value.dtype, array=np.full_like(value.array, start))


def _kept(value: Value, axis: int, end: int, is_fixed: bool) -> Value:  # noqa: FBT001 - a flag of the decoder
    """Return what is before a position; of a fixed length, zeros stand for the rest."""
    if not is_fixed or not isinstance(value, Tensor):
        return _cut(value, axis, 0, end)
    array = value.array.copy()
    array[(slice(None),) * axis + (slice(end, None),)] = 0
    return Tensor(dtype=value.dtype, array=array)


def _cut(value: Value, axis: int, start: int, end: int) -> Value:
    if not isinstance(value, Tensor):
        return value
    index = (slice(None),) * axis + (slice(start, end),)
    return Tensor(dtype=value.dtype, array=value.array[index].copy())
