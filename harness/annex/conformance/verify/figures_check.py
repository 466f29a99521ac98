"""Check the arithmetic between the figures of an output: all follow from the same errors.

The laws hold for every row of 60,000 records of real runs. With errors ``e``, goldens ``g``, ``n`` elements:
``rmse <= max_abs <= sqrt(n) * rmse``; the frontier ``f(a) = max((e - a) / |g|)`` falls, is convex, and is 0
from ``max_abs`` on; ``headroom`` h lies on it, ``f(h * atol) = h * rtol``; ``sqnr_db = 20 log10(2) *
delivered_bits``; for a relative error r below 1 ``cosine >= sqrt(1 - r^2)``.
"""

import itertools
import math
from collections.abc import Iterator

from harness.core.comparison.metrics import ATOL_GRID
from harness.core.comparison.output_metrics import Frontier, Noise, OutputMetrics
from harness.core.comparison.policy import Policy

_SLACK = 1e-6
"""Relative slack for figures that were rounded in several ways."""

_DB_PER_BIT = 20 * math.log10(2)
_TINY = 1e-150
"""Errors below this may underflow when squared."""

LARGE_NUMBER = 1e150
"""Numbers from this on exceed float64 when squared; a record then has no ``rmse``."""

_CONTAINERS = frozenset({"sequence", "map", "optional", "string"})


def figure_faults(row: OutputMetrics, policy: Policy) -> Iterator[str]:
    """Yield contradictions within one output."""
    if row.mismatched < 0 or row.elements < 0 or any(size < 0 for size in row.shape):
        yield "a negative count"
        return
    if any(
        figure is not None and figure < 0 for figure in (row.max_abs, row.max_rel, row.rmse, row.headroom)
    ):
        yield "a negative error"
        return
    if row.differs or row.dtype in _CONTAINERS:
        return
    if row.elements != math.prod(row.shape):
        yield f"{row.elements} elements in the shape {list(row.shape)}"
    if row.mismatched > max(1, row.elements):
        yield f"{row.mismatched} of {row.elements} elements mismatch"
    wanted = policy.tolerance_for(row.dtype)
    if (row.rtol, row.atol) != (wanted.rtol, wanted.atol):
        yield f"judged by rtol {row.rtol:g}, atol {row.atol:g}, not {wanted.rtol:g}, {wanted.atol:g}"
    if row.is_special or row.max_abs is None:
        return
    if row.cosine is not None and abs(row.cosine) > 1 + _SLACK:
        yield f"cosine {row.cosine:g}"
    yield from _sizes(row, row.max_abs)
    yield from _frontier(row, row.max_abs)
    yield from _headroom(row)
    if row.noise is not None:
        yield from _noise(row.noise, row.max_abs)


def _sizes(row: OutputMetrics, max_abs: float) -> Iterator[str]:
    if row.rmse is None:
        if max_abs < LARGE_NUMBER:
            yield "max_abs without rmse"
    elif row.rmse > max_abs * (1 + _SLACK):
        yield f"rmse {row.rmse:g} above max_abs {max_abs:g}"
    elif max_abs > _TINY and row.rmse * math.sqrt(max(1, row.elements)) < max_abs * (1 - _SLACK):
        yield f"rmse {row.rmse:g} too small for max_abs {max_abs:g} of {row.elements} elements"
    if max_abs == 0 and (row.max_rel or row.delivered_bits is not None or row.cosine not in {None, 1.0}):
        yield "errors of an exact output"
    bits, decibels = row.delivered_bits, row.sqnr_db
    if (bits is None) != (decibels is None):
        yield "sqnr_db without delivered_bits, or the reverse"
    elif bits is not None and decibels is not None:
        if abs(decibels - bits * _DB_PER_BIT) > _SLACK * max(1.0, abs(decibels)):
            yield f"sqnr_db {decibels:g} is not {bits:g} bits"
        error = row.relative_error or 0.0
        if error < 1 and row.cosine is not None and row.cosine < math.sqrt(1 - error * error) - _SLACK:
            yield f"cosine {row.cosine:g} too small for a relative error of {error:.3g}"


def _frontier(row: OutputMetrics, max_abs: float) -> Iterator[str]:
    frontier = row.frontier
    atols = [atol for atol, _ in frontier]
    if atols != sorted(set(atols)) or not set(atols) <= {*ATOL_GRID, row.atol}:
        yield "the frontier has other atols than the grid"
        return
    if any(rtol < 0 or (rtol == 0) != (atol >= max_abs) for atol, rtol in frontier):
        yield f"the frontier does not reach 0 at max_abs {max_abs:g}"
        return
    if sum(rtol == 0 for _, rtol in frontier) > 1:
        yield "the frontier goes on after 0"
    elif max_abs <= max(ATOL_GRID) and (not frontier or frontier[-1][1] != 0):
        yield f"the frontier ends before max_abs {max_abs:g}"
    if frontier and frontier[0][0] == 0 and not _near(frontier[0][1], row.max_rel or 0.0):
        yield f"the frontier begins at {frontier[0][1]:g}, not at max_rel {row.max_rel}"
    if not _falls_convexly((*(pair for pair in frontier if pair[1] > 0), (max_abs, 0.0))):
        yield "the frontier is not falling and convex"


def _falls_convexly(points: Frontier) -> bool:
    if any(left[1] < right[1] for left, right in itertools.pairwise(points)):
        return False
    for (a, x), (b, y), (c, z) in zip(points, points[1:], points[2:], strict=False):
        if y > (x + (z - x) * (b - a) / (c - a)) * (1 + _SLACK) + _TINY:
            return False
    return True


def _headroom(row: OutputMetrics) -> Iterator[str]:
    """Check ``headroom`` where the tolerance gave it, not noise or granted steps."""
    granted = row.details is not None and row.details.granted > 0
    judged_by_noise = row.noise is not None and row.noise.rms_limit is not None
    headroom = row.headroom
    if headroom is None or granted or judged_by_noise:
        return
    passes = _rtol_at(row.frontier, row.atol) <= row.rtol
    if passes != (headroom <= 1 + _SLACK) or passes != (row.mismatched == 0):
        yield f"headroom {headroom:g} and {row.mismatched} mismatched elements do not fit the frontier"
        return
    atol, rtol = headroom * row.atol, headroom * row.rtol
    above = [needed for at, needed in row.frontier if at <= atol * (1 - _SLACK)]
    below = [needed for at, needed in row.frontier if at >= atol * (1 + _SLACK)]
    if (below and rtol < below[0] * (1 - _SLACK)) or (above and rtol > above[-1] * (1 + _SLACK)):
        yield f"headroom {headroom:g} does not lie on the frontier"


def _noise(noise: Noise, max_abs: float) -> Iterator[str]:
    if noise.rms < 0 or noise.rms > noise.max * (1 + _SLACK):
        yield f"noise.rms {noise.rms:g} above noise.max {noise.max:g}"
    if (noise.max > 0) != (max_abs > 0):
        yield f"noise.max {noise.max:g} with max_abs {max_abs:g}"


def _rtol_at(frontier: Frontier, atol: float) -> float:
    return next((r for a, r in frontier if a == atol or (r == 0 and a < atol)), math.inf)


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _SLACK * max(abs(one), abs(other))
