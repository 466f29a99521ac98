"""What a cell is judged by: tolerances, limits of noise, steps of a quantization."""

from typing import Literal

import msgspec

from harness.core.spread import DEFAULT_LIMITS, NoiseLimits
from harness.core.tolerance import EXACT, Tolerance, default_tolerance

DEFAULT_STEPS = 1.0
"""Steps of its quantization that an output may be off by default.

QNN accepts one: two correct computations round a value that lies between two steps to either of them.
"""

JudgeBy = Literal["both", "noise", "table"]
"""What must fail before an output does: both, the limits of noise alone, or the tolerance alone."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What one cell is judged by.

    Attributes:
        precision: What the cell computes in: a key of ``harness.core.tolerance.DEFAULTS``.
        fixed: ``rtol`` and ``atol`` that replace the built-in table; None where the table holds.
        judge_by: Whether the tolerance, the limits of noise, or both must fail before an output does.
        limits: Limits in multiples of the model's rounding noise.
        noise_precision: Whose rounding makes the noise; empty for ``precision``.
        steps: Quantization steps that an output of quantized values may be off.
        delivers: Coarser precisions that the EP may compute in by its own default. Empty where the matrix
            asks for a precision.
        converted: Whether the model was converted to another precision.
    """

    precision: str = "float32"
    fixed: Tolerance | None = None
    judge_by: JudgeBy = "both"
    limits: NoiseLimits = DEFAULT_LIMITS
    noise_precision: str = ""
    steps: float = DEFAULT_STEPS
    delivers: tuple[str, ...] = ()
    converted: bool = False

    @property
    def noise_at(self) -> str:
        """Whose rounding makes the noise."""
        return self.noise_precision or self.precision

    def tolerance_for(self, dtype: str) -> Tolerance:
        """The tolerance of an output by its element type.

        A matrix entry is about rounding. It changes nothing for types that have one right answer.
        """
        default = default_tolerance(dtype, self.noise_at)
        return default if self.fixed is None or default == EXACT else self.fixed
