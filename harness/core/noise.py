"""The error of an output as a multiple of its model's rounding noise."""

from collections.abc import Mapping

import msgspec

from harness.core import wording
from harness.core.output_metrics import Noise, OutputMetrics
from harness.core.spread import Floats, behaves_like, beyond, noise_of
from harness.core.value import Tensor

TOLD = 3.0
"""Multiple of the noise from which on a record names the worst element: any usual limit lies above."""


class NoiseRule(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of a model, for the comparison of its results.

    Attributes:
        precision: Whose rounding makes the noise.
        spreads: Leaf, named as ``harness.core.value.leaves`` names it -> spread, of the leaf's shape.
    """

    precision: str
    spreads: Mapping[str, Floats]


def with_noise(row: OutputMetrics, golden: Tensor, actual: Tensor, rule: NoiseRule) -> OutputMetrics:
    """The row of an output that has a spread, with its error in multiples of the noise.

    Args:
        row: Of the comparison.
        golden: The right answer.
        actual: What an EP computed; NaN and infinity where the golden has them.
        rule: It has a spread for the row's name.
    """
    spread = rule.spreads[row.name]
    rms, largest = noise_of(golden, actual, spread)
    worst = ""
    if largest > TOLD:
        worst = wording.got_and_golden(golden, actual, beyond(golden, actual, spread, largest)[1])
    noise = Noise(
        precision=rule.precision, rms=rms, max=largest, like=behaves_like(rms, rule.precision), worst=worst
    )
    return msgspec.structs.replace(row, noise=noise)
