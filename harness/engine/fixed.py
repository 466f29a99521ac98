"""Fixed sizes: whether a symbolic dimension keeps nodes off the EP.

One more session is created, and nothing is run. The check is left out if a run of the model is too much work
to repeat: a simulator compiles a large model for minutes.
"""

from collections.abc import Mapping

import msgspec

from harness.core.facts import Facts
from harness.core.fixed_sizes import FixedSizes
from harness.core.verdict import Phase
from harness.core.work import Unchecked, too_much
from harness.corpus.case import Case
from harness.corpus.fixed_sizes import fixed_sizes
from harness.engine.outcome import Ran

FIXED_SIZES = "fixed sizes"
"""Name of the check in the record, where it is left out."""


def may_be_fixed(facts: Facts) -> bool:
    """Return whether the EP left compute nodes to the CPU, or refused the model while loading it."""
    if facts.is_cpu:
        return False
    if facts.ended is not None:
        return facts.ended.how == "raised" and facts.ended.refused and facts.phase is Phase.CREATE
    placed = facts.placement
    return placed is not None and not placed.cpu_ops.keys() <= set(placed.shape_ops)


def sizes_to_fix(case: Case) -> dict[str, int]:
    """Return sizes for the symbolic dimensions of a model; empty if none is free."""
    return {} if case.fixed or case.frozen is not None else fixed_sizes(case)


def with_fixed(facts: Facts, outcome: object, sizes: Mapping[str, int]) -> Facts:
    """Return facts with the placement at fixed sizes, if the EP then takes more nodes."""
    if not isinstance(outcome, Ran):
        return facts
    placed, before = outcome.placement, facts.placement
    if placed.ep_nodes <= (before.ep_nodes if before is not None else 0):
        return facts
    found = FixedSizes(sizes=dict(sizes), ep_nodes=placed.ep_nodes, cpu_nodes=placed.cpu_nodes)
    return msgspec.structs.replace(facts, fixed=found)


def without_fixed(facts: Facts, case: Case, limit: float) -> Facts:
    """Return facts with a note that fixed sizes were not tried because that is too much work."""
    left = Unchecked(check=FIXED_SIZES, because=too_much(case.work, limit))
    return msgspec.structs.replace(facts, unchecked=(*facts.unchecked, left))
