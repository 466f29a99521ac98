"""Judge a result whose golden is disputed by the answers that are left: expected data, and float64.

A disputed golden fails nobody, and it must not hide a faulty EP either. The decision is pure: rows of
comparisons in, a verdict out.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Seq
from typing import Literal

import msgspec

from harness.core.adjudicate import CLEARLY, DWARFS, NO_DOUBTS, apart
from harness.core.hearing import Adjudication, Witness
from harness.core.lost import relative_error
from harness.core.output_metrics import OutputMetrics
from harness.core.tolerance import EXACT, Tolerance
from harness.core.verdict import Verdict

JudgedBy = Literal["", "expected", "float64"]
"""What judged in place of the golden: a value of the record's ``golden``; empty where nothing could."""

Finding = Literal["right", "wrong", "open"]


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a cell whose golden is disputed.

    Attributes:
        verdict: The mismatch where it stands; ``reference_disputed`` where nothing is left to judge by; None
            where the EP is right by ``judged_by``: a pass, whose kind the placement decides.
        judged_by: What decided.
        reason: One line for people; it names what judged, and why the golden did not.
    """

    verdict: Verdict | None
    judged_by: JudgedBy = ""
    reason: str


def settle(
    verdict: Verdict,
    disputed: str,
    outputs: Seq[OutputMetrics],
    expected: Witness | None,
    adjudications: Seq[Adjudication],
    doubts: Mapping[str, str] = NO_DOUBTS,
) -> Settlement:
    """Judge a result by what is left once its golden is disputed.

    Expected data find the EP

    * *right* where every output lies within the tolerance of the expected one;
    * *wrong* where an output lies outside. The finding is open instead where the golden lies outside as well,
      by at most ``DWARFS`` times the tolerance, and the EP by at most ``CLEARLY`` times as much as the
      golden: that may be the rounding of float32.

    float64 finds the EP

    * *right* where it is nearer to the EP than to the golden in every output that failed, and no output is
      further from it than the relative tolerance of that output;
    * *wrong* where an output that failed is ``CLEARLY`` times as far from it as the golden is;
    * else the finding is open: golden and EP are alike, or nothing is known of an output.

    Findings that contradict each other decide nothing.

    Args:
        verdict: What the cell is by the golden alone; one of the verdicts on wrong values.
        disputed: Why the golden does not judge.
        outputs: The result held against the golden: every output, under the rule of the cell.
        expected: Golden and result held against the expected data, every output that differs at all, under
            the rule of the cell; None without expected data.
        adjudications: Distances from float64, of every output.
        doubts: ``Adjudication.by`` -> why it is not believed; see ``harness.core.adjudicate.rule``.
    """
    failed = {row.name: row for row in outputs if row.mismatched}
    by_data = _by_expected(outputs, expected) if expected is not None else "open"
    by_float64 = _by_float64(outputs, [row for row in adjudications if row.by not in doubts])
    found: dict[JudgedBy, Finding] = {"expected": by_data, "float64": by_float64}
    decided = {judge: finding for judge, finding in found.items() if finding != "open"}
    if not failed or len(set(decided.values())) != 1:
        return Settlement(verdict=Verdict.REFERENCE_DISPUTED, reason=disputed)
    judge, finding = next(iter(decided.items()))
    name = expected.name if judge == "expected" and expected is not None else _far_from(adjudications, failed)
    if finding == "right":
        return Settlement(
            verdict=None, judged_by=judge, reason=f"right by {name}; the golden is disputed: {disputed}"
        )
    how = _how_wrong(judge, expected, adjudications, failed)
    return Settlement(
        verdict=verdict, judged_by=judge, reason=f"{how}; the golden is disputed, too: {disputed}"
    )


def _by_expected(outputs: Seq[OutputMetrics], expected: Witness) -> Finding:
    of_ep, of_golden = ({row.name: row for row in rows} for rows in (expected.ep, expected.golden))
    told = of_ep.keys() & of_golden.keys()
    bad = [name for name in told if of_ep[name].mismatched]
    if any(not _is_as_good(of_ep[name], of_golden[name]) for name in bad):
        return "wrong"
    # An output without a row is equal to the golden, of which nothing more is known here.
    return "right" if not bad and told >= {row.name for row in outputs} else "open"


def _is_as_good(ep: OutputMetrics, golden: OutputMetrics) -> bool:
    """Whether the golden misses the expected data as well, by little, and the EP by about as much."""
    if not golden.mismatched or golden.headroom is None or ep.headroom is None:
        return False
    if golden.headroom > DWARFS or ep.headroom > CLEARLY * golden.headroom:
        return False
    if ep.delivered_bits is None or golden.delivered_bits is None:
        return ep.delivered_bits == golden.delivered_bits
    return relative_error(ep.delivered_bits) <= CLEARLY * relative_error(golden.delivered_bits)


def _by_float64(outputs: Seq[OutputMetrics], adjudications: Seq[Adjudication]) -> Finding:
    told = {row.output: row for row in adjudications}
    failed = [row.name for row in outputs if row.mismatched]
    if any(name in told and _is_further(told[name]) for name in failed):
        return "wrong"
    nearer = all(name in told and told[name].nearer == "ep" for name in failed)
    near = all(row.name in told and told[row.name].ep <= _allowed(row) for row in outputs)
    return "right" if failed and nearer and near else "open"


def _is_further(row: Adjudication) -> bool:
    """Whether the EP is clearly further from float64 than the golden, as a whole."""
    return row.nearer == "golden" or row.ep > CLEARLY * row.golden


def _allowed(row: OutputMetrics) -> float:
    """Return how far an output may lie from float64, relative to its norm; 0 where one answer is right."""
    tolerance = Tolerance(rtol=row.rtol, atol=row.atol)
    return 0.0 if tolerance == EXACT else row.rtol


def _how_wrong(
    judge: JudgedBy,
    expected: Witness | None,
    adjudications: Seq[Adjudication],
    failed: Mapping[str, OutputMetrics],
) -> str:
    if judge == "expected" and expected is not None:
        return f"the EP differs from {expected.name}, {apart(expected.ep)}"
    worst = max(_told(adjudications, failed), key=lambda row: row.ep / row.golden if row.golden else row.ep)
    errors = f"relative error {worst.ep:.2g} against {worst.golden:.2g}"
    return f"output {worst.output!r} of the EP is further from {worst.by} than the golden is: {errors}"


def _far_from(adjudications: Seq[Adjudication], failed: Mapping[str, OutputMetrics]) -> str:
    worst = max(_told(adjudications, failed), key=lambda row: row.ep, default=None)
    return f"{worst.by} (relative error {worst.ep:.2g})" if worst is not None else ""


def _told(adjudications: Seq[Adjudication], failed: Mapping[str, OutputMetrics]) -> Iterable[Adjudication]:
    return (row for row in adjudications if row.output in failed)
