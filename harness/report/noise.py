"""How far each lane's results lie from their goldens, in multiples of the rounding noise of their models."""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain

import msgspec

from harness.core.errors import one_line
from harness.core.noise import DEFAULT_LIMITS, rms_limit
from harness.core.output_metrics import Noise
from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.report.cell import ReportCell
from harness.report.figures import Share, Spread, spread
from harness.report.lane import Lane

NEAR = 1 / 4
"""Below this multiple a result is far more precise than the precision whose noise it is held against."""

SHOWN_FAR = 50
"""How many of the cells farthest away are named."""

SHOWN_FAR_OF_A_LANE = 5
"""How many of them may be of one lane: one that computes in another precision would fill the list."""

SHOWN_REASONS = 8
"""How many reasons are listed why there is no noise."""

_REASON_CHARS = 160

SCALE_DECADES = 2
"""How many powers of ten the plot reaches to either side of 1."""


_Excess = tuple[float, Noise]
"""The larger of an output's multiples over its default limit, and the multiples."""


class LaneNoise(msgspec.Struct, frozen=True, kw_only=True):
    """Multiples of the noise over one lane's judged cells, each with its worst output.

    Attributes:
        lane: Which.
        precision: Whose rounding makes the noise.
        cells: Cells with a figure.
        ratios: Root mean square of the error over that of the noise, of these cells.
        above: Cells beyond the default limits: rounding alone does not explain them.
        below: Cells with less than ``NEAR``.
        like: ``(precision, cells)``: the precision that a cell's error is most like, the most frequent first.
    """

    lane: Lane
    precision: str
    cells: int
    ratios: Spread
    above: int
    below: int
    like: tuple[tuple[str, int], ...]

    @property
    def above_share(self) -> Share:
        """Cells beyond the default limits, of those with a figure."""
        return Share(self.above, self.cells)

    @property
    def below_share(self) -> Share:
        """Cells that are far more precise, of those with a figure."""
        return Share(self.below, self.cells)


class FarCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell whose error rounding alone does not explain.

    Attributes:
        cell: Its id.
        href: Where its details stand; may be empty.
        noise: Of its worst output.
        verdict: Its verdict.
    """

    cell: str
    href: str
    noise: Noise
    verdict: Verdict


def worst_noise(record: Record) -> Noise | None:
    """Of the output that is farthest beyond the default limits; None where no output has any."""
    worst = _worst(record)
    return worst[1] if worst else None


def lane_noise(lane: Lane, records: Iterable[Record]) -> tuple[LaneNoise, ...]:
    """Measure one lane, once for each precision of the noise; the one with the most cells first.

    What the CPU computed in the provider's place does not count, nor what is exact: it has no figure.
    """
    found: dict[str, list[_Excess]] = defaultdict(list)
    for record in records:
        worst = _worst(record)
        if worst and _is_the_providers(record):
            found[worst[1].precision].append(worst)
    rows = [_row(lane, precision, its) for precision, its in found.items()]
    return tuple(sorted(rows, key=lambda row: (-row.cells, row.precision)))


def without_noise(records: Iterable[Record]) -> tuple[tuple[str, int], ...]:
    """``(reason, cells)`` of those that limits of noise were to judge, the most frequent first."""
    reasons = Counter(one_line(record.no_spread, _REASON_CHARS) for record in records if record.no_spread)
    shown = reasons.most_common(SHOWN_REASONS)
    rest = reasons.total() - sum(count for _, count in shown)
    return (*shown, *([("other reasons", rest)] if rest else []))


def farthest(cells: Iterable[ReportCell]) -> tuple[FarCell, ...]:
    """The cells beyond the default limits, the farthest first."""
    by_lane: dict[Lane, list[tuple[_Excess, ReportCell]]] = defaultdict(list)
    for cell in cells:
        worst = _worst(cell.record)
        if worst and worst[0] > 1 and _is_the_providers(cell.record):
            by_lane[cell.lane].append((worst, cell))
    tops = (heapq.nlargest(SHOWN_FAR_OF_A_LANE, its, key=_by_excess) for its in by_lane.values())
    top = heapq.nlargest(SHOWN_FAR, chain.from_iterable(tops), key=_by_excess)
    return tuple(
        FarCell(cell=cell.record.cell, href=cell.href, noise=noise, verdict=cell.record.verdict)
        for (_, noise), cell in top
    )


def on_log_scale(ratio: float) -> float:
    """Where a multiple lies on the plot, in percent of its width; 1 lies in the middle."""
    decades = math.log10(ratio) if ratio > 0 else -math.inf
    return round(50 + 50 * min(max(decades / SCALE_DECADES, -1.0), 1.0), 2)


def _is_the_providers(record: Record) -> bool:
    judged = record.verdict.family is Family.PASSED or record.verdict is Verdict.MISMATCH
    return judged and record.placement is not None and record.placement.ep_nodes > 0


def _worst(record: Record) -> _Excess | None:
    found = [
        (_excess(output.noise, output.elements), output.noise) for output in record.outputs if output.noise
    ]
    return max(found, key=lambda each: each[0], default=None)


def _excess(noise: Noise, elements: int) -> float:
    return max(noise.rms / rms_limit(DEFAULT_LIMITS, elements), noise.max / DEFAULT_LIMITS.max)


def _by_excess(found: tuple[_Excess, ReportCell]) -> float:
    return found[0][0]


def _row(lane: Lane, precision: str, found: list[_Excess]) -> LaneNoise:
    ratios = [noise.rms for _, noise in found]
    summary = spread(ratios)
    if summary is None:
        raise ValueError("a row takes one figure at least")
    return LaneNoise(
        lane=lane,
        precision=precision,
        cells=len(found),
        ratios=summary,
        above=sum(excess > 1 for excess, _ in found),
        below=sum(ratio < NEAR for ratio in ratios),
        like=tuple(Counter(noise.like for _, noise in found if noise.like).most_common()),
    )
