"""Whether a failure at another point of the axes is an already known fault: a trial shows it.

The smallest model of the known fault is tried at that point. Wrong outputs belong to the same fault if they
have the same figures. An error, a crash or a hang belongs to it if the message is the same, and if every
change that removes it also removes it there.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from harness.annex.triage.explain import TargetVariation, explain
from harness.annex.triage.failure_check import FailureCheck, Match, worst_row
from harness.annex.triage.failure_groups import NOT_PREFIX
from harness.annex.triage.study_request import Studied
from harness.annex.triage.time_budget import TimeBudget
from harness.core.files.structure import OPTION
from harness.core.records.fault import Condition, Fault
from harness.engine.processes.native_crash import died_in, native_crash

_NOT_COMPARED = frozenset(
    {"accuracy", "graph_optimization", "optimizer", "option", "original", "precision", "scenario"}
)
"""Kinds of conditions that may differ because the two cells differ in axes, or that come from elsewhere."""


def needed_options(axes: Iterable[tuple[str, str]], conditions: Collection[Condition]) -> tuple[str, ...]:
    """Return those options, ``key=value``, without which a failure is not known to appear."""
    spared = {(one.name, one.value) for one in conditions if one.kind == "option" and one.fails}
    options = ((axis.removeprefix(OPTION), value) for axis, value in axes if axis.startswith(OPTION))
    return tuple(f"{key}={value}" for key, value in options if (key, f"{NOT_PREFIX}{value}") not in spared)


def is_same_fault(
    known: Studied, check: FailureCheck, variations: Sequence[TargetVariation], budget: TimeBudget
) -> bool:
    """Return whether a check at other axes finds the known fault."""
    reproduced = known.reproduced
    if reproduced is None or not _is_comparable(known.fault, reproduced.check, check):
        return False
    check = msgspec.structs.replace(check, repeats=reproduced.check.repeats)
    (match,) = check.matches([reproduced.subject])
    if not (match.fails if reproduced.match.fails else match.by_noise):
        return False
    if check.of_outputs:
        return _figures(match) == _figures(reproduced.match)
    if _died_in(match) != _died_in(reproduced.match) or budget.spent:
        return False
    told = explain(reproduced.subject, check, variations, budget)
    return _told(told) == _told(known.fault.conditions)


def _is_comparable(fault: Fault, known: FailureCheck, check: FailureCheck) -> bool:
    """Return whether a trial of a known fault can show that another failure is the same.

    It cannot if the fault needs other cells before it, or was not located. It also cannot if the fault
    disappears without an option in which the two differ: with another value of it a similar failure may have
    another cause.
    """
    if known.after or fault.location is None or fault.location.unfinished:
        return False
    varied = dict(check.axes).items() ^ dict(known.axes).items()
    needed = needed_options([pair for pair in known.axes if pair in varied], fault.conditions)
    return check.signature == known.signature and not needed


def _figures(match: Match) -> tuple[object, ...] | None:
    row = worst_row(match)
    if row is None:
        return None
    return row.dtype, row.shape, row.elements, row.mismatched, row.max_abs, row.max_rel


def _died_in(match: Match) -> str:
    return died_in(native_crash(match.seen.printed))


def _told(conditions: Collection[Condition]) -> dict[tuple[str, str, str], bool | None]:
    return {(one.kind, one.name, one.value): one.fails for one in conditions if one.kind not in _NOT_COMPARED}
