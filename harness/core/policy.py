"""The policy that judges a cell: tolerances, limits of noise, steps of a quantization."""

from typing import Literal

import msgspec

from harness.core.noise import DEFAULT_LIMITS, NoiseLimits
from harness.core.tolerance import EXACT, Tolerance, default_tolerance

DEFAULT_STEPS = 1.0
"""Steps of its quantization by which an output may differ by default.

QNN accepts one: correct computations round a value between two steps to either of them.
"""

JudgeBy = Literal["both", "noise", "table"]
"""What must fail before an output does: both, the limits of noise alone, or the tolerance alone."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy of one cell.

    Attributes:
        precision: The computing precision: a key of ``harness.core.tolerance.DEFAULTS``.
        fixed: ``rtol`` and ``atol`` that replace the built-in table; None for the table.
        judge_by: Whether the tolerance, the limits of noise, or both must fail before an output does.
        limits: Limits in multiples of the model's rounding noise.
        noise_precision: The precision whose rounding makes the noise; empty for ``precision``.
        steps: Quantization steps by which an output of quantized values may differ.
        delivers: Coarser precisions that the EP may compute in by default, keys of
            ``harness.core.tolerance.FLOORS``. Empty if the matrix asks for a precision.
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
        """The precision whose rounding makes the noise."""
        return self.noise_precision or self.precision

    def tolerance_for(self, dtype: str) -> Tolerance:
        """Return the tolerance of an output by its element type.

        A matrix entry is about rounding and does not apply to types that have one right answer.
        """
        default = default_tolerance(dtype, self.noise_at)
        return default if self.fixed is None or default == EXACT else self.fixed
