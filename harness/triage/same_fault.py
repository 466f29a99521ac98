"""Whether a failure at another point of the axes is a fault that is already known: a trial shows it.

The smallest model of the known fault is tried at that point. Wrong outputs are of the same fault if they
have the same figures. An error, a crash or a hang is if it says the same, and if all that makes it go away
makes it go away there, too.
"""

from collections.abc import Collection, Sequence

import msgspec

from harness.core.fault import Condition
from harness.engine.native_crash import died_in, native_crash
from harness.triage.budget import Budget
from harness.triage.check import Check, Match, worst_row
from harness.triage.explain import TargetVariation, explain
from harness.triage.studied import Studied

_NOT_COMPARED = frozenset(
    {"accuracy", "graph_optimization", "optimizer", "option", "original", "precision", "scenario"}
)
"""Kinds of conditions that may differ because the two cells differ in axes, or that come from elsewhere."""


def is_same_fault(
    known: Studied, check: Check, variations: Sequence[TargetVariation], budget: Budget
) -> bool:
    """Return whether a check at other axes finds the known fault.

    A fault that needs other cells before it, or that was not located, is none to compare with.
    """
    reproduced, fault = known.reproduced, known.fault
    if reproduced is None or reproduced.check.after or fault.location is None or fault.location.unfinished:
        return False
    if check.signature != reproduced.check.signature:
        return False
    check = msgspec.structs.replace(check, repeats=reproduced.check.repeats)
    (match,) = check.matches([reproduced.subject])
    if not (match.fails if reproduced.match.fails else match.by_noise):
        return False
    if check.of_outputs:
        return _figures(match) == _figures(reproduced.match)
    if _died_in(match) != _died_in(reproduced.match) or budget.spent:
        return False
    return _told(explain(reproduced.subject, check, variations, budget)) == _told(fault.conditions)


def _figures(match: Match) -> tuple[object, ...] | None:
    row = worst_row(match)
    if row is None:
        return None
    return row.dtype, row.shape, row.elements, row.mismatched, row.max_abs, row.max_rel


def _died_in(match: Match) -> str:
    return died_in(native_crash(match.seen.printed))


def _told(conditions: Collection[Condition]) -> dict[tuple[str, str, str], bool | None]:
    return {(one.kind, one.name, one.value): one.fails for one in conditions if one.kind not in _NOT_COMPARED}
