"""How each lane did, with every denominator written out and nothing netted against anything else."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.report.figures import Share
from harness.report.lane import Lane
from harness.report.tone import PARTIAL, TONES, WEAK, spoken, tone_of


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
        weak: Right answers by the EP, wholly or in part, whose golden could not tell them from most wrong
            ones, of the tried; they count neither as ``by_ep`` nor as ``partly``.
        untested: Right answers that the EP had no part in, of the tried.
        unsupported: Clean refusals, of the tried.
        failed: The EP's failures, of the tried.
        right: Right answers from whichever EP, of the tried.
        exercised: Right answers in which the EP had a part, of all right answers, weak ones included.
        suspicious: Cells that pass although their error is far above the noise of their model.
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
    weak: Share
    untested: Share
    unsupported: Share
    failed: Share
    right: Share
    exercised: Share
    suspicious: int
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
    tones: Counter[str] = Counter()
    flaky = suspicious = 0
    for record in records:
        verdicts[record.verdict] += 1
        tones[tone_of(record)] += 1
        flaky += record.flaky
        suspicious += bool(record.suspicious)
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
        by_ep=share(tones["passed"]),
        partly=share(tones[PARTIAL]),
        weak=share(tones[WEAK]),
        untested=share(families[Family.UNTESTED]),
        unsupported=share(families[Family.UNSUPPORTED]),
        failed=share(families[Family.FAILED]),
        right=share(right),
        exercised=Share(families[Family.PASSED], right, not complete),
        suspicious=suspicious,
        flaky=flaky,
        kinds=_kinds(verdicts),
        bar=stacked(tones),
    )


def stacked(counts: Counter[str]) -> tuple[Segment, ...]:
    """The segments of a bar by tone, in the order of ``TONES``, without the empty ones."""
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
