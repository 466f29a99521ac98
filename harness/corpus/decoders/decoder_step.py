"""One step of a decoder as inputs of a single run: some of its tokens, and the cache of those before."""

from collections.abc import Iterator, Mapping

import numpy as np

from harness.core.values.value import Array, NamedValues, Tensor, Value
from harness.corpus.decoders.decoder import Decoder


def step_inputs(
    decoder: Decoder, whole: NamedValues, computed: Mapping[str, Value], start: int, end: int
) -> NamedValues | None:
    """Return the inputs that feed the positions from ``start`` to before ``end`` of a text.

    ``whole`` feeds the whole text at once, with an empty cache; ``computed`` are its outputs, which contain
    the cache. A decoder without a cache is fed all positions up to ``end``.

    Returns:
        None if the cache is not among the outputs.
    """
    if decoder.cache and start and not all(pair.present in computed for pair in decoder.cache):
        return None
    return tuple(_inputs(decoder, whole, computed, start if decoder.cache else 0, end))


def _inputs(
    decoder: Decoder, whole: NamedValues, computed: Mapping[str, Value], start: int, end: int
) -> Iterator[tuple[str, Value]]:
    presents = {pair.past: pair.present for pair in decoder.cache if start}
    for name, value in whole:
        source = computed[presents[name]] if name in presents else value
        if isinstance(source, Tensor):
            source = Tensor(dtype=source.dtype, array=_step(decoder, name, source.array, start, end))
        yield name, source


def _step(decoder: Decoder, name: str, array: Array, start: int, end: int) -> Array:
    """Return the value of an input in a step.

    For an input of the cache, ``array`` is the corresponding output.
    """
    axes = {pair.past: pair.axis for pair in decoder.cache}
    if name in (decoder.tokens, decoder.positions):
        return _cut(array, 1, start, end)
    if name == decoder.mask:
        return _kept(array, 1, end, is_fixed=decoder.masks_cache)
    if name in axes and start:
        return _kept(array, axes[name], start, is_fixed=decoder.cache_length is not None)
    if decoder.counts.get(name) == "places":
        return _cut(array, 0, start, end)
    return np.full_like(array, start) if name in decoder.counts else array


def _kept(array: Array, axis: int, end: int, *, is_fixed: bool) -> Array:
    """Return the part before a position; zeros fill the rest of a fixed length."""
    if not is_fixed:
        return _cut(array, axis, 0, end)
    kept = array.copy()
    kept[(slice(None),) * axis + (slice(end, None),)] = 0
    return kept


def _cut(array: Array, axis: int, start: int, end: int) -> Array:
    return array[(slice(None),) * axis + (slice(start, end),)].copy()
