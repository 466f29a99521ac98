"""How one output of a cell compares with its golden: a part of its record."""

import math
import sys
from typing import Literal

import msgspec

LOST = 0.5
"""Relative error from which on an output is lost: no tolerance makes it right.

A wide ``atol`` passes any small values, zeros included. So the error as a whole must stay below half of the
golden.
"""

Frontier = tuple[tuple[float, float], ...]
"""``(atol, rtol)`` pairs by rising ``atol``; see ``OutputMetrics.frontier``."""


class Noise(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The error of an output as a multiple of its model's rounding noise; see ``harness.core.noise.noise``.

    Attributes:
        precision: The precision whose rounding makes the noise, such as ``float32``.
        rms: Root mean square of the error over that of the noise.
        max: Largest error of an element over the noise of that element.
        rms_limit: The limit of ``rms``; null where another tolerance judged.
        max_limit: The limit of ``max``, likewise.
        like: The precision whose noise is nearest to the error; ``exact`` where there is no error.
        worst: The element with the largest multiple, in words; empty where the multiple is small.
        unmoved: For an output whose elements each have one right answer: elements that differ and that noise
            does not explain (``harness.core.noise.noise_moves``). Null for other outputs, and in records of
            older versions.
        size: The share of the output that noise destroys, where it is more than half: see
            ``harness.core.noise.rounding_loss``. ``rms`` and ``max`` may then be 0 because there is no
            measure.
        delivers: The precision that the EP may compute in by its own default, such as ``tf32``; the noise is
            then of this precision. Empty for the precision that the matrix asks for.
        document: The document that allows a larger error than rounding; the noise is then of this error.
        wider: The same in units of another explanation, if this noise does not explain the error: the noise
            of a precision that the EP delivers by its own default, or an error that a document allows.
        each: Root mean square, over the elements, of error over noise: small elements count like large ones.
            Null in records of older versions.
    """

    precision: str
    rms: float
    max: float
    rms_limit: float | None = None
    max_limit: float | None = None
    like: str = ""
    worst: str = ""
    each: float | None = None
    size: float = 0.0
    unmoved: int | None = None
    delivers: str = ""
    document: str = ""
    wider: "tuple[Noise, ...]" = ()

    @property
    def is_all(self) -> bool:
        """Whether rounding alone destroys the answer."""
        return self.size > LOST

    @property
    def is_measured(self) -> bool:
        """Whether the error is known in units of the noise: not if noise changes the shape."""
        return self.unmoved is not None or self.each is not None or self.rms > 0


class PrecisionError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The error of a model of reduced precision: on the EP, and on the CPU EP.

    Errors are ``norm(out - golden) / norm(golden)`` against the golden of the float32 model; 0 where nothing
    differs, whatever the norm of the golden.

    Attributes:
        error: Error of the EP.
        cpu_error: Error of the CPU EP with the same model.
        ratio: ``norm(out - golden) / norm(cpu_out - golden)``; 1 where both are 0.
        unknown: Why one of these numbers is missing; empty where all three are known.
        measured: Whether the output was compared with both answers, value by value.
        within: Whether the EP's answer is near the CPU EP's own, or its error is within limits relative to
            the CPU EP's error, whatever its distance from the golden; see ``harness.core.verdicts.precise``.
        in_limits: Whether the error is within these limits, which hold under any tolerance.
        own_frontier: As ``frontier``, for the distance from the CPU EP's own answer; empty where
            ``in_limits`` is enough, or the distance is larger than the precision explains.
        far: Whether the EP's answer is farther from the CPU EP's own than implementations of this conversion
            are apart; no tolerance passes that.
        lost: Whether the CPU EP's own answer is lost at this precision, so that the output cannot fail an EP.
        reference: For a variant of a package, the variant whose golden it is held against: then the CPU EP's
            own answer excuses nothing, as the variant itself is under test. Empty for a converted model.
    """

    error: float | None = None
    cpu_error: float | None = None
    ratio: float | None = None
    unknown: str = ""
    measured: bool = False
    within: bool = False
    in_limits: bool = False
    own_frontier: Frontier = ()
    far: bool = False
    lost: bool = False
    reference: str = ""


class OutputDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about an output besides the distance of its values.

    Attributes:
        differs: ``shape`` where its shape or structure differs from the golden's, or where one side lacks it;
            ``dtype`` where its element type differs; empty where values were compared.
        special: Elements with NaN or infinity on one side only.
        own: For a converted model's output with one right answer, the comparison with the CPU EP's own
            answer. ``equal``: each element equals that of one of the two; ``lost``: the CPU EP's differs from
            the golden, too.
        steps: For a quantized output: largest difference in steps of its scale.
        granted: Steps that were granted where the output is right for that reason alone.
        ties: For an output of positions: elements at a different place whose values may tie with the
            golden's.
        ties_of: Element type of these values; empty where no tie excuses another position.
        tie_frontier: As ``frontier``, of the differences between these values.
        lead: For positions of a variant of a package: by how much the golden's choices lead over the
            variant's at most, among the values that the golden chose from, in multiples of their RMS; null
            where these values do not excuse another position.
        message: The difference in words, with the tolerance of the run; empty where the tolerance passes.
            ``told`` in a record.
        hint: What may explain the difference; empty where nothing does.
        distribution: For random numbers: the distribution that they were judged by.
        unseen: For random numbers: difference of the cumulative distribution, from 0 to 1, below which a
            wrong distribution would pass because there are too few numbers.
        stale: Whether the output for other inputs equals the output for the first ones, bit for bit.
        signed_zeros: Zeros whose sign differs from the golden's; they count as equal.
        flushed: Elements that are zero on one side and subnormal on the other; they count as equal.
        flushed_part: In float16, their norm over that of the golden if it exceeds half: too little is left.
        undefined: Elements that ONNX leaves undefined for this input; they do not count.
        copied: Whether values differ that operators copy, choose, or round once to nearest. Each such element
            has one right answer, and no rounding explains another one.
    """

    differs: Literal["", "shape", "dtype"] = ""
    special: int = 0
    own: Literal["", "equal", "lost"] = ""
    steps: float | None = None
    granted: float = 0.0
    ties: int = 0
    ties_of: str = ""
    tie_frontier: Frontier = ()
    lead: float | None = None
    message: str = msgspec.field(default="", name="told")
    hint: str = ""
    distribution: str = ""
    unseen: float | None = None
    stale: bool = False
    signed_zeros: int = 0
    flushed: int = 0
    flushed_part: float = 0.0
    undefined: int = 0
    copied: bool = False


class OutputMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """How one output (or one leaf of a sequence or map) compares with its golden.

    Metrics cover the elements that are finite on both sides. They are null where they are undefined (strings,
    other shapes, no finite pair) or not finite themselves.

    Attributes:
        name: Output name; ``name[2]`` for an item of a sequence, ``name.keys`` and ``name.values`` for a map.
        dtype: ONNX element type in lower case, such as ``float32``, ``bfloat16``, ``int4``, ``string``; or
            ``sequence``, ``map``, ``optional`` for a container that is empty or wrong as a whole.
        shape: Shape of the EP's result, of the golden where the EP gave none; ``(length,)`` of a container.
        max_abs: Largest ``|out - golden|``.
        max_rel: Largest ``|out - golden| / |golden|`` over elements whose golden is not zero.
        rmse: Root of the mean squared error.
        cosine: Cosine of the angle between the two as flat vectors.
        sqnr_db: ``20 log10(norm(golden) / norm(out - golden))`` in decibels; null when exact.
        delivered_bits: ``-log2(norm(out - golden) / norm(golden))``; null when exact.
        mismatched: Elements outside the tolerance, including those that differ in NaN or infinity. Every
            element, and at least 1, of an output that is missing, or that has another shape, structure or
            type.
        elements: Elements compared.
        rtol: Relative tolerance of the judgement.
        atol: Absolute tolerance of the judgement.
        headroom: Largest ``error / (atol + rtol * |golden|)``; 1.0 is the limit; null where it is infinite.
        frontier: ``(atol, rtol)`` pairs: for each atol of a fixed grid the smallest rtol that passes, up to
            the first rtol of 0; empty where no tolerance of the grid passes.
        noise: The error in units of the model's rounding noise; null where the noise is unknown or the output
            exact.
        precision_error: The error of a converted model.
        details: What else is known; null where there is nothing.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float | None = None
    max_rel: float | None = None
    rmse: float | None = None
    cosine: float | None = None
    sqnr_db: float | None = None
    delivered_bits: float | None = None
    mismatched: int = 0
    elements: int = 0
    rtol: float = 0.0
    atol: float = 0.0
    headroom: float | None = None
    frontier: Frontier = ()
    noise: Noise | None = None
    precision_error: PrecisionError | None = None
    details: OutputDetails | None = None

    @property
    def noises(self) -> tuple[Noise, ...]:
        """The noise and what is wider, in this order; empty where no noise is known."""
        return () if self.noise is None else (self.noise, *self.noise.wider)

    @property
    def relative_error(self) -> float | None:
        """``norm(out - golden) / norm(golden)``; None as ``delivered_bits``."""
        return None if self.delivered_bits is None else relative_error(self.delivered_bits)

    @property
    def is_lost(self) -> bool:
        """Whether the error exceeds half of the golden; no where the golden is all 0."""
        return (self.relative_error or 0.0) > LOST

    @property
    def differs(self) -> bool:
        """Whether the shape, structure or element type differs from the golden's."""
        return self.details is not None and bool(self.details.differs)

    @property
    def is_special(self) -> bool:
        """Whether some element has NaN or infinity on one side only."""
        return self.details is not None and self.details.special > 0


def relative_error(delivered_bits: float) -> float:
    """Return ``norm(out - golden) / norm(golden)``; infinite where it overflows float64."""
    return math.inf if delivered_bits <= -sys.float_info.max_exp else float(2.0**-delivered_bits)
