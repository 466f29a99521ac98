"""The rules by which a result passes or fails: the harness's own two, and those that others use."""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import numpy as np

from benchmarks.detection.effect import flat
from benchmarks.detection.net import Array
from harness.core.comparison.noise_limits import DEFAULT_LIMITS, NoiseLimits
from harness.core.comparison.policy import Policy as CellPolicy
from harness.core.comparison.tolerance import DEFAULTS, default_tolerance
from harness.core.noise.noise import NoiseRule
from harness.core.values.value import STRING, Floats, NamedValues, Tensor
from harness.core.verdicts.compare import compare_all

Spread = Mapping[str, Floats]
"""Leaf of an output -> its noise."""

BOTH = "table and noise"
CALIBRATED = "calibrated"
TABLE = "onnxruntime C++ operator tests"


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A result beside what it should be.

    Attributes:
        golden: The right answer.
        result: What a provider made of the model.
        precision: What the provider computes in: a key of ``harness.core.comparison.tolerance.DEFAULTS``.
        spread: The model's noise at that precision; None where it has none.
    """

    golden: NamedValues
    result: NamedValues
    precision: str
    spread: Spread | None


Wrong = Callable[[Array, Array, str], Array]
"""Errors, magnitudes of the golden and its element type -> which elements are wrong."""

Judge = Callable[[Pair], bool]
"""Whether a result fails."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A rule.

    Attributes:
        name: As in the tables.
        what: Its terms.
        fails: The rule.
    """

    name: str
    what: str
    fails: Judge


def by_table(pair: Pair) -> bool:
    """The harness's own table, which is the one of onnxruntime's C++ operator tests."""

    def wrong(error: Array, size: Array, dtype: str) -> Array:
        allowed = default_tolerance(dtype, pair.precision)
        return error > allowed.atol + allowed.rtol * size

    return _any_leaf(pair, wrong, nan_equal=True)


def by_noise(pair: Pair, limits: NoiseLimits = DEFAULT_LIMITS) -> bool:
    """The calibrated tolerance; what is no float, and what has no noise, goes by the table."""
    return _fails(pair, CellPolicy(precision=pair.precision, limits=limits))


def by_both(pair: Pair) -> bool:
    """The rule of the published profiles: the table and the noise must both fail."""
    return _fails(pair, CellPolicy(precision=pair.precision, judge_by="both"))


def _fails(pair: Pair, policy: CellPolicy) -> bool:
    noise = None if pair.spread is None else NoiseRule(precision=pair.precision, spreads=pair.spread)
    found = compare_all(pair.golden, pair.result, policy.tolerance_for, noise=noise, policy=policy)
    return found.verdict is not None


def fixed(rtol: float, atol: float) -> Judge:
    """numpy's ``assert_allclose``: ``|error| <= atol + rtol |golden|``, for numbers of every type."""

    def fails(pair: Pair) -> bool:
        return _any_leaf(pair, lambda error, size, _dtype: error > atol + rtol * size, nan_equal=True)

    return fails


def by_polygraphy(pair: Pair) -> bool:
    """An element is wrong that exceeds both 1e-5 absolute and 1e-5 relative; NaN and infinity always are."""
    bound = lambda error, size, _dtype: (error > 1e-5) & (error > 1e-5 * size)  # noqa: E731 - a name for one line
    return _any_leaf(pair, bound, nan_equal=False)


PYTORCH = {
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
}


def by_pytorch(pair: Pair) -> bool:
    """``torch.testing.assert_close``: by what computes; integers exactly; NaN is never equal."""
    rtol, atol = PYTORCH[pair.precision]

    def wrong(error: Array, size: Array, _dtype: str) -> Array:
        return error > atol + rtol * size

    return _any_leaf(pair, wrong, nan_equal=False, integers=True)


POLICIES = (
    Policy(
        name=CALIBRATED,
        what=f"error up to {DEFAULT_LIMITS.rms:g} x noise (RMS), any element's {DEFAULT_LIMITS.max:g} x",
        fails=by_noise,
    ),
    Policy(name=BOTH, what="the harness's own table and noise must both fail", fails=by_both),
    Policy(
        name=TABLE,
        what=f"rtol {DEFAULTS['float32'].rtol:g}, atol {DEFAULTS['float32'].atol:g}; the harness's own table",
        fails=by_table,
    ),
    Policy(name="Polygraphy", what="rtol 1e-5 or atol 1e-5", fails=by_polygraphy),
    Policy(name="PyTorch assert_close", what="rtol 1.3e-6, atol 1e-5", fails=by_pytorch),
    Policy(name="onnxruntime Python backend tests", what="rtol 1e-3, atol 1e-5", fails=fixed(1e-3, 1e-5)),
    Policy(name="ONNX backend tests", what="rtol 1e-3, atol 1e-7", fails=fixed(1e-3, 1e-7)),
)
"""Those that somebody uses."""

SWEEP = tuple(
    Policy(name=f"rtol = atol = {bound:g}", what="", fails=fixed(bound, bound))
    for bound in (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7)
)
"""Every fixed tolerance that one might choose, to see whether any could do as well."""

LIMITS = tuple(
    Policy(name=f"{CALIBRATED}, rms {rms:g}", what="", fails=partial(by_noise, limits=NoiseLimits(rms=rms)))
    for rms in (2.0, 2.5, 4.0)
)
"""The calibrated tolerance with other limits of the root mean square, to see what its own one costs."""


def _any_leaf(pair: Pair, wrong: Wrong, *, nan_equal: bool, integers: bool = False) -> bool:
    golden, found = flat(pair.golden), flat(pair.result)
    return golden.keys() != found.keys() or any(
        _is_wrong(right, found[name], wrong, nan_equal=nan_equal, integers=integers)
        for name, right in golden.items()
    )


def _is_wrong(
    golden: Tensor,
    found: Tensor,
    wrong: Wrong,
    *,
    nan_equal: bool,
    integers: bool,
) -> bool:
    if golden.dtype != found.dtype or golden.array.shape != found.array.shape:
        return True
    if golden.dtype == STRING or (integers and golden.array.dtype.kind in "iub"):
        return not np.array_equal(golden.array, found.array)
    left, right = golden.array.astype(np.float64), found.array.astype(np.float64)
    finite = np.isfinite(left) & np.isfinite(right)
    if not finite.all():
        if not nan_equal or not np.array_equal(left[~finite], right[~finite], equal_nan=True):
            return True
        left, right = left[finite], right[finite]
    return bool(wrong(np.abs(right - left), np.abs(left), golden.dtype).any())
