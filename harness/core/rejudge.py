"""What a record would have been under other tolerances: its metrics judge again, and no device is needed."""

import math
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from harness.core.adjudicate import Ruling, of_failed, rule
from harness.core.compare import Comparison
from harness.core.errors import one_line
from harness.core.hearing import Adjudication, Hearing
from harness.core.lost import is_lost, is_noise, relative_error
from harness.core.metrics import ATOL_GRID, EXACT_FRONTIER
from harness.core.output_metrics import OutputMetrics
from harness.core.placed import placed
from harness.core.precise import explains
from harness.core.precision import AS_IS, IN_MODEL
from harness.core.record import Record
from harness.core.repeats import several_results
from harness.core.spread import NoiseLimits, rms_limit
from harness.core.tolerance import EXACT, Tolerance, default_tolerance
from harness.core.verdict import Family, Verdict
from harness.core.wording import only_noise, remark

WRONG_VALUES = frozenset(
    {Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH, Verdict.NAN_MISMATCH, Verdict.MISMATCH}
)
"""Verdicts that rest on a golden alone."""

USUAL = (
    Tolerance(rtol=1e-5, atol=1e-5),
    Tolerance(rtol=1e-3, atol=1e-7),
    Tolerance(rtol=1e-3, atol=1e-5),
    NoiseLimits(),
)
"""The policies that come along: those of Polygraphy, ONNX and onnxruntime, and limits of noise."""

_BY_TOLERANCE = frozenset(
    {
        Verdict.MISMATCH,
        Verdict.NONDETERMINISTIC,
        Verdict.FALLBACK,
        Verdict.FOLDED,
        Verdict.PASS_PARTIAL,
        Verdict.PASS,
    }
)
"""Verdicts that a tolerance decides. Other shapes, other types and NaN stay what they are under any."""

_KEPT = WRONG_VALUES - {Verdict.MISMATCH} | {Verdict.FALLBACK_AT_RUN}
"""What a cell stays by its golden alone, whatever the tolerance."""

UNHEARD = "no witness was heard"
"""What is said of a mismatch that may be ``reference_disputed`` in a run."""


Row = TypeVar("Row", bound=OutputMetrics)


class Allowed(msgspec.Struct, frozen=True):
    """What is now allowed of a record's outputs.

    Attributes:
        tolerance: Of rounded outputs: fixed, or in multiples of the model's noise.
        steps: Quantization steps that an output of quantized values may be off, besides.
        precision: Whose rounding the noise is to be; empty for the one that the record tells of.
    """

    tolerance: Tolerance | NoiseLimits
    steps: float = 0.0
    precision: str = ""


def rejudged(record: Record, allowed: Allowed) -> Record:
    """The record as it would have been under another tolerance.

    Exact for the verdict, with four exceptions, none of which makes a pass of what was none:

    * An output whose noise the record does not know keeps its judgement under limits of noise; ``knows``
      tells of it.
    * Of quantized values the largest error in steps and the largest against the tolerance are known, but not
      their sum in each element: such an output passes only where one of the two lets all of it pass.
    * A converted model is held against two answers, of which the record has both frontiers; limits of noise
      do not speak of it.
    * A run hears witnesses before it fails a cell. The record has what they say where the run failed the
      cell, or where one of ``USUAL`` would have; of other cells a mismatch that is new may be
      ``reference_disputed`` in a run under this tolerance, and ``UNHEARD`` in its reason says so. Of a record
      without ``hearing`` what is disputed stays so.

    Of the outputs ``rtol``, ``atol`` or the limits of ``noise`` change, and ``mismatched``, which is 0 or 1
    then: how many elements lie outside is known for the old tolerance alone. ``headroom`` is known for limits
    of noise, and null for another fixed tolerance. Outputs that were held to equality, such as integers,
    still are; so are positions that tie, and draws by lot.

    Args:
        record: A record with its frontiers.
        allowed: The ``atol`` of a fixed tolerance is one of ``ATOL_GRID``.

    Raises:
        ValueError: The frontiers do not know of that ``atol``.
    """
    tolerance = allowed.tolerance
    if isinstance(tolerance, Tolerance) and tolerance.atol not in ATOL_GRID:
        raise ValueError(f"atol {tolerance.atol:g} is none of {', '.join(f'{atol:g}' for atol in ATOL_GRID)}")
    if not _decides(record) or record.placement is None:
        return record
    computes = _computes(record)
    outputs = tuple(_under(output, allowed, computes) for output in record.outputs)
    again = tuple(_under(output, allowed, computes) for output in record.again)
    if outputs == record.outputs and again == record.again and record.hearing is None:
        return record
    verdict, reason = _by_golden(record, outputs, again, allowed)
    adjudication: tuple[Adjudication, ...] = ()
    if record.hearing is not None and verdict in WRONG_VALUES:
        adjudication = of_failed(record.hearing.adjudication, outputs)
        ruling = _ruling(record.hearing, verdict, outputs, allowed)
        if ruling.disputed:
            verdict, reason = Verdict.REFERENCE_DISPUTED, ruling.disputed
    return msgspec.structs.replace(
        record,
        verdict=verdict,
        family=verdict.family,
        reason=record.reason if verdict is record.verdict else one_line(reason),
        outputs=outputs,
        again=again,
        adjudication=adjudication,
        latency=record.latency if verdict.family is Family.PASSED else None,
    )


def knows(record: Record, allowed: Allowed) -> bool:
    """Whether a record tells all that it takes to judge it again."""
    if isinstance(allowed.tolerance, Tolerance) or not _decides(record) or _computes(record):
        return True
    return all(
        _has_noise(output, allowed) or not _is_rounded(output) or output.frontier == EXACT_FRONTIER
        for output in (*record.outputs, *record.again)
        if not _is_no_number(output) and _steps_excused(output, allowed) is None
    )


def keeps_ties(record: Record) -> bool:
    """Whether positions of a record tie by the tolerance of its run, and are not judged again."""
    return _decides(record) and any(output.details and output.details.ties for output in record.outputs)


def is_in_doubt(output: OutputMetrics) -> bool:
    """Whether one of the usual tolerances would fail an output."""
    return output.frontier != EXACT_FRONTIER and any(
        _under(output, Allowed(tolerance), "").mismatched for tolerance in USUAL
    )


def needed_rtol(output: OutputMetrics, atol: float) -> float:
    """The smallest rtol with which an output passes at an atol of ``ATOL_GRID``; infinite where none does."""
    return _least_rtol(output.frontier, atol)


def _least_rtol(frontier: Sequence[tuple[float, float]], atol: float) -> float:
    for grid_atol, rtol in frontier:
        # The frontier ends with its first rtol of 0, which holds for every greater atol, too.
        if grid_atol == atol or (rtol == 0.0 and grid_atol < atol):
            return rtol
    return math.inf


def _decides(record: Record) -> bool:
    """Whether a tolerance decides the verdict, or what the witnesses that were heard say under it."""
    decided = record.hearing is not None or record.verdict in _BY_TOLERANCE
    if record.verdict is Verdict.NO_GOLDEN and record.hearing is None:
        decided = _judges_nobody(record.outputs)
    return decided and bool(record.golden) and record.placement is not None


def _judges_nobody(outputs: Sequence[OutputMetrics]) -> bool:
    """Whether the precision of a converted model leaves nothing of the outputs that fail."""
    failed = [output.precision_error for output in outputs if output.mismatched]
    return bool(failed) and all(error is not None and error.lost for error in failed)


def _by_golden(
    record: Record,
    outputs: tuple[OutputMetrics, ...],
    again: tuple[OutputMetrics, ...],
    allowed: Allowed,
) -> tuple[Verdict, str]:
    """The verdict where nobody disputes the golden, and its reason."""
    computes = _computes(record)
    before = record.hearing.verdict if record.hearing else record.verdict
    if before in _KEPT:
        return before, before.meaning
    if wrong := _worst(outputs):
        heard = record.hearing or record.golden != "cpu" or before is Verdict.MISMATCH
        verdict = Verdict.NO_GOLDEN if _judges_nobody(outputs) else Verdict.MISMATCH
        return verdict, wrong if heard else f"{wrong}; {UNHEARD}"
    if not computes and (nobody := [output for output in outputs if _loses(output, allowed)]):
        return Verdict.NO_GOLDEN, only_noise(nobody[0])
    if wrong := _worst(again):
        return Verdict.NONDETERMINISTIC, f"a second run of the same session differs: {wrong}"
    if record.repeats is not None and record.repeats.bit_equal and record.repeats.distinct > 1:
        results = several_results(record.repeats)
        return Verdict.NONDETERMINISTIC, f"{results}, and the matrix asks for equal bits"
    assert record.placement is not None  # noqa: S101 - what was compared has run
    verdict, reason = placed(record.placement, converted=bool(computes))
    return verdict, "; ".join(filter(None, (reason, *map(remark, outputs))))


def _ruling(
    hearing: Hearing, verdict: Verdict, outputs: tuple[OutputMetrics, ...], allowed: Allowed
) -> Ruling:
    """What the witnesses say to outputs that fail now."""
    witnesses = tuple(
        msgspec.structs.replace(
            witness,
            golden=tuple(_under(row, allowed, "") for row in witness.golden),
            ep=tuple(_under(row, allowed, "") for row in witness.ep),
        )
        for witness in hearing.witnesses
    )
    return rule(Comparison(verdict=verdict, message="", outputs=outputs), witnesses, hearing.adjudication)


def _computes(record: Record) -> str:
    """What a converted model computes in; empty for one that was run as it came."""
    return IN_MODEL.get(record.axes.get("precision", AS_IS), "")


def _is_rounded(output: OutputMetrics) -> bool:
    """Whether a tolerance speaks about an output; else it has one right answer."""
    return default_tolerance(output.dtype, "float32") != EXACT


def _loses(output: OutputMetrics, allowed: Allowed) -> bool:
    """Whether more than half of an output is lost that is judged by the distance of its values alone."""
    excused = _is_no_number(output) or (allowed.steps and output.details and output.details.steps)
    return _is_rounded(output) and is_lost(output) and not excused


def _has_noise(output: OutputMetrics, allowed: Allowed) -> bool:
    return output.noise is not None and allowed.precision in {"", output.noise.precision}


def _is_no_number(output: OutputMetrics) -> bool:
    """Whether an output was judged by something else than the distance of its values."""
    return output.details is not None and bool(output.details.ties or output.details.distribution)


def _steps_excused(output: OutputMetrics, allowed: Allowed) -> float | None:
    """By how many steps an output is off, where so many are granted; else None."""
    steps = output.details.steps if output.details is not None else None
    return steps if steps and steps <= allowed.steps else None


def _under(output: Row, allowed: Allowed, computes: str) -> Row:
    if _is_no_number(output) or (computes and isinstance(allowed.tolerance, NoiseLimits)):
        return output
    if not _is_rounded(output):
        judged = _under_steps(output)
    elif isinstance(allowed.tolerance, NoiseLimits):
        judged = _under_noise(output, allowed.tolerance) if _has_noise(output, allowed) else output
    else:
        judged = _under_fixed(output, allowed.tolerance, computes)
    if judged.mismatched and (steps := _steps_excused(output, allowed)) is not None:
        return msgspec.structs.replace(judged, mismatched=0, headroom=steps / allowed.steps)
    lost = not computes and _loses(output, allowed) and not is_noise(output)
    return msgspec.structs.replace(judged, mismatched=1) if lost and not judged.mismatched else judged


def _under_steps(output: Row) -> Row:
    """An output with one right answer, where no step is granted."""
    if output.mismatched or output.details is None or not output.details.steps:
        return output
    return msgspec.structs.replace(output, mismatched=1)


def _under_fixed(output: Row, tolerance: Tolerance, computes: str) -> Row:
    noise = output.noise
    by_noise = noise is not None and noise.rms_limit is not None
    if not by_noise and Tolerance(rtol=output.rtol, atol=output.atol) == tolerance:
        return output
    passes = needed_rtol(output, tolerance.atol) <= tolerance.rtol
    error = output.precision_error
    if error is not None:
        within = error.in_limits or _least_rtol(error.own_frontier, tolerance.atol) <= tolerance.rtol
        passes = within or (passes and explains(error, computes))
        error = msgspec.structs.replace(error, within=within)
    return msgspec.structs.replace(
        output,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        headroom=None,
        mismatched=0 if passes else 1,
        noise=msgspec.structs.replace(noise, rms_limit=None, max_limit=None) if noise else None,
        precision_error=error,
    )


def _under_noise(output: Row, limits: NoiseLimits) -> Row:
    noise = output.noise
    of_rms = rms_limit(limits, output.elements)
    if noise is None or (noise.rms_limit, noise.max_limit) == (of_rms, limits.max):
        return output
    headroom = max(noise.rms / of_rms, noise.max / limits.max)
    return msgspec.structs.replace(
        output,
        headroom=headroom,
        mismatched=0 if headroom <= 1.0 else 1,
        noise=msgspec.structs.replace(noise, rms_limit=of_rms, max_limit=limits.max),
    )


def _worst(outputs: Sequence[OutputMetrics]) -> str:
    """What to say of the first output that fails; empty where all pass."""
    for output in outputs:
        if output.mismatched:
            return f"{output.name}: {_excess(output)}"
    return ""


def _excess(output: OutputMetrics) -> str:
    noise = output.noise
    if noise is not None and noise.rms_limit is not None and noise.max_limit is not None:
        return (
            f"the error is {noise.rms:.3g} x the model's rounding noise at {noise.precision}, "
            f"at most {noise.max:.3g} x (limits {noise.rms_limit:.3g} and {noise.max_limit:.3g})"
        )
    if not _is_rounded(output):
        return "wrong values, where only equality is right"
    if output.delivered_bits is not None and is_lost(output):
        return f"relative error {relative_error(output.delivered_bits):.2g}, more than any tolerance allows"
    needed = needed_rtol(output, output.atol)
    what = f"needs rtol {needed:.3g}" if math.isfinite(needed) else "passes with no rtol"
    return f"{what} at atol {output.atol:g}, and has {output.rtol:g}"
