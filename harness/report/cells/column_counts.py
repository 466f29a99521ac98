"""The counts of each column, with all denominators; gains and losses are not offset."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.report.cells.column import Column
from harness.report.words.figures import Segment, Share, stacked
from harness.report.words.tone import PARTIAL, TONES, WEAK, spoken, tone_of


class ColumnSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one column. ``cells`` = skipped + excluded + missing + tried.

    Attributes:
        tried: Cells that are neither skipped, excluded nor missing; shares are fractions of these.
        by_ep: Right answers wholly by the EP.
        partly: Right answers in part by the EP.
        weak: Right answers by the EP, wholly or in part, that the golden cannot tell from wrong ones;
            they count neither as ``by_ep`` nor as ``partly``.
        untested: Right answers in which the EP had no part.
        exercised: Right answers in which the EP had a part, among all right answers, including weak ones.
        approximate: Cells that pass because of a document of the EP, with an error larger than the rounding
            of their model.
        unconfirmed: Cells that fail by values which float64 has not confirmed as wrong.
        flaky: Failed cells that had another verdict when tried again.
        unchecked: Cells with a check that was left out, such as a second run.
        kinds: Family -> ``(verdict in words, count)``, the most frequent first.
    """

    column: Column
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
    approximate: int
    unconfirmed: int
    flaky: int
    unchecked: int
    kinds: dict[str, tuple[tuple[str, int], ...]]
    bar: tuple[Segment, ...]


def summarise(column: Column, records: Iterable[Record], *, complete: bool) -> ColumnSummary:
    """Count one column's records by their first verdicts.

    If the run is not complete, no share counts as all or none of the tried cells.
    """
    verdicts: Counter[Verdict] = Counter()
    tones: Counter[str] = Counter()
    flaky = approximate = unconfirmed = unchecked = 0
    for record in records:
        verdicts[record.verdict] += 1
        tones[tone_of(record)] += 1
        flaky += record.flaky
        approximate += bool(record.approximate)
        unconfirmed += bool(record.unconfirmed)
        unchecked += bool(record.unchecked)
    families: Counter[Family] = Counter()
    for verdict, count in verdicts.items():
        families[verdict.family] += count
    cells = verdicts.total()
    skipped, excluded, missing = (families[f] for f in (Family.SKIPPED, Family.EXCLUDED, Family.MISSING))
    tried = cells - skipped - excluded - missing
    right = families[Family.PASSED] + families[Family.UNTESTED]

    def share(count: int) -> Share:
        return Share(count, tried, not complete)

    return ColumnSummary(
        column=column,
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
        approximate=approximate,
        unconfirmed=unconfirmed,
        flaky=flaky,
        unchecked=unchecked,
        kinds=_kinds(verdicts),
        bar=stacked((tone, tones[tone]) for tone in TONES),
    )


def _kinds(verdicts: Counter[Verdict]) -> dict[str, tuple[tuple[str, int], ...]]:
    kinds: dict[str, list[tuple[str, int]]] = {}
    for verdict, count in verdicts.most_common():
        kinds.setdefault(verdict.family.value, []).append((spoken(verdict), count))
    return {family: tuple(found) for family, found in kinds.items()}
