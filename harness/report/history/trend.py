"""Trends of a history: how each target developed, since when cells fail, and which errors rise."""

import functools
import itertools
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from harness.core.comparison.policy_terms import PolicyTerm
from harness.core.records.verdict import Family, Verdict, is_result
from harness.core.text.errors import UsageError, one_line, valid_names
from harness.core.text.globs import glob_matcher
from harness.core.text.later_words import unknown_word
from harness.core.verdicts.ranks import why_gone, why_new
from harness.report.cells.worst import HEADROOM_WARNING
from harness.report.changes.diff import kind_between
from harness.report.changes.likeness import UNAVAILABLE_KEY, fact_differences
from harness.report.changes.run_diff import CellChangeKind
from harness.report.changes.same_measure import Measure, MeasureChange, between
from harness.report.history.latency_steps import by_cell, latency_steps
from harness.report.history.trend_points import (
    CellPoint,
    Failing,
    LatencyStep,
    Rising,
    RunPoint,
    Series,
    TrendPoint,
    Trends,
    Turned,
)

_RISE = 0.02
"""Smallest rise, as a share of the tolerance; another order of the same sums changes less."""

_BEFORE = 10
"""Number of a cell's earlier results whose median a new result is compared with."""


_MEASURE = ("model", "golden", "golden_digest", "policy")

_TURNED = (
    "SELECT cell.cell, cell.label, cell.target, was.verdict, now.verdict, "  # noqa: S608 - own names
    + ", ".join(f"{side}.{name}" for side in ("by_then", "by_now") for name in _MEASURE)
    + " FROM cell LEFT JOIN result AS was ON was.cell = cell.id AND was.run = ?"
    " LEFT JOIN result AS now ON now.cell = cell.id AND now.run = ?"
    " LEFT JOIN measures AS by_then ON by_then.cell = cell.id AND by_then.run = ?"
    " LEFT JOIN measures AS by_now ON by_now.cell = cell.id AND by_now.run = ?"
    " WHERE cell.matrix = ? AND coalesce(was.verdict, '') <> coalesce(now.verdict, '')"
)

_PART = 500
"""Parameters of one query: SQLite takes 999 everywhere."""

_SEARCHED = 1000
"""Number of cells that are searched for a name similar to an unknown one."""


_DERIVED = ("run", "changed", "unavailable")
"""Fields of a point that are no columns of the table."""


class TrendDatabase(Protocol):
    """A database with the tables of a history: ``run``, ``environment``, ``trend``, ``cell``, ``result``."""

    def rows(self, sql: str, *values: object) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a query; each ``?`` in it stands for a value."""


def trends(history: TrendDatabase, target_glob: str | None = None) -> Trends:
    """Read the trends of all targets, or of those whose name matches.

    Raises:
        UsageError: The glob matches no target.
    """
    book = _Book(history)
    wanted = _wanted(book, target_glob)
    newest: dict[str, RunPoint] = {run.matrix: run for run in book.runs.values()}
    failing: list[Failing] = []
    rising: list[Rising] = []
    for run in newest.values():
        for cell, label, target, points in book.cells_of(run):
            if not wanted(target):
                continue
            if points[-1].verdict.family is Family.FAILED:
                failing.append(_failing(book, cell, label, target, points))
            elif found := _rising(cell, label, points):
                rising.append(found)
    return Trends(
        schema=1,
        runs=tuple(book.runs.values()),
        series=tuple(series for series in book.series() if wanted(series.target)),
        failing=tuple(sorted(failing, key=lambda each: (each.runs, each.expected, each.cell))),
        rising=tuple(sorted(rising, key=lambda each: -each.now)),
        turned=tuple(
            sorted(
                (one for run in newest.values() for target, one in book.turned(run) if wanted(target)),
                key=lambda one: (list(CellChangeKind).index(one.kind), one.cell),
            )
        ),
        steps=tuple(step for run in newest.values() for step in book.latency_steps(run, wanted)),
    )


def failing_cells(history: TrendDatabase, matrix: str) -> dict[str, Failing]:
    """Return the cells that fail in a history's newest run of a matrix, by their ids."""
    book = _Book(history)
    runs = [run for run in book.runs.values() if run.matrix == matrix]
    return {
        cell: _failing(book, cell, label, target, points)
        for run in runs[-1:]
        for cell, label, target, points in book.cells_of(run)
        if points[-1].run == run and points[-1].verdict.family is Family.FAILED
    }


def cell_points(history: TrendDatabase, cell: str) -> dict[str, tuple[CellPoint, ...]]:
    """Return matrix -> results of one cell, oldest first.

    Raises:
        UsageError: The history does not have the cell.
    """
    book = _Book(history)
    found = list(book.results("cell.cell = ?", cell))
    if not found:
        near = _near(history, cell)
        hint = valid_names(cell, near, limit=3)
        raise UsageError.at("--cell", f"the history has no cell {cell!r}", hint)
    return {points[-1].run.matrix: points for *_, points in found}


def _near(history: TrendDatabase, cell: str) -> list[str]:
    """Return cells of the same model on other targets, or else some of all."""
    model = cell.partition("[")[0]
    like = "SELECT DISTINCT cell FROM cell WHERE substr(cell, 1, ?) = ? ORDER BY cell LIMIT ?"
    found = [row[0] for row in history.rows(like, len(model), model, _SEARCHED)]
    any_of_them = "SELECT DISTINCT cell FROM cell ORDER BY cell LIMIT ?"
    return found or [row[0] for row in history.rows(any_of_them, _SEARCHED)]


def read_runs(history: TrendDatabase) -> dict[int, RunPoint]:
    """Return the runs by their number, oldest first."""
    rows = history.rows(
        "SELECT id, name, matrix, first, planned, not_run, complete FROM run ORDER BY first, id"
    )
    names = RunPoint.__struct_fields__
    fields = (dict(zip(names, row, strict=True)) for row in rows)
    return {each["id"]: msgspec.convert(each, RunPoint, strict=False) for each in fields}


def parts(values: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the values in parts that fit into the parameters of one query."""
    for start in range(0, len(values), _PART):
        yield values[start : start + _PART]


def measures_between(
    history: TrendDatabase, pairs: Sequence[tuple[int, int, int]]
) -> Iterator[MeasureChange]:
    """Yield how the measure of each ``(cell, run before, run)`` changed, by their numbers."""
    cells = [*dict.fromkeys(cell for cell, *_ in pairs)]
    known: dict[tuple[int, int], Measure] = {}
    wanted = {(cell, run) for cell, *both in pairs for run in both}
    for part in parts(cells):
        marks = ", ".join("?" * len(part))
        rows = history.rows(
            f"SELECT cell, run, {', '.join(_MEASURE)} FROM measures WHERE cell IN ({marks})",  # noqa: S608
            *part,
        )
        known |= {(cell, run): _measure(row) for cell, run, *row in rows if (cell, run) in wanted}
    for cell, before, after in pairs:
        yield between(known.get((cell, before), Measure()), known.get((cell, after), Measure()))


class _Book:
    """The rows of a history as values."""

    def __init__(self, history: TrendDatabase) -> None:
        self._history = history
        self.runs = read_runs(history)
        self._order = {number: index for index, number in enumerate(self.runs)}

    def targets(self) -> list[str]:
        return [row[0] for row in self._history.rows("SELECT DISTINCT target FROM trend ORDER BY target")]

    def series(self) -> Iterator[Series]:
        figures = (field for field in TrendPoint.__struct_fields__ if field not in _DERIVED)
        names = ["run", "label", "target", *figures]
        found: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self._history.rows(f"SELECT {', '.join(names)} FROM trend"):  # noqa: S608 - names of columns
            fields = dict(zip(names, row, strict=True))
            run = self.runs[fields["run"]]
            found[run.matrix, fields.pop("label"), fields.pop("target")].append({**fields, "run": run})
        for (matrix, label, target), points in sorted(found.items()):
            ordered = sorted(points, key=lambda point: self._order[point["run"].id])
            yield Series(
                matrix=matrix, label=label, target=target, points=tuple(self._with_changes(ordered, target))
            )

    def _with_changes(self, points: Sequence[dict[str, Any]], target: str) -> Iterator[TrendPoint]:
        before: RunPoint | None = None
        for fields in points:
            run: RunPoint = fields["run"]
            reason = self.unavailable(target, run)
            changed = self.changed(target, before, run) if before else ()
            yield TrendPoint(**fields, changed=changed, unavailable=reason)
            before = before if reason else run

    def changed(self, target: str, before: RunPoint, now: RunPoint) -> tuple[str, ...]:
        """Return the differences between the environments of a target in two runs."""
        texts = [self._environments.get((run.id, target), "{}") for run in (before, now)]
        if texts[0] == texts[1]:
            return ()
        return fact_differences(*(msgspec.json.decode(text, type=dict[str, object]) for text in texts))

    def unavailable(self, target: str, run: RunPoint) -> str:
        """Return why a run could not use a target; empty if it could."""
        found = msgspec.json.decode(self._environments.get((run.id, target), "{}"))
        return one_line(str(found.get(UNAVAILABLE_KEY) or "")) if isinstance(found, dict) else ""

    @functools.cached_property
    def _environments(self) -> dict[tuple[int, str], str]:
        """Return ``(run, target)`` -> fingerprint as JSON.

        Equal texts are shared, because most runs repeat them.
        """
        rows = self._history.rows(
            "SELECT run, target, min(fingerprint) FROM environment GROUP BY run, target"
        )
        return {(run, target): sys.intern(fingerprint) for run, target, fingerprint in rows}

    def cells_of(self, run: RunPoint) -> Iterator[tuple[str, str, str, tuple[CellPoint, ...]]]:
        """Yield the cells that fail in a run, or are close to their limit, with all their results."""
        failed = [verdict.value for verdict in Verdict if verdict.family is Family.FAILED]
        marks = ", ".join("?" * len(failed))
        yield from self.results(
            f"cell.id IN (SELECT cell FROM result WHERE run = ? "  # noqa: S608 - nothing but question marks
            f"AND (verdict IN ({marks}) OR headroom > ?) AND verdict != 'not_run')",
            run.id,
            *failed,
            HEADROOM_WARNING,
        )

    def turned(self, run: RunPoint) -> Iterator[tuple[str, Turned]]:
        """Yield ``(target, cell)`` for the cells with another verdict than in the matrix's previous run."""
        earlier = [each for each in self.runs.values() if each.matrix == run.matrix and each != run]
        if not earlier:
            return
        both = (earlier[-1].id, run.id)
        for cell, label, target, *found in self._history.rows(_TURNED, *both, *both, run.matrix):
            before, after = (None if word is None else read_verdict(word) for word in found[:2])
            measures = (_measure(found[start : start + len(_MEASURE)]) for start in (2, 2 + len(_MEASURE)))
            change = between(*measures)
            kind, facts = _turn(before, after, change)
            if kind is not None:
                yield (
                    target,
                    Turned(cell=cell, label=label, kind=kind, before=before, after=after, facts=facts),
                )

    def latency_steps(self, newest: RunPoint, wanted: Callable[[str], bool]) -> tuple[LatencyStep, ...]:
        """Return where latencies of a matrix's cells changed their level."""
        rows = self._history.rows(
            "SELECT cell.cell, cell.label, cell.target, latencies.run, p50_ms, p50_error FROM latencies "
            "JOIN cell ON cell.id = latencies.cell WHERE cell.matrix = ?",
            newest.matrix,
        )
        return latency_steps(by_cell((row for row in rows if wanted(row[2])), self.runs), self.changed)

    def results(self, where: str, *values: object) -> Iterator[tuple[str, str, str, tuple[CellPoint, ...]]]:
        """Yield ``(cell, label, target, results)`` of the selected cells; oldest result first."""
        columns = "cell.cell, label, target, matrix, run, verdict, expected, headroom, bits, p50_ms"
        join = "cell JOIN result ON result.cell = cell.id"
        # The conditions are this module's own; user data enters only as values.
        sql = f"SELECT {columns} FROM {join} WHERE {where} ORDER BY 1, 2, 3, 4"  # noqa: S608
        for names, rows in itertools.groupby(self._history.rows(sql, *values), key=lambda row: row[:4]):
            points = [
                CellPoint(
                    run=self.runs[run],
                    verdict=read_verdict(verdict),
                    expected=bool(expected),
                    headroom=headroom,
                    bits=bits,
                    p50_ms=p50_ms,
                )
                for *_, run, verdict, expected, headroom, bits, p50_ms in rows
            ]
            yield *names[:3], tuple(sorted(points, key=lambda point: self._order[point.run.id]))


def _turn(
    before: Verdict | None, after: Verdict | None, change: MeasureChange
) -> tuple[CellChangeKind | None, tuple[str, ...]]:
    """Return how a cell changed between two runs, and why."""
    if before is None or after is None:
        planned = after or before
        kind = (
            None
            if planned is None or not is_result(planned)
            else CellChangeKind.NEW
            if after
            else CellChangeKind.GONE
        )
    else:
        kind = kind_between(before, after, change)
    if kind in (CellChangeKind.NEW, CellChangeKind.GONE):
        return kind, why_new(before) if kind is CellChangeKind.NEW else why_gone(after)
    is_open = before is not None and after is not None and change.is_open(before, after)
    return kind, (*change.told, *([change.unknown] if is_open else []))


def _measure(row: Sequence[Any]) -> Measure:
    model, golden, digest, policy = (text or "" for text in row)
    terms = msgspec.json.decode(policy, type=dict[str, PolicyTerm]) if policy else {}
    return Measure(model_digest=model, golden=golden, golden_digest=digest, policy=terms)


def read_verdict(word: str) -> Verdict:
    """Return a verdict of the database.

    Raises:
        UsageError: A later version has written it.
    """
    try:
        return Verdict(word)
    except ValueError:
        raise UsageError.at("history", unknown_word(f"the verdict {word!r}", "")) from None


def _wanted(book: _Book, glob: str | None) -> Callable[[str], bool]:
    if glob is None:
        return lambda _: True
    matches = glob_matcher((glob,))
    names = book.targets()
    if not any(map(matches, names)):
        hint = valid_names(glob, names)
        raise UsageError.at("--target", f"no target is like {glob!r}", hint)
    return matches


def _failing(book: _Book, cell: str, label: str, target: str, points: Sequence[CellPoint]) -> Failing:
    # A run that skipped or did not run the cell does not end the succession.
    told = [point for point in points if point.verdict.family not in (Family.MISSING, Family.SKIPPED)]
    row = len(told)
    while row and told[row - 1].verdict.family is Family.FAILED:
        row -= 1
    since, before = told[row], told[row - 1] if row else None
    return Failing(
        cell=cell,
        label=label,
        verdict=told[-1].verdict,
        expected=told[-1].expected,
        since=since.run,
        runs=len(told) - row,
        before=before.run if before else None,
        verdict_before=before.verdict if before else None,
        changed=book.changed(target, before.run, since.run) if before else (),
    )


def _rising(cell: str, label: str, points: Sequence[CellPoint]) -> Rising | None:
    now = points[-1]
    earlier = [point.headroom for point in points[:-1] if point.headroom is not None][-_BEFORE:]
    if now.headroom is None or now.verdict.family is not Family.PASSED or not earlier:
        return None
    before = statistics.median(earlier)
    if now.headroom <= HEADROOM_WARNING or now.headroom < before + _RISE:
        return None
    return Rising(cell=cell, label=label, before=before, now=now.headroom, runs=len(earlier))
