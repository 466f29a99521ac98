"""Whether a failure at another point of the axes is a fault that is already known: a trial shows it.

The smallest model of the known fault is tried at that point. It is the same fault if the model fails there
with the same figures, or if all that makes the failure go away makes it go away there, too.
"""

from collections.abc import Collection, Sequence

import msgspec

from harness.core.fault import Condition
from harness.triage.budget import Budget
from harness.triage.check import Check, worst_row
from harness.triage.explain import TargetVariation, explain
from harness.triage.studied import Reproduced, Studied

_ABOUT_AXES = frozenset({"graph_optimization", "option", "precision", "scenario"})
"""Conditions that may differ because the two cells differ in axes."""


def is_same_fault(
    known: Studied, check: Check, variations: Sequence[TargetVariation], budget: Budget
) -> bool:
    """Return whether a check at other axes finds the known fault.

    A fault that needs other cells before it, or that was not located, is none to compare with.
    """
    reproduced, fault = known.reproduced, known.fault
    if reproduced is None or reproduced.check.after or fault.location is None or fault.location.unfinished:
        return False
    check = msgspec.structs.replace(check, repeats=reproduced.check.repeats)
    (match,) = check.matches([reproduced.subject])
    if not (match.fails if reproduced.match.fails else match.by_noise):
        return False
    if check.of_values and _figures(reproduced) == _figures(msgspec.structs.replace(reproduced, match=match)):
        return True
    return not budget.spent and _told(explain(reproduced.subject, check, variations, budget)) == _told(
        fault.conditions
    )


def _figures(reproduced: Reproduced) -> tuple[object, ...] | None:
    row = worst_row(reproduced.match)
    return None if row is None else (row.mismatched, row.elements, row.max_abs, row.max_rel)


def _told(conditions: Collection[Condition]) -> dict[tuple[str, str, str], bool | None]:
    return {
        (one.kind, one.name, one.value): one.fails
        for one in conditions
        if one.kind not in _ABOUT_AXES and one.kind not in {"original", "accuracy", "optimizer"}
    }
