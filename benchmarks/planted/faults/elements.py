"""Faults in the elements of an output, whatever computed it."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.planted.arithmetic import Array, tf32
from benchmarks.planted.faults.fault import OTHER, SECOND, Fault
from benchmarks.planted.subject import Subject, is_float

Change = Callable[[Array], Array | None]
FEW = 4
"""Elements that an output has at least whose halves differ."""


def elements() -> Iterator[Fault]:
    """Yield the faults."""
    for name, change in CHANGES.items():
        yield Fault(name=name, make=on_last(change))
    for name, change in WHOLE.items():
        yield Fault(name=name, make=on_last(change, floats=False))
    for name, change in LATER.items():
        yield Fault(name=name, make=on_last(change))
    for name, change in LATER_WHOLE.items():
        yield Fault(name=name, make=on_last(change, floats=False))
    yield Fault(name="outputs swapped", make=_swapped)
    for name in (
        "off by 1e-3",
        "off by 10 %",
        "off by 30 %",
        "median element zero",
        "one NaN",
        "last row zero",
        "50 ulp on one element",
    ):
        yield Fault(name=f"other inputs: {name}", make=on_last(CHANGES[name], OTHER), run=OTHER)
    for name in ("off by one in one element", "one flag flipped", "next position"):
        yield Fault(name=f"other inputs: {name}", make=on_last(WHOLE[name], OTHER, floats=False), run=OTHER)
    yield Fault(name="other inputs: stale values", make=_stale(floats=True), run=OTHER)
    yield Fault(name="other inputs: stale positions, integers, flags", make=_stale(floats=False), run=OTHER)
    for name in ("off by 1e-3", "last row zero", "median element zero", "one NaN"):
        yield Fault(name=f"second run: {name}", make=on_last(CHANGES[name]), run=SECOND)
    yield Fault(
        name="second run: off by one in one element",
        make=on_last(WHOLE["off by one in one element"], floats=False),
        run=SECOND,
    )


def on_last(
    change: Change, run: str = "first", *, floats: bool = True
) -> Callable[[Subject], list[Array] | None]:
    """Return what changes the last output of floating numbers, or of others."""

    def make(subject: Subject) -> list[Array] | None:
        right = _right(subject, run)
        if right is None:
            return None
        fits = [index for index, value in enumerate(right) if is_float(value) is floats and value.size]
        found = change(right[fits[-1]].copy()) if fits else None
        if found is None:
            return None
        return [found if index == fits[-1] else value for index, value in enumerate(right)]

    return make


def _right(subject: Subject, run: str) -> list[Array] | None:
    if run != OTHER:
        return list(subject.honest)
    return None if subject.other is None else list(subject.other.honest)


def _swapped(subject: Subject) -> list[Array] | None:
    right = list(subject.honest)
    same = len(right) > 1 and right[0].shape == right[1].shape and right[0].dtype == right[1].dtype
    return [right[1], right[0], *right[2:]] if same else None


def _stale(*, floats: bool) -> Callable[[Subject], list[Array] | None]:
    def make(subject: Subject) -> list[Array] | None:
        if subject.other is None or is_float(subject.honest[-1]) is not floats:
            return None
        return list(subject.honest)

    return make


def _with(value: Array, index: Any, new: Any) -> Array:
    value[index] = new
    return value


def _at(value: Array, which: Callable[[Array], int], change: Callable[[Array], object]) -> Array | None:
    """Change one finite element that is not zero, chosen by its size."""
    flat = value.reshape(-1)
    wide = np.abs(np.asarray(flat, np.float64))
    places = np.flatnonzero(np.isfinite(wide) & (wide > 0))
    if not places.size:
        return None
    place = places[np.argsort(wide[places], kind="stable")[which(places)]]
    flat[place] = change(flat[place : place + 1])
    return value


def _least(_: Array) -> int:
    return 0


def _median(places: Array) -> int:
    return len(places) // 2


def _most(_: Array) -> int:
    return -1


def _ulps(count: int) -> Callable[[Array], object]:
    def change(one: Array) -> object:
        kind = {2: np.int16, 4: np.int32, 8: np.int64}[one.dtype.itemsize]
        return (one.view(kind) + kind(count)).view(one.dtype)[0]

    return change


def _small(value: Array, change: Callable[[Array], Array]) -> Array | None:
    """Change the half of the elements that are nearest to zero."""
    if value.size < FEW:
        return None
    sizes = np.abs(np.asarray(value, np.float64))
    half = sizes <= np.nanmedian(sizes)
    return np.where(half, change(value), value).astype(value.dtype)


def _scaled(factor: float) -> Change:
    return lambda value: (np.asarray(value, np.float64) * factor).astype(value.dtype)


def _offset(share: float) -> Change:
    def change(value: Array) -> Array:
        wide = np.asarray(value, np.float64)
        most = np.abs(wide[np.isfinite(wide)]).max(initial=0)
        return np.asarray(wide + share * most).astype(value.dtype)

    return change


def _lost_specials(value: Array) -> Array | None:
    odd = ~np.isfinite(np.asarray(value, np.float64))
    return np.where(odd, 0, value).astype(value.dtype) if odd.any() else None


def _infinities_lost(value: Array) -> Array | None:
    odd = np.isinf(np.asarray(value, np.float64))
    return np.where(odd, np.finfo(np.float32).max, value).astype(value.dtype) if odd.any() else None


def _row(value: Array, change: Callable[[Array], None]) -> Array | None:
    if value.ndim < 2 or value.shape[0] * value.shape[-1] < FEW:
        return None
    change(value.reshape(-1, value.shape[-1]))
    return value


def _transposed(value: Array) -> Array | None:
    rows = value.reshape(-1, value.shape[-1]) if value.ndim > 1 else value[None]
    return np.ascontiguousarray(rows.T).reshape(value.shape) if min(rows.shape) > 1 else None


def _garbage(value: Array) -> Array | None:
    if value.size < FEW:
        return None
    flat = value.reshape(-1)
    count = len(flat) - len(flat) // 2
    flat[len(flat) // 2 :] = (1e-30 * np.random.default_rng(1).standard_normal(count)).astype(value.dtype)
    return value


def _block(value: Array) -> Array | None:
    flat = value.reshape(-1)
    if flat.size < 4 * FEW:
        return None
    flat[FEW : 2 * FEW] = flat[:FEW]
    return value


def _set_row(at: int, to: object) -> Callable[[Array], None]:
    def change(rows: Array) -> None:
        rows[at] = to

    return change


def _set_column(rows: Array) -> None:
    rows[:, -1] = 0


def _copy_row(rows: Array) -> None:
    rows[-1] = rows[0]


def _rounded(kind: str) -> Change:
    import ml_dtypes

    types = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}

    def change(value: Array) -> Array | None:
        if value.dtype != np.float32:
            return None
        if kind == "tf32":
            return tf32(value).astype(np.float32)
        with np.errstate(all="ignore"):
            return value.astype(types[kind]).astype(np.float32)

    return change


def _single(value: Array) -> Array | None:
    return value.astype(np.float32).astype(np.float64) if value.dtype == np.float64 else None


CHANGES: dict[str, Change] = {
    "all zero": np.zeros_like,
    "last row zero": lambda value: _row(value, _set_row(-1, 0)),
    "first row zero": lambda value: _row(value, _set_row(0, 0)),
    "last column zero": lambda value: _row(value, _set_column),
    "first row in place of the last": lambda value: _row(value, _copy_row),
    "small half zero": lambda value: _small(value, np.zeros_like),
    "small half doubled": lambda value: _small(value, lambda one: one + one),
    "small half of other sign": lambda value: _small(value, lambda one: -one),
    "least element zero": lambda value: _at(value, _least, lambda _: 0),
    "median element zero": lambda value: _at(value, _median, lambda _: 0),
    "greatest element zero": lambda value: _at(value, _most, lambda _: 0),
    "50 ulp on one element": lambda value: _at(value, _median, _ulps(50)),
    "50 ulp on the least element": lambda value: _at(value, _least, _ulps(50)),
    "1,000 ulp on one element": lambda value: _at(value, _median, _ulps(1000)),
    "off by 1e-4": _scaled(1.0001),
    "off by 1e-3": _scaled(1.001),
    "off by 10 %": _scaled(1.1),
    "off by 30 %": _scaled(1.3),
    "other sign": lambda value: -value,
    "one element of other sign": lambda value: _at(value, _median, lambda one: -one[0]),
    "signs lost": np.abs,
    "offset of 1e-5 of the greatest": _offset(1e-5),
    "offset of 1e-3 of the greatest": _offset(1e-3),
    "shifted by one": lambda value: (
        np.roll(value.reshape(-1), 1).reshape(value.shape) if value.size > 1 else None
    ),
    "transposed": _transposed,
    "reversed rows": lambda value: value[::-1].copy() if value.ndim > 1 and len(value) > 1 else None,
    "reversed columns": lambda value: value[..., ::-1].copy() if value.shape[-1] > 1 else None,
    "a block repeated": _block,
    "half garbage of 1e-30": _garbage,
    "saturated at half": lambda value: np.minimum(
        value, np.nanmax(np.where(np.isfinite(value), value, 0)) / 2
    ).astype(value.dtype),
    "one NaN": lambda value: _at(value, _median, lambda _: np.nan),
    "one infinity": lambda value: _at(value, _median, lambda _: np.inf),
    "NaN and infinities lost": _lost_specials,
    "infinity as the largest number": _infinities_lost,
    "wider type": lambda value: value.astype(np.float64) if value.dtype == np.float32 else None,
    "narrower type": lambda value: value.astype(np.float16) if value.dtype == np.float32 else None,
    "a dimension more": lambda value: value[None],
    "a row less": lambda value: value[:-1] if value.ndim else None,
    "flat": lambda value: value.reshape(-1) if value.ndim > 1 else None,
    "float64 in float32": _single,
    "outputs in bfloat16": _rounded("bfloat16"),
    "outputs in float16": _rounded("float16"),
    "outputs in TF32": _rounded("tf32"),
}
"""Fault of an output of floating numbers -> what it does; None where it does not apply."""


def _one_more(value: Array) -> Array | None:
    if value.dtype == np.bool_:
        return None
    flat = value.reshape(-1)
    flat[len(flat) // 2] += 1
    return value


def _flip(value: Array) -> Array | None:
    if value.dtype != np.bool_:
        return None
    flat = value.reshape(-1)
    flat[len(flat) // 2] ^= True
    return value


WHOLE: dict[str, Change] = {
    "off by one in one element": _one_more,
    "off by one": lambda value: None if value.dtype == np.bool_ else value + value.dtype.type(1),
    "next position": lambda value: (
        np.where(value > 0, value - 1, value + 1) if value.dtype == np.int64 else None
    ),
    "three positions on": lambda value: value + 3 if value.dtype == np.int64 else None,
    "one flag flipped": _flip,
    "all flags flipped": lambda value: ~value if value.dtype == np.bool_ else None,
    "whole numbers: last row zero": lambda value: _row(value, _set_row(-1, 0)),
    "whole numbers: shifted by one": lambda value: np.roll(value.reshape(-1), 1).reshape(value.shape),
    "whole numbers: narrower type": lambda value: (
        value.astype(np.int16) if value.dtype.itemsize > 2 else None
    ),
    "whole numbers: a row less": lambda value: value[:-1],
    "wrapped to 8 bits": lambda value: (
        value.astype(np.int8).astype(value.dtype) if value.dtype.itemsize > 2 else None
    ),
}
"""The same of whole numbers, flags and positions."""


def _every_second(value: Array) -> Array | None:
    if value.size < FEW:
        return None
    value.reshape(-1)[1::2] = 0
    return value


def _one_row(rows: Array) -> None:
    rows[-1] = (rows[-1].astype(np.float64) * 1.002).astype(rows.dtype)


def _swap_rows(rows: Array) -> None:
    rows[[0, -1]] = rows[[-1, 0]]


def _three_digits(value: Array) -> Array | None:
    with np.errstate(all="ignore"):
        wide = np.asarray(value, np.float64)
        step = 10.0 ** (np.floor(np.log10(np.abs(np.where(wide == 0, 1, wide)))) - 2)
        found = np.where(np.isfinite(wide), np.round(wide / step) * step, wide)
        return found.astype(value.dtype)


def _swap_two(value: Array) -> Array | None:
    flat = value.reshape(-1)
    if flat.size < FEW or flat[0] == flat[-1]:
        return None
    flat[[0, -1]] = flat[[-1, 0]]
    return value


LATER: dict[str, Change] = {
    "every second element zero": _every_second,
    "one row off by 2e-3": lambda value: _row(value, _one_row),
    "two rows swapped": lambda value: _row(value, _swap_rows),
    "rounded to three digits": _three_digits,
    "two elements swapped": _swap_two,
    "the mean in place of the least half": lambda value: _small(
        value, lambda one: np.full_like(one, one.mean())
    ),
}
"""Faults that were written after the rules were final, and looked at once."""

LATER_WHOLE: dict[str, Change] = {
    "whole numbers: the last bit lost": lambda value: (
        None if value.dtype == np.bool_ else value & ~value.dtype.type(1)
    ),
    "whole numbers: two swapped": _swap_two,
    "whole numbers: the mean": lambda value: (
        None if value.dtype == np.bool_ else np.full_like(value, int(np.mean(value.astype(np.float64))))
    ),
}
"""The same of whole numbers, flags and positions."""
