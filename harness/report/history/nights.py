"""Nights side by side: which cells turned, since when they fail in this way, and how often they are flaky."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from harness.core.records.verdict import Family, Verdict, is_result
from harness.core.text.globs import glob_matcher
from harness.report.cells.reason_signature import signature_from
from harness.report.changes.diff import kind_between
from harness.report.changes.run_diff import CellChangeKind
from harness.report.history.trend import TrendDatabase, measures_between, parts, read_runs, read_verdict
from harness.report.history.trend_points import Flake, RunPoint, Trends
from harness.report.words.figures import Share
from harness.report.words.tone import tone

MOST_NIGHTS = 300
"""Number of runs of a matrix that are shown, the newest ones."""

_DATES = 4
"""Number of dates above the grid."""

_FLAKY_NIGHTS = 2
"""Number of nights with a verdict other than before and after, from which on a cell is called flaky: one
may be the machine's fault."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Successive nights in which a cell had one verdict; ``start`` and ``width`` are percent of the grid."""

    tone: str
    verdict: Verdict
    start: float
    width: float
    first: RunPoint
    last: RunPoint


class NightCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell that turned or fails.

    Attributes:
        verdict: The newest one.
        expected: Whether the matrix expects it.
        since: For a failure, the first of the successive nights in which the cell fails.
        nights: Number of these nights.
        same_since: The first of the successive nights with this verdict and signature.
        same_nights: Number of these nights.
        signature: Cause, phase and reason of the failure, without figures.
        flaky: Nights in which a retry had another verdict, or whose verdict differed from the nights before
            and after; among the nights with a result.
        stretches: Its verdicts, oldest first.
    """

    cell: str
    label: str
    verdict: Verdict
    expected: bool
    since: RunPoint | None
    nights: int
    same_since: RunPoint | None
    same_nights: int
    signature: str
    flaky: Share
    retried: bool
    stretches: tuple[Stretch, ...]

    @property
    def is_flake(self) -> bool:
        """Return whether it is flaky, and not only because of another machine once."""
        return self.retried or self.flaky.count >= _FLAKY_NIGHTS


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A date above the grid; ``at`` in percent."""

    at: float
    text: str


class Night(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its results, and how many cells turned since their last night with a result.

    Attributes:
        others: Cells with another verdict which is neither, or which another golden, model or tolerance may
            explain.
        flaky: Cells in which a retry had another verdict.
        skipped: Planned cells that were not tried.
    """

    run: RunPoint
    failed: int
    regressed: int
    fixed: int
    others: int
    flaky: int
    skipped: int


class Nights(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one matrix.

    Attributes:
        nights: Oldest first.
        older: Runs that are left out.
        cells: Cells that turned or fail: failures first, the newest first, then the flakiest.
        trends: Link to a page with the trends of all runs; empty without one.
        steady: Number of cells that had one verdict in all these nights, and do not fail.
    """

    matrix: str
    nights: tuple[Night, ...]
    older: int
    cells: tuple[NightCell, ...]
    steady: int
    trends: str = ""

    @property
    def dates(self) -> tuple[Mark, ...]:
        """The dates of some nights, evenly spaced."""
        step = -(-len(self.nights) // _DATES) or 1
        shown = ((index, self.nights[index]) for index in range(0, len(self.nights), step))
        unit = 100 / max(1, len(self.nights))
        return tuple(Mark(at=round(index * unit, 3), text=night.run.first[:10]) for index, night in shown)

    @property
    def turning(self) -> tuple[Night, ...]:
        """The nights in which anything turned, newest first."""
        turned = (n for n in reversed(self.nights) if n.regressed or n.fixed or n.others or n.flaky)
        return tuple(turned)

    @property
    def flakes(self) -> tuple[NightCell, ...]:
        """The flaky cells, the flakiest first."""
        found = [cell for cell in self.cells if cell.is_flake]
        return tuple(sorted(found, key=lambda cell: (-cell.flaky.count / cell.flaky.total, cell.cell)))


class _Point(msgspec.Struct, frozen=True):
    """The result of a cell in the night with this index."""

    night: int
    verdict: Verdict
    expected: bool
    signature: str
    flaky: bool


def with_nights(
    history: TrendDatabase, found: Trends, target_glob: str | None = None
) -> tuple[Trends, tuple[Nights, ...]]:
    """Return trends with their flaky cells, and the nights of each matrix, for targets whose name matches."""
    nights = tuple(
        nights_of(history, matrix, target_glob) for matrix in dict.fromkeys(run.matrix for run in found.runs)
    )
    flakes = tuple(
        Flake(cell=one.cell, label=one.label, nights=one.flaky.count, judged=one.flaky.total)
        for each in nights
        for one in each.flakes
    )
    return msgspec.structs.replace(found, flakes=flakes), nights


def nights_of(
    history: TrendDatabase, matrix: str, target_glob: str | None = None, *, trends: str = ""
) -> Nights:
    """Return the newest nights of a matrix, for all targets or those whose name matches.

    Empty without any.
    """
    every = [run for run in read_runs(history).values() if run.matrix == matrix]
    runs = every[-MOST_NIGHTS:]
    if not runs:
        return Nights(matrix=matrix, nights=(), older=0, cells=(), steady=0)
    index = {run.id: number for number, run in enumerate(runs)}
    matches = glob_matcher((target_glob or "*",))
    of_target = history.rows("SELECT target, count(*) FROM cell WHERE matrix = ? GROUP BY target", matrix)
    planned = sum(count for target, count in of_target if matches(target))
    named, points = _points(history, matrix, index, matches)
    kinds = _kinds(history, points, runs)
    cells = [_cell(*named[number], its, runs) for number, its in points.items()]
    return Nights(
        matrix=matrix,
        nights=tuple(_nights(history, runs, points.values(), kinds)),
        older=len(every) - len(runs),
        cells=tuple(sorted(cells, key=_urgency)),
        steady=planned - len(cells),
        trends=trends,
    )


def _urgency(cell: NightCell) -> tuple[object, ...]:
    fails = cell.since is not None
    return (not fails, cell.expected, cell.nights if fails else 0, -cell.flaky.count, cell.cell)


def _points(
    history: TrendDatabase, matrix: str, index: dict[int, int], matches: Callable[[str], bool]
) -> tuple[dict[int, tuple[str, str]], dict[int, list[_Point]]]:
    """Return the names, and the results, of the cells with several verdicts or a failure.

    ``index`` maps the number of a run to the number of its night, from 0.
    """
    results = [verdict.value for verdict in Verdict if is_result(verdict)]
    failed = [verdict.value for verdict in Verdict if verdict.family is Family.FAILED]
    # Only question marks are inserted into the texts.
    chosen = (
        "SELECT result.cell FROM result JOIN cell ON cell.id = result.cell "  # noqa: S608
        f"WHERE cell.matrix = ? AND result.run BETWEEN ? AND ? AND verdict IN ({_marks(results)}) "
        f"GROUP BY result.cell HAVING count(DISTINCT verdict) > 1 OR max(verdict) IN ({_marks(failed)})"
    )
    first, last = min(index), max(index)
    wanted = (matrix, first, last, *results, *failed)
    names = history.rows(f"SELECT id, cell, label, target FROM cell WHERE id IN ({chosen})", *wanted)  # noqa: S608
    named = {number: (cell, label) for number, cell, label, target in names if matches(target)}
    flaky: dict[tuple[int, int], tuple[str, bool]] = {
        (cell, run): (signature_from(cause, phase, reason), bool(is_flaky))
        for cell, run, cause, phase, reason, is_flaky in history.rows(
            "SELECT cell, run, cause, phase, reason, flaky FROM failures WHERE run BETWEEN ? AND ?",
            first,
            last,
        )
        if cell in named
    }
    found: dict[int, list[_Point]] = defaultdict(list)
    for part in parts(tuple(named)):
        for cell, run, verdict, expected in history.rows(
            f"SELECT cell, run, verdict, expected FROM result WHERE cell IN ({_marks(part)})",  # noqa: S608
            *part,
        ):
            if run in index:
                told = flaky.get((cell, run), ("", False))
                found[cell].append(_Point(index[run], read_verdict(verdict), bool(expected), *told))
    for its in found.values():
        its.sort(key=lambda point: point.night)
    return named, found


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _kinds(
    history: TrendDatabase, points: dict[int, list[_Point]], runs: Sequence[RunPoint]
) -> Counter[tuple[int, CellChangeKind]]:
    """Count ``(night, kind)`` of the cells that turned since their last night with a result."""
    turns = [
        (cell, before, after)
        for cell, its in points.items()
        for before, after in pairwise([point for point in its if is_result(point.verdict)])
        if before.verdict is not after.verdict
    ]
    changes = measures_between(
        history, [(cell, runs[before.night].id, runs[after.night].id) for cell, before, after in turns]
    )
    counts: Counter[tuple[int, CellChangeKind]] = Counter()
    for (_, before, after), change in zip(turns, changes, strict=True):
        kind = kind_between(before.verdict, after.verdict, change)
        if kind is not None:
            counts[after.night, kind] += 1
    return counts


def _nights(
    history: TrendDatabase,
    runs: Sequence[RunPoint],
    points: Iterable[list[_Point]],
    kinds: Counter[tuple[int, CellChangeKind]],
) -> Iterator[Night]:
    flaky = Counter(point.night for its in points for point in its if point.flaky)
    sums = history.rows("SELECT run, sum(failed), sum(skipped) FROM trend GROUP BY run")
    counted = {run: (failed or 0, skipped or 0) for run, failed, skipped in sums}
    for number, run in enumerate(runs):
        failed, skipped = counted.get(run.id, (0, 0))
        regressed, fixed = kinds[number, CellChangeKind.REGRESSED], kinds[number, CellChangeKind.FIXED]
        yield Night(
            run=run,
            failed=int(failed),
            regressed=regressed,
            fixed=fixed,
            others=sum(kinds[number, kind] for kind in CellChangeKind) - regressed - fixed,
            flaky=flaky[number],
            skipped=int(skipped),
        )


def _cell(cell: str, label: str, points: list[_Point], runs: Sequence[RunPoint]) -> NightCell:
    told = [point for point in points if is_result(point.verdict)]
    now = (told or points)[-1]
    failing = _last(told, lambda point: point.verdict.family is Family.FAILED)
    same = _last(told, lambda point: (point.verdict, point.signature) == (now.verdict, now.signature))
    fails = bool(failing)
    return NightCell(
        cell=cell,
        label=label,
        verdict=now.verdict,
        expected=now.expected,
        since=runs[failing[0].night] if fails else None,
        nights=len(failing),
        same_since=runs[same[0].night] if fails else None,
        same_nights=len(same) if fails else 0,
        signature=now.signature,
        flaky=Share(_odd(told), len(told)),
        retried=any(point.flaky for point in told),
        stretches=tuple(_stretches(points, runs)),
    )


def _last(points: list[_Point], holds: Callable[[_Point], bool]) -> list[_Point]:
    """Return the last successive points that satisfy a condition."""
    start = len(points)
    while start and holds(points[start - 1]):
        start -= 1
    return points[start:]


def _odd(points: list[_Point]) -> int:
    """Count the nights with another verdict on retry, or a verdict unlike the nights before and after."""
    count = 0
    settled = points[0].verdict if points else None
    for index, point in enumerate(points):
        returns = index + 1 < len(points) and points[index + 1].verdict is settled
        if point.verdict is not settled and not returns:
            settled = point.verdict
        count += point.flaky or point.verdict is not settled
    return count


def _stretches(points: list[_Point], runs: Sequence[RunPoint]) -> Iterator[Stretch]:
    unit = 100 / len(runs)
    start = 0
    for index, point in enumerate(points, start=1):
        following = points[index] if index < len(points) else None
        if (
            following is not None
            and following.verdict is point.verdict
            and following.night == point.night + 1
        ):
            continue
        first = points[start]
        yield Stretch(
            tone=tone(point.verdict),
            verdict=point.verdict,
            start=round(first.night * unit, 3),
            width=round((point.night + 1 - first.night) * unit, 3),
            first=runs[first.night],
            last=runs[point.night],
        )
        start = index
