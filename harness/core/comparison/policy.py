"""The policy that judges a cell: tolerances, limits of noise, steps of a quantization."""

import math
from typing import Literal

import msgspec

from harness.core.comparison.noise_limits import DEFAULT_LIMITS, NoiseLimits
from harness.core.comparison.tolerance import EXACT, FLOORS, UNIT_ROUNDOFF, Tolerance, default_tolerance

DEFAULT_STEPS = 1.0
"""Quantization steps by which an output may differ by default.

QNN accepts one: correct computations round a value between two steps to either one.
"""

JudgeBy = Literal["noise", "table", "both"]
"""What makes an output fail: the limits of noise, the tolerance, or only both together.

Where a model has no noise, the tolerance judges. ``both`` is the rule of the profiles published so far."""

_HALF = 0.5
"""Share of a precision's significand that an answer must keep."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy of one cell.

    Attributes:
        precision: The computing precision: a key of ``harness.core.comparison.tolerance.DEFAULTS``.
        fixed: ``rtol`` and ``atol`` that replace the built-in table; None for the table.
        judge_by: Whether the limits of noise, the tolerance, or only both together fail an output.
        limits: Limits in multiples of the model's rounding noise.
        noise_precision: The precision whose rounding makes the noise; empty for ``finest``.
        finest: The finest precision of the model's values where it is finer than ``precision``. Noise is
            drawn at this precision, and rounds each value to its own type. Empty if it equals ``precision``.
        steps: Quantization steps by which an output that is computed in integers may differ.
        bits: Output -> bits that it must keep where the EP computes more coarsely than the model asks; the
            empty name stands for all outputs without an entry.
        delivers: Coarser precisions that the EP may compute in by default, keys of
            ``harness.core.comparison.tolerance.FLOORS``. Empty if the matrix asks for a precision.
        own_precision: The precision of the model itself, a key of ``PRECISIONS`` in
            ``harness.core.noise.noise``; ``precision`` is coarser where the matrix asks for that. Empty if it
            equals ``precision``.
        converted: Whether the model was converted to another precision.
        remedy: How to make the EP compute at the model's own precision, in words; empty if unknown.
    """

    precision: str = "float32"
    fixed: Tolerance | None = None
    judge_by: JudgeBy = "noise"
    limits: NoiseLimits = DEFAULT_LIMITS
    noise_precision: str = ""
    finest: str = ""
    steps: float = DEFAULT_STEPS
    bits: dict[str, float] = {}
    delivers: tuple[str, ...] = ()
    own_precision: str = ""
    converted: bool = False
    remedy: str = ""

    @property
    def noise_at(self) -> str:
        """The precision whose rounding makes the noise."""
        return self.noise_precision or self.finest or self.precision

    def least_bits(self, output: str, precision: str) -> float:
        """Return the bits that an output must keep if it is computed at a precision.

        By default half of the significand: 5.5 at float16 and TF32, 4 at bfloat16, as the unit roundoff is
        ``2 ** -significand``.
        """
        given = self.bits.get(output, self.bits.get(""))
        return given if given is not None else -_HALF * math.log2(UNIT_ROUNDOFF[FLOORS[precision]])

    def is_coarser(self, precision: str) -> bool:
        """Return whether a precision is coarser than the model's own."""
        own = self.own_precision or self.precision
        return UNIT_ROUNDOFF[FLOORS.get(precision, precision)] > UNIT_ROUNDOFF[own]

    def tolerance_for(self, dtype: str) -> Tolerance:
        """Return the tolerance of an output by its element type.

        A matrix entry is about rounding. It does not apply to types that have one right answer.
        """
        default = default_tolerance(dtype, self.noise_precision or self.precision)
        return default if self.fixed is None or default == EXACT else self.fixed
