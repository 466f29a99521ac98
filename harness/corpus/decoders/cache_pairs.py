"""The cache among a decoder's inputs and outputs: which output replaces which input.

Exporters give the two equal names except for a word: ``past_key_values.0.key`` and ``present.0.key``,
``past_0`` and ``present_0``, ``k_cache_in_0`` and ``k_cache_out_0``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from harness.corpus.model.port import ValueType

_RANK = 3
"""Least number of axes of a cache: texts, positions, elements."""

_DIGITS = 10
"""Digits of a number that counts nothing."""

_WORDS = re.compile(r"[a-z]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TOGETHER = re.compile(r"key_?values?")
"""A word for keys and values together, which does not identify the part."""

_SAME = {"k": "key", "v": "value", "keys": "key", "values": "value"}
_NOISE = frozenset(
    (  # noqa: SIM905 - a list would take 25 lines
        "cache cached caches cur current in input inputs kv new next old out output outputs past pasts pkv "
        "present presents prev previous state states updated"
    ).split()
)
"""Words that distinguish input from output, or mark a cache."""

_CACHE = frozenset({"cache", "cached", "caches", "key", "kv", "past", "pasts", "pkv", "present", "value"})
"""Words for a cache: the name of a cache has at least one."""

_LENGTH = re.compile(r"past|seq|len|total|cache", re.IGNORECASE)
"""Words in the symbol of the axis of positions."""


class CachePair(msgspec.Struct, frozen=True, kw_only=True):
    """A cached tensor: an input, the output that takes its place in the next step, the axis of positions."""

    past: str
    present: str
    axis: int


def cache_pairs(
    inputs: Mapping[str, ValueType], outputs: Mapping[str, ValueType], batch: str | None
) -> tuple[CachePair, ...] | str:
    """Return the pairs in the order of the layers, none if no input looks like a cache; or what is missing.

    The inputs are those without another role, the outputs all but the logits. ``batch`` is the symbol of the
    axis of texts; empty if it has no name, None if its size is fixed.
    """
    pasts = [
        name for name, kind in inputs.items() if kind.rank >= _RANK and _CACHE.intersection(_words(name))
    ]
    named = _by_name(pasts, inputs, outputs)
    if len(named) < len(pasts):
        named = _by_order(pasts, inputs, outputs)
    if len(named) < len(pasts):
        lone = next(name for name in pasts if name not in named)
        return f"no output takes the place of its input {lone!r} in the next step"
    # Some exporters list all keys before all values.
    return pairs_with_axes(sorted(named.items(), key=lambda pair: _layer(pair[0])), inputs, outputs, batch)


def pairs_with_axes(
    names: Iterable[tuple[str, str]],
    inputs: Mapping[str, ValueType],
    outputs: Mapping[str, ValueType],
    batch: str | None,
) -> tuple[CachePair, ...] | str:
    """Return the pairs of some inputs and outputs with their axes of positions; or why an axis is unknown."""
    pairs = []
    for past, present in names:
        axis = positions_axis(inputs[past], outputs[present], batch)
        if axis is None:
            return f"the axis of the positions of its input {past!r} cannot be told"
        pairs.append(CachePair(past=past, present=present, axis=axis))
    return tuple(pairs)


def positions_axis(past: ValueType, present: ValueType, batch: str | None) -> int | None:
    """Return the axis that is longer after a step, else the only possible one; None if it is unknown."""
    before, after = past.axes, present.axes
    if len(before) != len(after):
        return None
    sizes = tuple(zip(past.shape or (), present.shape or (), strict=True))
    grown = [axis for axis, (old, new) in enumerate(sizes) if old != new and None not in (old, new)]
    renamed = [
        axis
        for axis, (old, new) in enumerate(zip(before, after, strict=True))
        if old not in {new, batch} and (old or new)
    ]
    free = [axis for axis, old in enumerate(before) if old is not None and not (batch and old == batch)]
    if batch == "" and len(free) > 1:
        free = free[1:]
    for axes in (grown, renamed, free):
        if len(axes) == 1:
            return axes[0]
        told = [
            axis for axis in axes if _LENGTH.search(before[axis] or "") or _LENGTH.search(after[axis] or "")
        ]
        if len(told) == 1:
            return told[0]
    # (..., texts, heads, positions, elements), as most exporters have it.
    return len(before) - 2 if len(before) > _RANK else None


def _by_name(
    pasts: Sequence[str], inputs: Mapping[str, ValueType], outputs: Mapping[str, ValueType]
) -> dict[str, str]:
    """Return input -> output, for names that match exactly one other."""
    keys = {name: _key(name) for name in outputs}
    counts = Counter(keys.values())
    again = Counter(map(_key, pasts))
    found = {keys[name]: name for name in outputs}
    return {
        past: found[_key(past)]
        for past in pasts
        if counts[_key(past)] == again[_key(past)] == 1 and _fits(inputs[past], outputs[found[_key(past)]])
    }


def _by_order(
    pasts: Sequence[str], inputs: Mapping[str, ValueType], outputs: Mapping[str, ValueType]
) -> dict[str, str]:
    """Return input -> output by position, if equally many of both may be a cache and each pair fits."""
    presents = [name for name, kind in outputs.items() if any(_fits(inputs[past], kind) for past in pasts)]
    if len(presents) != len(pasts):
        return {}
    pairs = dict(zip(pasts, presents, strict=True))
    return pairs if all(_fits(inputs[past], outputs[present]) for past, present in pairs.items()) else {}


def _fits(past: ValueType, present: ValueType) -> bool:
    """Return whether both have one type and rank, and differ in at most one size."""
    if past.rank != present.rank or past.dtype != present.dtype:
        return False
    sizes = zip(past.shape or (), present.shape or (), strict=True)
    return sum(old != new and None not in (old, new) for old, new in sizes) <= 1


def _words(name: str) -> list[str]:
    text = _TOGETHER.sub("kv ", _CAMEL.sub("_", name).lower())
    return [_SAME.get(word, word) for word in _WORDS.findall(text)]


def _layer(name: str) -> int:
    """Return the first number of a name, which counts the layers."""
    return next((int(word) for word in _words(name) if word.isdecimal() and len(word) < _DIGITS), 0)


def _key(name: str) -> tuple[str, ...]:
    """Return the words that are the same in input and output, in any order."""
    return tuple(sorted(word for word in _words(name) if word not in _NOISE))
