"""How much a session must be used for a failure to appear: runs, threads and sessions, and the least of each.

The figures are axes of a trial that no matrix has: settings of its scenario, and how it is repeated.
"""

from collections.abc import Callable, Iterable

import msgspec

from harness.annex.triage.failure_check import FailureCheck
from harness.annex.triage.lab import CellAxes
from harness.annex.triage.repetition import fails_as_often
from harness.annex.triage.signature import AT_FIRST_RUN, AT_OTHER_INPUTS, AT_SECOND_RUN
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.core.records.cell import Cell
from harness.core.records.fault import Repetition, Usage
from harness.core.records.run_work import MOST_OFTEN
from harness.core.records.scenario import PLAIN, SCENARIOS
from harness.core.records.verdict import Phase, Verdict
from harness.plan.plan import Plan
from harness.plan.runs_entry import REPEAT, RepeatSettings, repeat_axes
from harness.plan.scenarios import FIGURE

THREADS_FIGURE, RUNS, SESSIONS = f"{FIGURE}threads", f"{FIGURE}runs", f"{FIGURE}count"
REPEATED_RUNS, REPEATED_SESSIONS = f"{REPEAT}runs", f"{REPEAT}sessions"

ONCE = RepeatSettings(runs=1, sessions=1, bit_equal=False)
"""Axes of one run in one session, and none with other inputs."""

_TWICE = RepeatSettings(runs=2, sessions=1, bit_equal=False)
"""The least that shows a fault of a later run: a run, one with other inputs, and the first again."""

OFTEN = RepeatSettings(runs=MOST_OFTEN, sessions=1, bit_equal=False)
"""Axes of a plain cell of a small model without any settings in the matrix."""

_IN_RUNS = frozenset({Verdict.CRASH, Verdict.ERROR, Verdict.HANG, Verdict.OUT_OF_MEMORY})
_AFTER_CREATE = frozenset({Phase.RUN, Phase.TEARDOWN})


def usage_axes(plan: Plan, cell: Cell) -> CellAxes:
    """Return the axes with which a trial uses its session as much as a cell of a run does."""
    scenario = cell.axis("scenario")
    settings = plan.matrix.scenarios.settings(scenario, cell.axes)
    repeat = plan.repeat(cell)
    given = tuple((f"{FIGURE}{key}", str(value)) for key, value in settings.items() if isinstance(value, int))
    return (*given, *(repeat_axes(repeat) if repeat is not None else ()))


def plain_axes(axes: CellAxes) -> CellAxes:
    """Return axes of a session that is created and run once or twice, in place of a scenario."""
    return with_axes((pair for pair in axes if not pair[0].startswith(FIGURE)), (("scenario", PLAIN),))


def with_axes(axes: Iterable[tuple[str, str]], others: Iterable[tuple[str, str]]) -> CellAxes:
    """Return axes in which some have other values, sorted."""
    return tuple(sorted((dict(axes) | dict(others)).items()))


def usage_of(axes: CellAxes) -> Usage | None:
    """Return how much a trial with these axes uses its session; None if it only creates it and runs it."""
    given = {axis: int(value) for axis, value in axes if axis in _FIGURES}
    runs = given.get(RUNS, given.get(REPEATED_RUNS, 1))
    sessions = given.get(SESSIONS, given.get(REPEATED_SESSIONS, 1))
    usage = Usage(
        threads=given.get(THREADS_FIGURE),
        runs=runs if runs > 1 or THREADS_FIGURE in given else None,
        sessions=sessions if sessions > 1 or SESSIONS in given else None,
    )
    return usage if usage != Usage() else None


def counts_sessions(axes: CellAxes) -> bool:
    """Return whether a trial with these axes creates several sessions.

    Then earlier trials' sessions count, too.
    """
    usage = usage_of(axes)
    return usage is not None and usage.sessions is not None


def needed_usage(subject: Subject, check: FailureCheck) -> FailureCheck:
    """Return a check that uses a session no more than is needed, as far as few trials can tell.

    A failure that also appears in a plain session needs no scenario; one that appears in the first run needs
    no second one. The figures of a needed scenario stay: ``least_usage`` makes them smaller.
    """
    check = _with_needed_axes(subject, check)
    return msgspec.structs.replace(check, fresh=check.fresh and counts_sessions(check.axes))


def _with_needed_axes(subject: Subject, check: FailureCheck) -> FailureCheck:
    if dict(check.axes).get("scenario", PLAIN) != PLAIN:
        check = _first_failing(subject, check, plain_axes(check.axes))
    if not SCENARIOS[dict(check.axes).get("scenario", PLAIN)].repeatable:
        return check
    signature, repeated = check.signature, REPEATED_RUNS in dict(check.axes)
    if signature.message == AT_FIRST_RUN:
        in_first_run = tuple(pair for pair in check.axes if not pair[0].startswith(REPEAT))
        return msgspec.structs.replace(check, axes=in_first_run)
    if signature.message not in {AT_SECOND_RUN, AT_OTHER_INPUTS}:
        if signature.verdict not in _IN_RUNS or not (repeated or signature.phase in _AFTER_CREATE):
            return check
        once = _first_failing(subject, check, with_axes(check.axes, repeat_axes(ONCE)))
        if once is not check:
            return once
        if counts_sessions(check.axes):
            check = _first_failing(subject, check, with_axes(check.axes, ((REPEATED_SESSIONS, "1"),)))
    return check if repeated else _in_further_runs(subject, check)


def _in_further_runs(subject: Subject, check: FailureCheck) -> FailureCheck:
    """Return a check with two runs; with the number of runs of small models if two are too few."""
    twice = _first_failing(subject, check, with_axes(check.axes, repeat_axes(_TWICE)))
    if twice is not check:
        return twice
    return msgspec.structs.replace(check, axes=with_axes(check.axes, repeat_axes(OFTEN)))


def least_usage(
    subject: Subject, check: FailureCheck, confirmation: Repetition, budget: TimeBudget
) -> FailureCheck:
    """Return a check with the fewest threads, runs and sessions with which a model fails equally often.

    One figure after another is bisected: with more of each, a failure appears at least as often.
    """
    for axis in _FIGURES:
        least, most = 1, int(dict(check.axes).get(axis, 1))
        while least < most and not budget.spent:
            middle = (least + most) // 2
            other = msgspec.structs.replace(check, axes=with_axes(check.axes, ((axis, str(middle)),)))
            if fails_as_often(_attempt(subject, other), confirmation):
                check, most = other, middle
            else:
                least = middle + 1
    return check


_FIGURES = (THREADS_FIGURE, RUNS, SESSIONS, REPEATED_SESSIONS, REPEATED_RUNS)
"""The figures in the order in which they are reduced."""


def _first_failing(subject: Subject, check: FailureCheck, axes: CellAxes) -> FailureCheck:
    """Return the check with other axes if the model also fails with them."""
    other = msgspec.structs.replace(check, axes=axes)
    (match,) = other.matches([subject])
    return other if match.fails else check


def _attempt(subject: Subject, check: FailureCheck) -> Callable[[int], bool]:
    def attempt(number: int) -> bool:
        (seen,) = check.lab.run([check.trial(subject, number)])
        return check.match(subject, seen).fails

    return attempt
