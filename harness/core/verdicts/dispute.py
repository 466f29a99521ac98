"""Disputed goldens: whether references dispute a golden that a result fails, and what then judges the result.

A golden is what one implementation computed, and may be the worse of the two. But a dispute must not excuse a
faulty result: in doubt the verdict stands. Pure: judged rows in, a finding out. Nothing here depends on the
tolerance of the run, except through the rows, so a record can be judged again.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import msgspec

from harness.core.comparison import wording
from harness.core.comparison.output_metrics import LOST, OutputMetrics
from harness.core.records.reference_answer import AS_USED, EXPECTED, REFERENCE, Adjudication, Reference
from harness.core.records.verdict import Verdict
from harness.core.verdicts.adjudicate import UNCERTAINTY_FACTOR, failed_only
from harness.core.verdicts.compare import OutputComparison
from harness.core.verdicts.judgement import OutputJudgement

_MUCH_WORSE = 4.0
"""An error of more than this multiple of a disputed golden's error is a fault of the EP.

Healthy results are at most 1.8 times as far from float64 as their golden (see ``adjudicate.CLEARLY``). The
WebGPU EP's faulty DFT is 7 to 67 times as far off; its golden is disputed by a little.
"""


class GoldenCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether references dispute the golden of a failed result.

    Attributes:
        disputed: Why the golden cannot judge here; empty where the verdict stands.
        difference: Where and by how much the golden differs from the reference that disputes it; may be
            empty.
        note: A remark on references that dispute nothing; may be empty.
    """

    disputed: str = ""
    difference: str = ""
    note: str = ""


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """What other answers show where the golden is disputed: whether the EP is right or wrong.

    The reason is one line for people, without the dispute.
    """

    finding: Literal["right", "wrong"]
    reason: str


class AgainstReference(msgspec.Struct, frozen=True, kw_only=True):
    """One output against a reference: the golden's and the EP's."""

    golden: OutputJudgement
    ep: OutputJudgement


def check_golden(
    compared: OutputComparison, references: Sequence[Reference], adjudications: Sequence[Adjudication]
) -> GoldenCheck:
    """Decide whether references dispute the golden of a failed result.

    Only the outputs that failed count. In this order:

    1. A reference agrees with the EP in all of them, and not with the golden: disputed.
    2. The golden's own implementation, computing in another way, disagrees with the golden in all of them, by
       more than a tenth of the EP's error: disputed, because the golden is uncertain.
    3. Only values are wrong, and float64 is nearer to the EP in all of them: disputed.
    4. Only values are wrong, and against float64 the golden itself loses more than half in all of them, by
       more than a tenth of the EP's error: disputed, because the golden is not an answer.

    If a reference agrees with the golden in all of them, and not with the EP, the verdict stands.

    A doubted float64 answer does not dispute a golden. Rule 1 does not apply to ``onnx.reference`` alone if

    * it is doubted;
    * the CPU EP contradicts it at both levels of optimization; or
    * float64 is clearly nearer to the golden in one of these outputs.

    Args:
        compared: The EP's result against the golden; it has a verdict.
        references: By rank, the most trustworthy first.
        adjudications: By float64, where there are any.
    """
    failed = {row.name: row for row in compared.outputs if row.mismatched}
    believed = tuple(row for row in failed_only(adjudications, compared.outputs) if not row.doubt)
    odd: list[str] = []
    alone: list[str] = []
    for reference in references:
        golden = {row.name: row for row in reference.golden}
        if (
            reference.in_float64
            or reference.name == AS_USED
            or not failed
            or not failed.keys() <= golden.keys()
        ):
            continue  # these are considered elsewhere, or it has no answer for these outputs
        right = [not golden[name].mismatched for name in failed]
        same = _agrees_with_ep(reference, failed)
        difference = wording.first_difference(golden[name] for name in failed)
        if all(right):
            if not reference.is_golden_again and not same:
                return GoldenCheck(note=_note(odd, alone))
        elif same and (why := _why_not_alone(reference, references, failed, believed)):
            alone.append(f"{reference.name} agrees with the EP, but is not believed alone: {why}")
        elif same:
            why = f"the EP agrees with {reference.name}, the golden does not"
            return GoldenCheck(disputed=why, difference=difference)
        elif not reference.is_golden_again:
            odd.append(reference.name)
        elif not any(right) and not failed.keys() & set(reference.dwarfed):
            why = f"the golden is uncertain, {reference.name} differs"
            return GoldenCheck(disputed=why, difference=difference)
    complete = compared.verdict is Verdict.MISMATCH and failed and len(believed) == len(failed)
    disputed = _by_float64(believed) if complete else ""
    return GoldenCheck(disputed=disputed) if disputed else GoldenCheck(note=_note(odd, alone))


def resolve(
    outputs: Sequence[OutputJudgement],
    expected: Mapping[str, AgainstReference],
    adjudications: Sequence[Adjudication],
    *,
    whole: bool,
    excused: float = 0.0,
) -> Resolution | None:
    """Judge a result without its golden; None where other answers do not decide.

    The EP is wrong if, in an output that fails against the golden, its error is more than ``_MUCH_WORSE``
    times the golden's. The error is the distance from the expected data, if the EP fails against these as
    well, or from float64. It is right if each output agrees with the expected data. If expected data and
    float64 contradict each other, they do not decide.

    Args:
        outputs: The result against the golden.
        expected: Output -> how golden and result compare with the expected data. Outputs without expected
            data, or with equal golden and result, are left out.
        adjudications: Distances from float64; doubted ones do not count.
        whole: Whether the dispute concerns every output; else it concerns those that fail.
        excused: Relative error, as a norm, below which values are not wrong, however small the golden's error
            is.
    """
    failed = [one.row for one in outputs if one.fault is not None]
    distances = {row.output: row for row in adjudications if not row.doubt}
    about = [one.row for one in outputs] if whole else failed
    is_right = bool(about) and all(
        row.name in expected and expected[row.name].ep.fault is None for row in about
    )
    by_data = [
        check.ep.row for row in failed if (check := expected.get(row.name)) and _is_worse(check, excused)
    ]
    by_float64 = [
        distances[row.name]
        for row in failed
        if row.name in distances and _is_further(distances[row.name], row, excused)
    ]
    if is_right:
        return None if by_float64 else Resolution(finding="right", reason=f"right by {EXPECTED}")
    if by_data:
        if all(row.name in distances and distances[row.name].nearer == "ep" for row in failed):
            return None
        differs = f"the EP differs from {EXPECTED}, {wording.first_difference(by_data)}"
        return Resolution(finding="wrong", reason=differs)
    if by_float64:
        worst = max(by_float64, key=lambda row: row.ep)
        errors = f"relative error {worst.ep:.2g} against {worst.golden:.2g}"
        where = f"output {worst.output!r} of the EP is further from {worst.by} than the golden is"
        return Resolution(finding="wrong", reason=f"{where}: {errors}")
    return None


def _by_float64(failed: Sequence[Adjudication]) -> str:
    """Return why float64 disputes the golden of the outputs that failed; empty if it does not."""
    worst = max(failed, key=lambda row: row.golden)
    errors = f"relative error {worst.ep:.2g} against {worst.golden:.2g}"
    if all(row.nearer == "ep" for row in failed):
        return f"output {worst.output!r} of the EP is nearer to {worst.by} than the golden is: {errors}"
    if all(row.golden > LOST and row.ep < UNCERTAINTY_FACTOR * row.golden for row in failed):
        return f"output {worst.output!r} of the golden is as far from {worst.by} as the EP's is: {errors}"
    return ""


def _agrees_with_ep(reference: Reference, outputs: Collection[str]) -> bool:
    ep = {row.name: row for row in reference.ep}
    return all(name in ep and not ep[name].mismatched for name in outputs)


def _why_not_alone(
    reference: Reference,
    references: Sequence[Reference],
    failed: Collection[str],
    by_float64: Sequence[Adjudication],
) -> str:
    """Return why the agreement of a reference with the EP disputes nothing; empty where it does."""
    if reference.doubt:
        return reference.doubt
    if reference.name != REFERENCE:
        return ""  # expected data are no computation, and a CPU EP runs the same code as the golden
    again = [one for one in references if one.is_golden_again and {row.name for row in one.ep} >= set(failed)]
    if any(not _agrees_with_ep(one, failed) for one in again):
        return "the CPU EP contradicts it at both levels of optimization"
    contradicts = next((row for row in by_float64 if row.nearer == "golden"), None)
    return f"{contradicts.by} is nearer to the golden" if contradicts is not None else ""


def _note(odd: Sequence[str], alone: Sequence[str]) -> str:
    neither = f"{' and '.join(odd)} agree{'s' * (len(odd) == 1)} with neither" if odd else ""
    return "; ".join(filter(None, (neither, *alone)))


def _is_worse(check: AgainstReference, excused: float) -> bool:
    """Return whether the EP misses the expected data, and the golden does not, or by much less."""
    ep, golden = check.ep, check.golden
    if ep.fault in {None, Verdict.NO_GOLDEN} or ep.row.differs:
        return ep.row.differs
    if ep.row.is_special:
        # If more elements are wrongly NaN or infinite, the EP lacks an element that the golden has right.
        return not golden.row.differs and _special(ep.row) > _special(golden.row)
    if (ep.row.relative_error or 0.0) <= excused and excused:
        return False
    return golden.fault is None or _is_much_worse(ep.row, golden.row)


def _special(row: OutputMetrics) -> int:
    return row.details.special if row.details is not None else 0


def _is_much_worse(ep: OutputMetrics, golden: OutputMetrics) -> bool:
    """Return whether the EP's finite values are much further off than the golden's: the worst, or all."""
    if golden.is_special or golden.differs:
        return False
    errors = [(ep.max_abs, golden.max_abs), (ep.relative_error, golden.relative_error)]
    return any(
        of_ep is not None and of_golden is not None and of_ep > _MUCH_WORSE * of_golden
        for of_ep, of_golden in errors
    )


def _is_further(distance: Adjudication, row: OutputMetrics, excused: float) -> bool:
    if row.details is not None and row.details.distribution:
        return False  # random numbers differ each time
    is_special = row.is_special and distance.nearer == "golden"
    return is_special or distance.ep > max(excused, _MUCH_WORSE * distance.golden)
