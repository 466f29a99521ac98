"""The error of an output as a multiple of its model's rounding noise, and a judgement by that where asked."""

from collections.abc import Mapping

import msgspec

from harness.core.output_metrics import Noise, OutputMetrics
from harness.core.spread import Floats, NoiseLimits, behaves_like, beyond, noise_of, rms_limit
from harness.core.value import Tensor


class NoiseRule(msgspec.Struct, frozen=True, kw_only=True):
    """What results are held against where the noise of their model is known.

    Attributes:
        precision: Whose rounding makes the noise.
        spreads: Leaf, named as ``harness.core.value.leaves`` names it -> spread, of the leaf's shape.
        limits: What judges; None where the noise is only told, and a tolerance judges.
    """

    precision: str
    spreads: Mapping[str, Floats]
    limits: NoiseLimits | None = None


def with_noise(
    row: OutputMetrics, golden: Tensor, actual: Tensor, rule: NoiseRule
) -> tuple[OutputMetrics, int]:
    """The row of an output that has a spread, and the place of its worst element in the flattened tensor.

    Args:
        row: As a tolerance has judged it.
        golden: The right answer.
        actual: What an EP computed; NaN and infinity where the golden has them.
        rule: It has a spread for the row's name.

    Returns:
        Where limits judge, ``mismatched`` counts the elements beyond ``limits.max``, and is 1 where only the
        root mean square is beyond its limit; ``headroom`` is the larger of multiple by limit.
    """
    spread, limits = rule.spreads[row.name], rule.limits
    rms, largest = noise_of(golden, actual, spread)
    noise = Noise(precision=rule.precision, rms=rms, max=largest, like=behaves_like(rms, rule.precision))
    if limits is None:
        return msgspec.structs.replace(row, noise=noise), 0
    count, at = beyond(golden, actual, spread, limits.max)
    allowed = rms_limit(limits, row.elements)
    headroom = max(rms / allowed, largest / limits.max)
    judged = msgspec.structs.replace(
        row,
        noise=msgspec.structs.replace(noise, rms_limit=allowed, max_limit=limits.max),
        mismatched=max(count, int(headroom > 1)),
        headroom=headroom,
    )
    return judged, at
