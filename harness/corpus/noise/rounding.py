"""How a result is rounded at a precision: nodes that draw the error."""

from collections.abc import Iterator
from typing import Literal

import msgspec
import onnx

from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.noise.noise import PRECISIONS
from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.corpus.model.schema_types import FLOAT_TYPES
from harness.corpus.noise import BFLOAT16_CASTS
from harness.corpus.noise.drawing import DOUBLE, FLOAT_TENSOR, FOUND, Beside, RoundingDraws
from harness.corpus.noise.operator_rounding import COMPOSED, STEPWISE

ROUNDOFF = {kind: UNIT_ROUNDOFF[ELEMENT_TYPES[number]] for kind, number in FLOAT_TYPES.items()}
"""Types that operators compute in -> unit roundoff."""

_CASTS = {"float16": 10, "bfloat16": 16}
"""Precisions that a Cast rounds to -> ``TensorProto.DataType``."""

ACCUMULATED, SUMMED = 0.5, 0.42
"""Half-widths of the noise of a sum of n terms, in ``sqrt(n)`` unit roundoffs: on its terms, and on the sum.

A sum that grows term by term rounds each partial sum. With rounding errors of zero mean and a root mean
square of 0.42 unit roundoffs (uniform within half a unit in the last place, the significand spread
logarithmically), terms of variance ``s^2`` and mean ``m`` leave an error of variance
``0.42^2 u^2 n^2 (s^2 / 2 + n m^2 / 3)``. Noise of half-width ``h`` has a root mean square of ``h / sqrt(3)``:
the first addend is noise on each term of ``0.42 sqrt(3 n / 2) u``, the second is noise on the sum of
``0.42 sqrt(n) u``. GPUs, which add up in this order, show just this from 64 to 4096 terms.
"""

_COARSE_UNITS = 2.0
"""Upper limit of an operator's own error at a coarser precision: operators compute in a finer one."""

Inside = Literal["", "composed", "steps"]
"""How an operator may round inside at a coarser precision; see ``COMPOSED`` and ``STEPWISE``."""


class Rounding(msgspec.Struct, frozen=True, kw_only=True):
    """The rounding of a precision, drawn in a model whose version of ONNX's operators is ``opset``."""

    precision: str
    opset: int
    drawing: RoundingDraws

    def result(
        self,
        source: str,
        result: str,
        kind: str,
        units: float,
        terms: float,
        *,
        beside: Beside = "",
        inside: Inside = "",
    ) -> Iterator[onnx.NodeProto]:
        """Yield the noise that turns the exact ``source`` into the rounded ``result`` of an operator.

        ``units`` is the operator's own error in unit roundoffs, ``terms`` the number of terms of a sum,
        ``beside`` the group of equally uncertain elements: see ``RoundingDraws.noise``. An operator that
        rounds ``inside`` may do so although the result needs no rounding. So at a coarser precision, too, the
        noise of a composed operator is proportional to the result, and an operator of several steps has both.
        The noise is also proportional where ONNX has no Cast that would show the rounding error.
        """
        if self.is_coarse(kind) and (inside == "composed" or not self.casts):
            yield from self.drawing.noise(source, result, kind, min(units, _COARSE_UNITS) * self.width(kind))
        elif self.is_coarse(kind):
            if inside:
                stepped, level = f"{result}.ep_harness.steps", "" if beside == "one" else beside
                yield from self.drawing.noise(source, stepped, kind, self.width(kind), beside=level)
                source = stepped
            width = FOUND * min(units, _COARSE_UNITS)
            yield from self.drawing.noise(source, result, kind, width, _CASTS[self.precision])
        else:
            width = both(units * self.width(kind), SUMMED * ROUNDOFF[FLOAT_TENSOR] * terms**0.5)
            yield from self.drawing.noise(source, result, kind, width, beside=beside)

    @property
    def casts(self) -> bool:
        """Return whether a Cast of the model's opset rounds to the precision; none rounds to TF32."""
        if self.precision not in _CASTS:
            return False
        return self.precision != "bfloat16" or self.opset >= BFLOAT16_CASTS

    def is_coarse(self, kind: str) -> bool:
        """Return whether a tensor of this type loses bits when it is rounded to the precision."""
        return PRECISIONS[self.precision] > ROUNDOFF[FLOAT_TENSOR] and kind in {FLOAT_TENSOR, DOUBLE}

    def width(self, kind: str) -> float:
        """Return the half-width of a rounding's noise; a type below the precision rounds to itself."""
        unit = PRECISIONS[self.precision]
        return unit if kind == DOUBLE else max(unit, ROUNDOFF[kind])


def inside_of(node: onnx.NodeProto) -> Inside:
    """Return how an operator may round inside."""
    if node.op_type in COMPOSED:
        return "composed"
    return "steps" if node.op_type in STEPWISE else ""


def both(left: float, right: float) -> float:
    """Return the half-width of the sum of two independent noises."""
    return float((left**2 + right**2) ** 0.5)
