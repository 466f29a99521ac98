"""Tolerances: they follow from the computing precision, not from the output's type."""

import math
from collections.abc import Callable, Iterable

import msgspec


class Tolerance(msgspec.Struct, frozen=True):
    """An element passes where ``|out - golden| <= atol + rtol * |golden|``.

    Attributes:
        rtol: Relative tolerance, at least 0, finite.
        atol: Absolute tolerance in the unit of the output, at least 0, finite.
    """

    rtol: float
    atol: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rtol) and math.isfinite(self.atol) and self.rtol >= 0 <= self.atol):
            raise ValueError(f"rtol and atol must be finite and at least 0: {self.rtol}, {self.atol}")


ToleranceFor = Callable[[str], Tolerance]
"""Element type of the golden -> tolerance."""

EXACT = Tolerance(rtol=0.0, atol=0.0)

DEFAULTS: dict[str, Tolerance] = {
    "float64": Tolerance(rtol=1e-5, atol=1e-5),
    "float32": Tolerance(rtol=1e-4, atol=1e-5),
    "float16": Tolerance(rtol=1e-3, atol=2.5e-3),
    "bfloat16": Tolerance(rtol=1e-2, atol=2e-2),
    "float8": Tolerance(rtol=0.16, atol=0.32),
}
"""Computing precision -> tolerance, finest first.

The first four are the defaults of onnxruntime's own C++ operator tests (``DefaultTolerance`` in
``onnxruntime/test/providers/checkers.cc``, builds without training): EPs are judged by the limits of their
own maintainers. There, float64 has float32's absolute and a tenth of its relative tolerance. This is loose
for double arithmetic, but its kernels often compute transcendental functions in single precision;
``delivered_bits`` shows the real precision. No limits for float8 are published: it has bfloat16's times 16,
the ratio of the unit roundoffs (2^-4 for E4M3, 2^-8).
"""

UNIT_ROUNDOFF: dict[str, float] = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8": 2.0**-4,
}
"""Computing precision -> largest relative error of one rounding to nearest.

Half of the distance from 1 to the next number. float8 is E4M3, the finer of its two common types.
"""

FLOORS: dict[str, str] = {
    "as_model": "float32",
    "float32": "float32",
    "tf32": "float16",
    "float16": "float16",
    "int16": "float16",
    "bfloat16": "bfloat16",
    "int8": "bfloat16",
    "mixed": "bfloat16",
    "float8": "float8",
    "int4": "float8",
}
"""Precision that a mode computes in -> the finest precision that it may be judged at.

TF32 has the significand of float16. An integer type is judged as the float whose rounding is as coarse as
half a step of its scale, relative to the largest value: 2^-8 for int8, 2^-4 for int4. int16 is finer than
float16, the next coarser entry here. ``mixed`` leaves the choice to the provider, which may use bfloat16.
"""

_TOLERANT = {*DEFAULTS, "complex64", "complex128"}
_COARSENESS = {precision: rank for rank, precision in enumerate(DEFAULTS)}


def default_tolerance(dtype: str, precision: str) -> Tolerance:
    """Return the tolerance of an output that no matrix entry selects.

    Args:
        dtype: Element type of the output, as in ``harness.core.values.value.DTYPES``, or ``string``.
        precision: The computing precision: a key of ``DEFAULTS``, usually from ``computing_precision``.

    Returns:
        The tolerance of the precision for floating and complex outputs, (0, 0) for everything else. Integers,
        booleans and strings have one right answer, quantized integers included (onnxruntime compares them
        exactly too; a matrix may grant a step). The same applies to float8 and float4, which are storage
        types. The standard defines their rounding, and neighbouring values are 6 % to 100 % apart, so that a
        tolerance below that step would mean equality.

    Raises:
        ValueError: The precision is not a key of ``DEFAULTS``.
    """
    if precision not in DEFAULTS:
        raise ValueError(f"no computing precision: {precision!r}; valid: {', '.join(DEFAULTS)}")
    return DEFAULTS[precision] if dtype in _TOLERANT else EXACT


def computing_precision(float_types: Iterable[str], computes: str) -> str:
    """Return the coarsest precision that a correct EP may compute a model in.

    Args:
        float_types: Element types that occur in the model; only float64, float32, float16 and bfloat16 count
            (float8 and float4 are stored; only a precision mode computes in them).
        computes: The precision that the cell's mode computes in, a key of ``FLOORS``; ``float32`` without a
            mode. A model without a coarser type is judged at its floor. This is float32 for a float64 model
            too, because accelerators without double units compute such models in single precision.

    Returns:
        The result is a key of ``DEFAULTS``, never ``float64``.

    Raises:
        ValueError: ``computes`` is not a key of ``FLOORS``.
    """
    floor = FLOORS.get(computes)
    if floor is None:
        raise ValueError(f"unknown precision {computes!r}; valid: {', '.join(FLOORS)}")
    candidates = {floor, *(_COARSENESS.keys() & set(float_types))}
    return max(candidates, key=_COARSENESS.__getitem__)


def finest_precision(float_types: Iterable[str], computes: str) -> str:
    """Return the precision that a correct EP computes the finest values of a model in.

    A model of several types rounds each value to its own type: weights stored in bfloat16 do not make a
    float32 product coarser. Arguments and errors as for ``computing_precision``.
    """
    floor = computing_precision((), computes)
    own = min(_COARSENESS.keys() & set(float_types), key=_COARSENESS.__getitem__, default=floor)
    return max(floor, own, key=_COARSENESS.__getitem__)
