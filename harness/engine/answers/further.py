"""Further runs: how often a cell or a question is run, and what is left out because it is too much work."""

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.core.records.cell import Cell
from harness.core.records.run_work import OTHER_INPUTS, SECOND_RUN, WORK_LIMIT, Unchecked, runs_of, too_much
from harness.core.records.scenario import GENERATE, PLAIN, SCENARIOS
from harness.corpus.case import Case
from harness.engine.answers.open_session_options import PROVIDER_SETTINGS
from harness.engine.tasks.task import HOME, Question, QuestionKind
from harness.plan.plan import Plan
from harness.plan.runs_entry import RepeatSettings

_TWICE = 2
"""Number of runs that show whether a session gives the same result again."""

_LEAST = {"sessions": ("count", 2), "concurrent": ("runs", 1)}
"""Scenario of many runs -> the setting that has their number, and the smallest number."""

_ASKED_ONCE = frozenset(
    {
        QuestionKind.NOISE,
        QuestionKind.ZEROED,
        QuestionKind.REVEALED,
        QuestionKind.UNDEFINED,
        QuestionKind.SETTLED_LOW,
        QuestionKind.SETTLED_HIGH,
        QuestionKind.REPEATED,
    }
)
"""Kinds of questions that need one run only: no further run judges their answer."""


class Further(msgspec.Struct, frozen=True, kw_only=True):
    """What is done with a session.

    Attributes:
        repeat: How often the first data set is run; None for once, or for the number in the scenario's
            settings.
        other: Whether other inputs run between two runs, where a model can have some.
        scenario: Settings of the scenario.
        unchecked: What is left out, and why.
    """

    repeat: RepeatSettings | None
    other: bool = True
    scenario: Mapping[str, Any] = {}
    unchecked: tuple[Unchecked, ...] = ()


def further_of_cell(plan: Plan, cell: Cell, case: Case) -> Further:
    """Return how much is done in a cell.

    The matrix decides with ``[[repeat]]``. Otherwise the work of one run decides, against the target's limit.
    No time is measured: a slow target and a busy machine make the same checks as a fast one.
    """
    scenario = cell.axis("scenario")
    settings = plan.matrix.scenarios.settings(scenario, cell.axes)
    if scenario in PROVIDER_SETTINGS:
        settings = PROVIDER_SETTINGS[scenario](plan.target(cell.target))
    has_others = has_other_inputs(case, scenario)
    if (wanted := plan.repeat(cell)) is not None:
        again = wanted.runs > 1 or wanted.sessions > 1
        return Further(repeat=wanted, other=again and has_others, scenario=settings)
    limit = plan.target(cell.target).work_limit
    runs = _runs(scenario, case, limit)
    if scenario in _LEAST:
        return _of_many(scenario, settings, "" if runs > 1 else too_much(case.work, limit))
    left: tuple[str, ...] = ()
    if runs == 1:
        left = (SECOND_RUN, OTHER_INPUTS) if has_others else (SECOND_RUN,)
    why = too_much(case.work, limit)
    unchecked = tuple(Unchecked(check=check, because=why) for check in left)
    other = runs > 1 and has_others
    return Further(repeat=_times(runs), other=other, scenario=settings, unchecked=unchecked)


def further_of_question(plan: Plan, question: Question, case: Case) -> Further:
    """Return how much is done for a question.

    A golden is computed once and kept. It is always run again, and with other inputs, so that every cell has
    them. For other answers one run is enough if it takes long, or if a second one would not count.
    """
    settings = plan.matrix.scenarios.settings(question.scenario, ())
    runs = 1 if question.kind in _ASKED_ONCE else _TWICE
    if question.runtime != HOME or question.kind is not QuestionKind.ANSWER:
        runs = min(runs, _runs(PLAIN, case, WORK_LIMIT))
    many = question.kind.without_session or question.kind is QuestionKind.MADE or question.session in _LEAST
    repeat = None if many or runs == 1 else _times(runs)
    return Further(repeat=repeat, other=runs > 1, scenario=settings)


def has_other_inputs(case: Case, scenario: str) -> bool:
    """Return whether a session can run other inputs between two runs of its only data set.

    Only plain sessions can; a scenario chooses its inputs itself.
    """
    return SCENARIOS[scenario].swaps_inputs and len(case.data_sets) == 1


def _of_many(scenario: str, settings: dict[str, Any], why: str) -> Further:
    """Return how much a scenario of many runs does: as the matrix says, or the least if there is a reason."""
    key, least = _LEAST[scenario]
    wanted = settings[key]
    if not why or wanted <= least:
        return Further(repeat=None, other=False, scenario=settings)
    what = f"{wanted - least:,} of {wanted:,} {'sessions' if key == 'count' else 'runs in each thread'}"
    unchecked = (Unchecked(check=what, because=why),)
    return Further(repeat=None, other=False, scenario={**settings, key: least}, unchecked=unchecked)


def _runs(scenario: str, case: Case, limit: float) -> int:
    """Return how often the first data set is run; twice is enough where each shape is run again."""
    if scenario == GENERATE:
        return _TWICE  # one way of many, played again
    runs = runs_of(case.work, limit)
    return min(runs, _TWICE) if SCENARIOS[scenario].other_data else runs


@functools.cache
def _times(runs: int) -> RepeatSettings:
    return RepeatSettings(runs=runs, sessions=1, bit_equal=False)
