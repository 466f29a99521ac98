"""A curve of the divergence over the positions of a text, on one scale for all curves of a report."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

import msgspec

from harness.core.text.counted import plural
from harness.report.words.figures import brief

_WIDTH, _HEIGHT = 240.0, 56.0
"""Units of the drawing; a page stretches it to the available width."""

LEAST, _MOST = 1e-15, 10.0
"""Ends of the logarithmic scale, in nats.

The divergence grows with the square of the logits' error, so rounding in float32 gives some 1e-12, and in
float16 some 1e-6. Values below 1e-15 are only rounding of the divergence itself, which is computed in
float64. A distribution unrelated to the golden's over some ten thousand tokens is near the upper end.
"""

_RULES = (1e-12, 1e-9, 1e-6, 1e-3, 1.0)
"""Divergences with a line."""

MOST_POINTS = 120
"""Largest number of points of a curve; more positions are drawn in groups, by the largest value of each."""

_EDGE = 3.0


class KlCurve(msgspec.Struct, frozen=True, kw_only=True):
    """One curve.

    Attributes:
        broken: ``(x, width)`` of the gaps.
        rules: Heights of the lines of ``_RULES``.
        bad: Where the first failing position is; null if none fails.
    """

    path: str
    broken: tuple[tuple[float, float], ...]
    rules: tuple[float, ...]
    bad: float | None
    label: str

    width: ClassVar = _WIDTH
    height: ClassVar = _HEIGHT


def kl_curve(values: Sequence[float | None], bad: int | None) -> KlCurve | None:
    """Draw the divergence at each position, in nats, None where it is not finite; None without any position.

    ``bad`` is the first failing position.
    """
    if not values:
        return None
    groups = _grouped(values)
    step = _WIDTH / len(groups)
    path: list[str] = []
    broken: list[tuple[float, float]] = []
    for finite, members in groupby(enumerate(groups), key=lambda pair: pair[1] is not None):
        run = list(members)
        if finite:
            path.append(_line(run, step))
        else:
            broken.append((round(run[0][0] * step, 1), round(len(run) * step, 1)))
    inside = bad is not None and 0 <= bad < len(values)
    return KlCurve(
        path=" ".join(path),
        broken=tuple(broken),
        rules=tuple(map(_y, _RULES)),
        bad=round((bad + 0.5) * _WIDTH / len(values), 1) if inside and bad is not None else None,
        label=_label(values, bad),
    )


def _grouped(values: Sequence[float | None]) -> list[float | None]:
    """Return the largest of each group of neighbours; None if one of them is not finite."""
    size = math.ceil(len(values) / MOST_POINTS)
    parts = (values[start : start + size] for start in range(0, len(values), size))
    return [None if None in part else max(value or 0.0 for value in part) for part in parts]


def _line(run: Sequence[tuple[int, float | None]], step: float) -> str:
    points = [f"{round((index + 0.5) * step, 1):g} {_y(value or 0.0):g}" for index, value in run]
    # A line of one point has no length; round ends make it a dot.
    return f"M{points[0]}" + ("h0" if len(points) == 1 else "L" + " ".join(points[1:]))


def _y(value: float) -> float:
    share = math.log(min(max(value, LEAST), _MOST) / LEAST) / math.log(_MOST / LEAST)
    return round(_HEIGHT - _EDGE - share * (_HEIGHT - 2 * _EDGE), 1)


def _label(values: Sequence[float | None], bad: int | None) -> str:
    finite = [(value, index) for index, value in enumerate(values) if value is not None]
    told = [f"KL divergence over {plural(len(values), 'position')}"]
    if finite:
        value, index = max(finite, key=lambda pair: (pair[0], -pair[1]))
        told.append(f"largest {brief(value)} nats at position {index:,}")
    if len(finite) < len(values):
        told.append(f"not finite at {len(values) - len(finite):,}")
    if bad is not None:
        told.append(f"first failing position {bad:,}")
    return "; ".join(told)
