"""Data of other shapes for a model, cut or repeated from its own data.

The symbolic dimensions of the model's inputs vary. A symbol has one size in all inputs; a sum or product of
others (``past + sequence``, ``2*batch``) follows them.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from harness.core.values.value import STRING, Array, Tensor, Value
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.inputs.open_sizes import BATCH_NAME
from harness.corpus.model.port import Port
from harness.corpus.model.symbols import axis_name, computed

GIVEN = "given"
"""Name of the data set with the sizes of the model's own data."""

MOST_SYMBOLS = 4
"""Number of symbols that vary, each in its own run; further ones keep their size."""

_FADE = 0.875
"""Factor between a float and its next repetition: exact in every type, within any range around zero."""

_FADING = frozenset({"float64", "float32", "float16", "bfloat16"})
_MASK_VALUES = 2

_Sizes = dict[str, int]

Grid = Mapping[str, Sequence[int]]
"""Symbol -> the sizes that it takes."""


def other_shapes(case: Case, grid: Grid | None = None) -> tuple[DataSet, ...]:
    """Return data of the given shape, of others that differ in one symbol each, and of the given shape again.

    The symbols are those named in the model's settings, else the batch and the first of the others. The batch
    is doubled; any other size is halved, or doubled if it is 1. Repetitions differ from the original: floats
    fade by 7/8, integers of more than two values rotate. Masks, flags and texts stay as they are. With a
    grid, every combination of its sizes runs in place of these; symbols that the model lacks are left out.

    Returns:
        Return data sets named by the difference, such as ``batch=2``; none if no dimension can vary.
    """
    given = case.data_sets[0]
    sizes = _sizes(case.ports, given)
    steps = _combined(sizes, grid) if grid else _steps(sizes, _batch(case.ports, sizes), case.vary)
    if not steps:
        return ()
    first = msgspec.structs.replace(given, name=GIVEN)
    return first, *(_resized(given, case.ports, sizes, step) for step in steps), first


def empty_batch(case: Case) -> tuple[DataSet, ...]:
    """Return an empty batch, then the given data, which show whether the session still works.

    Returns:
        Return no data sets if no input has a batch that can vary.
    """
    given = case.data_sets[0]
    sizes = _sizes(case.ports, given)
    batch = _batch(case.ports, sizes)
    if batch is None:
        return ()
    return _resized(given, case.ports, sizes, {batch: 0}), msgspec.structs.replace(given, name=GIVEN)


SLOTS = 3
"""Slots of the batch in ``batch_slots``: two would not show which of the others disturbs one."""


def batch_slots(case: Case) -> tuple[DataSet, ...]:
    """Return the given data, a batch of different slots, the slots in reverse order, and each by itself.

    A model whose inputs all begin with a dimension of one fixed size cannot run a slot by itself.

    Returns:
        Return no data sets if no input has a batch.
    """
    given = msgspec.structs.replace(case.data_sets[0], name=GIVEN)
    sizes = _sizes(case.ports, given)
    batch = _batch(case.ports, sizes)
    if batch is None or computed(batch, sizes) == sizes[batch]:  # free symbols have no value of others
        turned = _turned(given, None, case.ports)
        return (given, turned) if turned is not None else ()
    whole = _resized(given, case.ports, sizes, {batch: SLOTS})
    whole = msgspec.structs.replace(whole, name=f"{SLOTS} slots")
    turned = _turned(whole, batch, case.ports)
    alone = (_slot(whole, batch, case.ports, at) for at in range(SLOTS))
    return tuple(one for one in (given, whole, turned, *alone) if one is not None)


def _turned(whole: DataSet, batch: str | None, ports: tuple[Port, ...]) -> DataSet | None:
    """Return a batch with its slots in reverse order; None if it has fewer than two."""
    axes = _batch_axes(whole, batch, ports)
    if not axes or (batch is None and not _is_fixed_batch(whole, axes)):
        return None
    inputs = []
    for name, value in whole.inputs:
        if isinstance(value, Tensor) and name in axes:
            array = np.ascontiguousarray(np.flip(value.array, axes[name]))
            value = Tensor(dtype=value.dtype, array=array)  # noqa: PLW2901 - the same input in another order
        inputs.append((name, value))
    return DataSet(name="slots in reverse order", inputs=tuple(inputs))


def _slot(whole: DataSet, batch: str, ports: tuple[Port, ...], at: int) -> DataSet:
    """Return one slot of a batch as a batch of its own."""
    axes = _batch_axes(whole, batch, ports)
    inputs = []
    for name, value in whole.inputs:
        if isinstance(value, Tensor) and name in axes:
            array = np.ascontiguousarray(value.array.take([at], axes[name]))
            value = Tensor(dtype=value.dtype, array=array)  # noqa: PLW2901 - the same input, a part of it
        inputs.append((name, value))
    return DataSet(name=f"slot {at} alone", inputs=tuple(inputs))


def _batch_axes(whole: DataSet, batch: str | None, ports: tuple[Port, ...]) -> dict[str, int]:
    """Return input -> the axis of the batch; the first axis of each tensor if no symbol has it."""
    values = dict(whole.inputs)
    if batch is None:
        return {name: 0 for name, value in values.items() if isinstance(value, Tensor) and value.array.ndim}
    return {
        port.name: axis
        for port in ports
        for axis, (symbol, _) in _dimensions(port, values.get(port.name)).items()
        if symbol == batch
    }


def _is_fixed_batch(whole: DataSet, axes: dict[str, int]) -> bool:
    """Return whether all inputs begin with the same size, two or more: a batch, as far as shapes show."""
    shapes = [value.array.shape for _, value in whole.inputs if isinstance(value, Tensor)]
    first = {shape[0] for shape in shapes if len(shape) > 1}
    return len(axes) == len(shapes) == len(whole.inputs) and len(first) == 1 and min(first) > 1


def _sizes(ports: tuple[Port, ...], given: DataSet) -> _Sizes:
    """Return the size of each symbol in a data set; symbols with several sizes, or size 0, are left out."""
    sizes: _Sizes = {}
    contradicted: set[str] = set()
    values = dict(given.inputs)
    for port in ports:
        for symbol, size in _dimensions(port, values.get(port.name)).values():
            if sizes.setdefault(symbol, size) != size:
                contradicted.add(symbol)
    return {symbol: size for symbol, size in sizes.items() if size and symbol not in contradicted}


def _dimensions(port: Port, value: Value) -> dict[int, tuple[str, int]]:
    """Return symbol and size of each axis of an input; the axis identifies an unnamed dimension."""
    symbols = port.type.symbols
    if not isinstance(value, Tensor) or len(symbols) != value.array.ndim:
        return {}
    return {
        axis: (symbol or axis_name(axis), size)
        for axis, (symbol, size) in enumerate(zip(symbols, value.array.shape, strict=True))
        if symbol is not None
    }


def _batch(ports: tuple[Port, ...], sizes: _Sizes) -> str | None:
    """Return the symbol of the batch: by its name, or else the first symbol of an input's first axis."""
    leading = (symbol for port in ports for symbol in port.type.symbols[:1])
    candidates = [symbol for symbol in sizes if BATCH_NAME.search(symbol)]
    candidates += [symbol or axis_name(0) for symbol in leading if symbol is not None]
    return next((symbol for symbol in candidates if symbol in sizes), None)


def _combined(sizes: _Sizes, grid: Grid) -> tuple[_Sizes, ...]:
    """Return every combination of the sizes of a grid, of symbols that may vary."""
    free = [symbol for symbol in grid if symbol in sizes and computed(symbol, sizes) != sizes[symbol]]
    every = itertools.product(*(grid[symbol] for symbol in free)) if free else ()
    return tuple(dict(zip(free, chosen, strict=True)) for chosen in every)


def _steps(sizes: _Sizes, batch: str | None, vary: tuple[str, ...]) -> tuple[_Sizes, ...]:
    """Return what differs in each run, the batch first, or in the order of ``vary``."""
    free = [symbol for symbol in sizes if computed(symbol, sizes) != sizes[symbol]]
    free.sort(key=lambda symbol: symbol != batch)
    chosen = [symbol for symbol in vary if symbol in free] if vary else free[:MOST_SYMBOLS]
    return tuple(
        {symbol: sizes[symbol] * 2 if symbol == batch or sizes[symbol] == 1 else sizes[symbol] // 2}
        for symbol in chosen
    )


def _resized(given: DataSet, ports: tuple[Port, ...], sizes: _Sizes, step: _Sizes) -> DataSet:
    after = sizes | step
    after |= {
        symbol: size
        for symbol in sizes
        if symbol not in step
        and computed(symbol, sizes) == sizes[symbol]
        and (size := computed(symbol, after)) is not None
    }
    kinds = {port.name: port for port in ports}
    inputs = []
    for name, value in given.inputs:
        for axis, (symbol, _) in _dimensions(kinds[name], value).items() if name in kinds else ():
            if isinstance(value, Tensor) and symbol in after:
                value = _resize(value, axis, after[symbol])  # noqa: PLW2901 - one axis after the other
        inputs.append((name, value))
    differs = ", ".join(f"{symbol}={size}" for symbol, size in step.items())
    return DataSet(name=differs, inputs=tuple(inputs))


def _resize(value: Tensor, axis: int, size: int) -> Tensor:
    array = value.array
    before = array.shape[axis]
    copies = [array, *(_repetition(value, axis, number) for number in range(1, -(-size // before)))]
    whole = np.concatenate(copies, axis) if len(copies) > 1 else array
    cut: Any = (slice(None),) * axis + (slice(size),)
    return Tensor(dtype=value.dtype, array=np.ascontiguousarray(whole[cut]))


def _repetition(value: Tensor, axis: int, number: int) -> Array:
    """Return a tensor's elements, changed as much as their range allows."""
    array = value.array
    if value.dtype in _FADING:
        return (array.astype(np.float64) * _FADE**number).astype(array.dtype)
    others = [other for other in range(array.ndim) if other != axis]
    if value.dtype in {STRING, "bool"} or not others or np.unique(array).size <= _MASK_VALUES:
        return array
    rolled: Array = np.roll(array, number, others[-1])
    return rolled
