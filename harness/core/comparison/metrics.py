"""Measure how far one tensor lies from its golden, in one pass over blocks of elements.

Blocks bound the memory (a tensor of any size needs some megabytes in addition) and keep the work in the
cache. They also give the same sums, however many threads BLAS would use for a long vector.
"""

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.comparison.subnormals import USEFUL, flushed
from harness.core.comparison.tolerance import DEFAULTS, Tolerance
from harness.core.values.value import Array, Floats, Tensor

BLOCK = 8192
"""Elements that are processed at a time. OpenBLAS starts threads for dot products beyond 10,000."""

_BLOCK_BYTES = 1 << 20
"""Bytes of a tensor up to which it is copied to be compared bit by bit."""

LARGEST_FLOAT64 = float(np.finfo(np.float64).max)
_SMALLEST = 5e-324  # the least positive float64

ATOL_GRID: tuple[float, ...] = tuple(
    sorted({0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, *(t.atol for t in DEFAULTS.values())})
)
"""The absolute tolerances of a frontier.

0 is for purely relative policies. Decades from 1e-7 (the least that the suites of ONNX, PyTorch, Polygraphy
and onnxruntime use) to 1 (a quantization step of an integer) keep a record short. The absolute tolerances of
``DEFAULTS`` are on the grid, so that judging again at any of them is exact.
"""

EXACT_FRONTIER = ((0.0, 0.0),)


class OutputFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of ``measure_error``; those of ``OutputMetrics`` have its definitions.

    Positions are indices into the flattened tensor, or None.

    Attributes:
        special: Mismatched elements with NaN, or infinity of some sign, on one side only.
        special_at: The first of these.
        signed_zeros: Elements that are zero on both sides, of different sign; they count as equal.
        flushed: Elements that are zero on one side and subnormal on the other; they count as equal, too.
        flushed_part: Norm of these over that of the golden, in types whose subnormal numbers are of use; 0
            where the golden is all zero.
        max_abs: None without a jointly finite pair, or where it overflows.
        max_abs_at: Its position; the first if several are equal.
        max_abs_allowed: ``atol + rtol * |golden|`` at that position.
        max_rel: 0.0 when exact; None where golden is all zero and the result is not, or where it overflows.
        max_rel_at: Its position, unless it is 0.0.
        cosine: In [-1, 1]; the real part for complex. 1.0 when exact, all zeros included. None where exactly
            one of the two is zero.
        sqnr_db: None when exact or golden is all zero; so is ``delivered_bits``.
        headroom: Greater than 1.0 exactly where an element mismatches.
        frontier: At the atols of ``ATOL_GRID`` and of the tolerance, to within rounding. An atol that no rtol
            passes is left out: an empty frontier means that no tolerance of the grid passes.
    """

    mismatched: int
    special: int
    special_at: int | None
    signed_zeros: int
    flushed: int
    flushed_part: float
    max_abs: float | None
    max_abs_at: int | None
    max_abs_allowed: float | None
    max_rel: float | None
    max_rel_at: int | None
    rmse: float | None
    cosine: float | None
    sqnr_db: float | None
    delivered_bits: float | None
    headroom: float | None
    frontier: tuple[tuple[float, float], ...]


def measure_error(golden: Tensor, actual: Tensor, tolerance: Tolerance) -> OutputFigures:
    """Compare two numeric tensors of equal shape; their element types may differ.

    Differences between integers of one type are exact (without overflow; rounded to float64 once, at the
    end). All others are computed in float64 or complex128. -0.0 equals +0.0. A complex element counts as not
    finite if one of its parts is not. No figure of the result is NaN or infinite, and no warning is raised.

    Args:
        golden: The right answer, any shape, empty and 0-d included.
        actual: What an EP computed, of the same shape.
        tolerance: Decides ``mismatched`` and ``headroom``; its ``atol`` is in the ``frontier``.
    """
    flat_golden, flat_actual = golden.array.reshape(-1), actual.array.reshape(-1)
    exact_integers = _is_integer(golden.dtype) and _is_integer(actual.dtype)
    # Both as one type: if one side is complex, the other gets an imaginary part of 0.
    wide = max(golden.dtype, actual.dtype, key=lambda dtype: dtype.startswith("complex"))
    sums = _Sums(tolerance)
    with np.errstate(all="ignore"):
        for start in range(0, flat_golden.size, BLOCK):
            left, right = flat_golden[start : start + BLOCK], flat_actual[start : start + BLOCK]
            if exact_integers:
                sums.add(
                    start, _integer_error(left, right), left.astype(np.float64), right.astype(np.float64)
                )
            else:
                sums.add_floats(start, widen(left, wide), sums.unflushed(left, right, wide))
    return sums.result()


def same_bits(one: Array, other: Array) -> bool:
    """Return whether two arrays of one shape and element type are equal bit by bit.

    Large ones are compared by blocks: copies would double the memory.
    """
    if one.nbytes <= _BLOCK_BYTES:
        return one.tobytes() == other.tobytes()
    left, right = (np.ascontiguousarray(side).reshape(-1).view(np.uint8) for side in (one, other))
    return all(
        np.array_equal(left[at : at + _BLOCK_BYTES], right[at : at + _BLOCK_BYTES])
        for at in range(0, left.size, _BLOCK_BYTES)
    )


def any_finite(value: Tensor) -> bool:
    """Return whether a numeric tensor holds a finite element; no if it is empty."""
    if _is_integer(value.dtype) or not value.array.size:
        return value.array.size > 0
    # The first element nearly always decides. ``item``, because numpy's ``flat`` allows 32 dimensions only.
    return _some_finite(value.array.item(0)) or _some_finite(value.array)


# A signalling NaN makes casts and predicates of some types warn.
@np.errstate(invalid="ignore")
def _some_finite(numbers: Any) -> bool:
    return bool(np.isfinite(numbers).any())


@np.errstate(invalid="ignore")
def special_codes(numbers: Array) -> NDArray[np.uint8]:
    """Return a code per element: 0 finite, 1 NaN, 2 infinity, 3 minus infinity; for complex a pair of codes.

    The numbers are float64 or complex128, in any shape.
    """
    if np.iscomplexobj(numbers):
        return special_codes(numbers.real) + np.uint8(4) * special_codes(numbers.imag)
    codes = np.zeros(numbers.shape, np.uint8)
    codes[np.isnan(numbers)] = 1
    codes[np.isposinf(numbers)] = 2
    codes[np.isneginf(numbers)] = 3
    return codes


class _Sums:
    """Running sums and maxima over the blocks of one pair of tensors."""

    def __init__(self, tolerance: Tolerance) -> None:
        self.tolerance = tolerance
        self.grid, self.atols = _grid_with(tolerance.atol)
        self.pairs = self.mismatched = self.special = self.signed_zeros = self.flushed = 0
        self.special_at: int | None = None
        self.error_sq = self.golden_sq = self.actual_sq = self.inner = self.flushed_sq = 0.0
        # -1: no element yet. Maxima may become infinite here; result() turns that into None.
        self.max_abs = self.max_rel = -1.0
        self.max_abs_at = self.max_rel_at = 0
        self.max_abs_allowed = self.headroom = 0.0
        self.needed_rtol = np.zeros(len(self.grid))

    def unflushed(self, golden: Array, actual: Array, dtype: str) -> Array:
        """Return the actual elements, wide, with the golden's in place of those that are flushed to zero."""
        left, right = widen(golden, dtype), widen(actual, dtype)
        zeroed = flushed(left, right, dtype)
        if zeroed.any():
            self.flushed += int(np.count_nonzero(zeroed))
            self.flushed_sq += _norm_sq((right - left)[zeroed]) if dtype in USEFUL else 0.0
            right[zeroed] = left[zeroed]
        return right

    def add_floats(self, start: int, golden: Array, actual: Array) -> None:
        """Add a block of float64 or complex128 elements, of which ``start`` is the first."""
        finite = np.isfinite(golden) & np.isfinite(actual)
        places = None
        if not finite.all():
            differs = np.flatnonzero(special_codes(golden) != special_codes(actual))
            if differs.size and self.special_at is None:
                self.special_at = start + int(differs[0])
            self.special += differs.size
            self.mismatched += differs.size
            places = np.flatnonzero(finite)
            golden, actual = golden[places], actual[places]
        self._count_signed_zeros(golden, actual)
        self.add(start, np.abs(actual - golden), golden, actual, places)

    def add(
        self, start: int, error: Floats, golden: Array, actual: Array, places: NDArray[np.intp] | None = None
    ) -> None:
        """Add finite elements; ``places`` are their places in the block, None for all of it."""
        if not error.size:
            return
        self.pairs += error.size
        self.golden_sq += _norm_sq(golden)
        self.actual_sq += _norm_sq(actual)
        self.inner += float(np.vdot(golden, actual).real)
        # The modulus of a finite complex number may overflow; infinity would make everything allowed.
        magnitude = np.minimum(np.abs(golden), LARGEST_FLOAT64)
        worst = int(error.argmax())
        largest = float(error[worst])
        if largest > self.max_abs:
            self.max_abs = largest
            self.max_abs_at = start + (worst if places is None else int(places[worst]))
            self.max_abs_allowed = self.tolerance.atol + self.tolerance.rtol * float(magnitude[worst])
        if largest == 0.0:
            if self.max_rel < 0 and magnitude.any():
                self.max_rel = 0.0
            return
        self.error_sq += float(np.dot(error, error))
        self._judge(error, magnitude)
        self._relative(start, error, magnitude, places)
        rows = int(np.searchsorted(self.grid, largest))
        needed = np.fmax.reduce((error - self.grid[:rows, None]) / magnitude, axis=1)
        # In each of these rows some error exceeds atol, so an rtol of 0 is an underflow.
        self.needed_rtol[:rows] = np.fmax(np.fmax(needed, _SMALLEST), self.needed_rtol[:rows])

    def _count_signed_zeros(self, golden: Array, actual: Array) -> None:
        left, right = golden.view(np.float64), actual.view(np.float64)
        opposed = np.signbit(left) != np.signbit(right)
        if opposed.any():
            self.signed_zeros += int(np.count_nonzero(opposed & (left == 0) & (right == 0)))

    def _judge(self, error: Floats, magnitude: Floats) -> None:
        allowed = self.tolerance.atol + self.tolerance.rtol * magnitude
        self.mismatched += int(np.count_nonzero(error > allowed))
        # fmax ignores 0/0: no error where none is allowed.
        self.headroom = max(self.headroom, float(np.fmax.reduce(error / allowed, initial=0.0)))

    def _relative(
        self, start: int, error: Floats, magnitude: Floats, places: NDArray[np.intp] | None
    ) -> None:
        relative = np.where(magnitude > 0, error / magnitude, -1.0)
        worst = int(relative.argmax())
        if relative[worst] > self.max_rel:
            self.max_rel = float(relative[worst])
            self.max_rel_at = start + (worst if places is None else int(places[worst]))

    def result(self) -> OutputFigures:
        exact = self.max_abs == 0.0
        max_rel = 0.0 if exact else self.max_rel
        error, golden = math.sqrt(self.error_sq), math.sqrt(self.golden_sq)
        # 0 stands for no ratio, also where the square of the error underflows.
        ratio = golden / error if error > 0 and math.isfinite(error) else 0.0
        return OutputFigures(
            mismatched=self.mismatched,
            special=self.special,
            special_at=self.special_at,
            signed_zeros=self.signed_zeros,
            flushed=self.flushed,
            flushed_part=math.sqrt(self.flushed_sq) / golden if self.flushed_sq and golden else 0.0,
            max_abs=_finite(self.max_abs) if self.pairs else None,
            max_abs_at=self.max_abs_at if self.pairs else None,
            max_abs_allowed=_finite(self.max_abs_allowed) if self.pairs else None,
            max_rel=_finite(max_rel) if max_rel >= 0 else None,
            max_rel_at=self.max_rel_at if max_rel > 0 else None,
            rmse=_finite(error / math.sqrt(self.pairs)) if self.pairs else None,
            cosine=1.0 if exact else self._cosine(),
            sqnr_db=_finite(20 * math.log10(ratio)) if 0 < ratio < math.inf else None,
            delivered_bits=_finite(math.log2(ratio)) if 0 < ratio < math.inf else None,
            headroom=_finite(self.headroom) if not self.special else None,
            frontier=() if self.special else self._frontier(),
        )

    def _cosine(self) -> float | None:
        scale = math.sqrt(self.golden_sq) * math.sqrt(self.actual_sq)
        if not (0 < scale < math.inf and math.isfinite(self.inner)):
            return None
        return min(1.0, max(-1.0, self.inner / scale))

    def _frontier(self) -> tuple[tuple[float, float], ...]:
        pairs = []
        for atol, rtol in zip(self.atols, self.needed_rtol.tolist(), strict=True):
            if math.isfinite(rtol):
                pairs.append((atol, rtol))
            if rtol == 0.0:
                break
        return tuple(pairs)


_GRID = np.array(ATOL_GRID)


def _grid_with(atol: float) -> tuple[Floats, tuple[float, ...]]:
    """Return the grid of a frontier with the cell's own ``atol``; a verdict reads the frontier alone."""
    if atol in ATOL_GRID:
        return _GRID, ATOL_GRID
    atols = tuple(sorted((*ATOL_GRID, atol)))
    return np.array(atols), atols


@np.errstate(invalid="ignore")
def widen(numbers: Array, dtype: str) -> Array:
    """Return the elements as float64, or complex128 if their element type is complex."""
    return numbers.astype(np.complex128 if dtype.startswith("complex") else np.float64)


def widen_tensor(tensor: Tensor) -> Array:
    """Return the elements of a tensor as ``widen`` does."""
    return widen(tensor.array, tensor.dtype)


@np.errstate(all="ignore")
def norm_of(numbers: Array) -> float:
    """Return the root of the sum of the squares of the finite numbers; no square overflows."""
    sizes = np.abs(np.where(np.isfinite(numbers), numbers, 0.0)).astype(np.float64)
    scale = float(sizes.max(initial=0.0))
    return scale * float(np.sqrt(np.sum(np.square(sizes / scale)))) if scale else 0.0


def is_close(actual: Array, golden: Array, tolerance: Tolerance) -> NDArray[np.bool_]:
    """Return which elements of two wide arrays are equal, both NaN, or finite and within a tolerance."""
    size = np.abs(golden)
    near = np.abs(actual - golden) <= tolerance.atol + tolerance.rtol * np.where(np.isfinite(size), size, 0.0)
    close: NDArray[np.bool_] = near | (actual == golden) | (np.isnan(actual) & np.isnan(golden))
    return close


def _is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint")) or dtype == "bool"


def _integer_error(golden: Array, actual: Array) -> Floats:
    """Return ``|actual - golden|``; without overflow if the two types are the same."""
    if golden.dtype != actual.dtype:
        return np.abs(actual.astype(np.float64) - golden.astype(np.float64))
    wide: type[Any] = np.uint64 if golden.dtype == np.uint64 else np.int64
    left, right = golden.astype(wide), actual.astype(wide)
    # The bits of larger - smaller, read as unsigned, are the exact difference.
    distance: Array = (np.maximum(left, right) - np.minimum(left, right)).view(np.uint64)
    return distance.astype(np.float64)


def _norm_sq(numbers: Array) -> float:
    return float(np.vdot(numbers, numbers).real)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
