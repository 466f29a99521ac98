"""How each lane did, with every denominator written out and nothing netted against anything else."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.report.figures import Share
from harness.report.lane import Lane
from harness.report.tone import TONES, spoken, tone


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of a stacked bar; ``start`` and ``width`` in percent of the bar."""

    tone: str
    count: int
    start: float
    width: float


class LaneSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one lane. ``cells`` = skipped + excluded + missing + tried.

    Attributes:
        tried: Cells in which the EP was asked: neither skipped, excluded nor missing.
        by_ep: Right answers computed wholly by the EP, of the tried.
        partly: Right answers computed in part by the EP, of the tried.
        untested: Right answers that the EP had no part in, of the tried.
        unsupported: Clean refusals, of the tried.
        failed: The EP's failures, of the tried.
        right: Right answers from whichever EP, of the tried.
        exercised: Right answers in which the EP had a part, of all right answers.
        flaky: Failed cells that gave another verdict when they were tried again.
        kinds: Count of each verdict, spoken, by family; the largest first.
        bar: Stacked bar over all cells of the lane.
    """

    lane: Lane
    cells: int
    skipped: int
    excluded: int
    missing: int
    tried: int
    by_ep: Share
    partly: Share
    untested: Share
    unsupported: Share
    failed: Share
    right: Share
    exercised: Share
    flaky: int
    kinds: dict[str, tuple[tuple[str, int], ...]]
    bar: tuple[Segment, ...]


def summarise(lane: Lane, records: Iterable[Record], *, complete: bool) -> LaneSummary:
    """Count one lane's records, each by its first verdict, whatever further tries gave.

    Args:
        lane: Which.
        records: Its records.
        complete: False where cells of the run were not run: no share is then all or none of the tried.
    """
    verdicts: Counter[Verdict] = Counter()
    flaky = 0
    for record in records:
        verdicts[record.verdict] += 1
        flaky += record.flaky
    families: Counter[Family] = Counter()
    for verdict, count in verdicts.items():
        families[verdict.family] += count
    cells = verdicts.total()
    skipped, excluded, missing = (families[f] for f in (Family.SKIPPED, Family.EXCLUDED, Family.MISSING))
    tried = cells - skipped - excluded - missing
    right = families[Family.PASSED] + families[Family.UNTESTED]

    def share(count: int) -> Share:
        return Share(count, tried, not complete)

    return LaneSummary(
        lane=lane,
        cells=cells,
        skipped=skipped,
        excluded=excluded,
        missing=missing,
        tried=tried,
        by_ep=share(verdicts[Verdict.PASS]),
        partly=share(verdicts[Verdict.PASS_PARTIAL]),
        untested=share(families[Family.UNTESTED]),
        unsupported=share(families[Family.UNSUPPORTED]),
        failed=share(families[Family.FAILED]),
        right=share(right),
        exercised=Share(families[Family.PASSED], right, not complete),
        flaky=flaky,
        kinds=_kinds(verdicts),
        bar=stacked(verdicts),
    )


def stacked(verdicts: Counter[Verdict]) -> tuple[Segment, ...]:
    """The segments of a bar, in the order of ``TONES``, without the empty ones."""
    counts: Counter[str] = Counter()
    for verdict, count in verdicts.items():
        counts[tone(verdict)] += count
    total = counts.total()
    segments = []
    before = 0
    for name in TONES:
        if count := counts[name]:
            segments.append(
                Segment(
                    tone=name,
                    count=count,
                    start=round(100 * before / total, 3),
                    width=round(100 * count / total, 3),
                )
            )
            before += count
    return tuple(segments)


def _kinds(verdicts: Counter[Verdict]) -> dict[str, tuple[tuple[str, int], ...]]:
    kinds: dict[str, list[tuple[str, int]]] = {}
    for verdict, count in verdicts.most_common():
        kinds.setdefault(verdict.family.value, []).append((spoken(verdict), count))
    return {family: tuple(found) for family, found in kinds.items()}
