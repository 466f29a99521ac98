"""Sizes of a model's open dimensions, for generated inputs.

Dimensions of different names get different sizes. With equal sizes, and above all with 1, an operator along a
wrong axis would still give the right answer.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from harness.corpus.inputs.fitting.fit import NO_FIT, Fit
from harness.corpus.model.port import Port, ValueType
from harness.corpus.model.symbols import axis_name, computed, free_symbols

BATCH_NAME = re.compile(r"batch|^(?:n|b|bs)$", re.IGNORECASE)
"""Names of the batch dimension."""

BATCH_SIZE = 2
TABLE_ROWS = 97
"""Of a table whose values are compared with thresholds, categories or other rows: most of these then occur,
and a kernel that takes 8 or 16 rows at once has a rest."""

_PRIMES = (3, 5, 7, 11, 13)
"""Sizes of the other dimensions: all of them and their products with 2 are different.

Five are enough for most models; further names reuse them in turn, so that tensors stay small.
"""

SizePattern = int | str
"""``"distinct"``: the batch is 2, or that of a table, and the others take ``_PRIMES``. ``"single"``: the same
with a batch of 1.

An integer, or ``"image:N"``: every size is that number; with ``"image:N"`` the batch is 1. In another draw
the primes are the next ones, and a number is doubled or tripled.
"""

_TOTAL = re.compile(r"total|(?:full|kv|all)_?(?:seq|len)", re.IGNORECASE)
_PAST = re.compile(r"past|cache", re.IGNORECASE)
_LENGTH = re.compile(r"seq|len", re.IGNORECASE)


def open_dimensions(ports: Iterable[Port]) -> tuple[str, ...]:
    """Return the names of the dimensions without a size, in the order of the inputs, or their ``axis_name``.

    An expression such as ``past + new`` stands for the names in it.
    """
    return free_symbols(name for port in ports for name in _open(port.type))


def sizes_of(
    ports: Sequence[Port],
    pattern: SizePattern,
    given: Mapping[str, int],
    fit: Fit = NO_FIT,
    draw: int = 0,
    rows: int = BATCH_SIZE,
) -> dict[str, int]:
    """Return a size for each dimension of ``open_dimensions``.

    ``given`` sizes override the graph's requirements from ``fit``, which override the pattern. ``rows`` is
    the batch of the pattern ``"distinct"``.
    """
    names = open_dimensions(ports)
    batch = batch_dimensions(names, ports)
    if isinstance(pattern, int):
        chosen = dict.fromkeys(names, pattern * (1 + draw))
    elif pattern.startswith("image:"):
        size = int(pattern.removeprefix("image:")) * (1 + draw)
        chosen = {name: 1 if name in batch else size for name in names}
    else:
        others = [name for name in names if name not in batch]
        primes = {name: _PRIMES[(number + draw) % len(_PRIMES)] for number, name in enumerate(others)}
        chosen = primes | (fit.draws[draw] if fit.draws else {})
        if pattern == "single" or not fit.draws:
            chosen |= dict.fromkeys(batch, rows + draw if pattern == "distinct" else 1)
    if pattern != "distinct":
        chosen |= {name: max(chosen[name], size) for name, size in fit.least.items()}
    return completed(ports, chosen, given)


def completed(ports: Sequence[Port], sizes: Mapping[str, int], given: Mapping[str, int]) -> dict[str, int]:
    """Return sizes with the given ones, and with those that follow from both."""
    chosen = {**sizes, **given}
    return chosen | _totals(open_dimensions(ports), chosen, given)


def dimension_size(name: str, sizes: Mapping[str, int]) -> int | None:
    """Return the size of a dimension by its name, which may be an expression; None if it is unknown."""
    size = sizes.get(name)
    return computed(name, sizes) if size is None else size


def _open(declared: ValueType | None) -> Iterable[str]:
    while declared is not None:
        for axis, size in enumerate(declared.shape or ()):
            if size is None:
                yield declared.axes[axis] or axis_name(axis)
        declared = declared.item


def batch_dimensions(names: Sequence[str], ports: Sequence[Port]) -> tuple[str, ...]:
    """Return the batch dimensions: by their names, or else the first axis of the first input."""
    named = tuple(name for name in names if BATCH_NAME.search(name))
    if named:
        return named
    for port in ports:
        if port.type.axes and port.type.axes[0] is not None:
            first = port.type.axes[0] or axis_name(0)
            if first in names:
                return (first,)
    return ()


def _totals(names: Sequence[str], sizes: Mapping[str, int], given: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of dimensions that count past and new tokens together, by exporters' usual names."""
    lengths = [name for name in names if _LENGTH.search(name)]
    totals = [name for name in lengths if _TOTAL.search(name)]
    past = [name for name in lengths if name not in totals and _PAST.search(name)]
    new = [name for name in lengths if name not in totals and name not in past]
    if len(past) != 1 or len(new) != 1:
        return {}
    return {name: sizes[past[0]] + sizes[new[0]] for name in totals if name not in given}
