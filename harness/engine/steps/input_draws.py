"""Whether a failure depends on the generated inputs: a failed cell runs again with up to two others.

The first verdict stands. The others show whether the provider computes wrongly, or whether these sizes or
numbers are the reason.
"""

import msgspec

from harness.core.records.facts import Facts
from harness.core.records.record import OtherDraw, Record
from harness.core.records.scenario import SCENARIOS
from harness.core.records.verdict import Family, Phase, Verdict
from harness.core.text.errors import one_line
from harness.corpus.case import Case
from harness.corpus.inputs.fitting.starts import DRAWS
from harness.engine.answers.cases import LoadedCase
from harness.engine.tasks.events import Finished
from harness.engine.tasks.task import CellTask

_SAYS_NOTHING = frozenset({Family.SKIPPED, Family.EXCLUDED, Family.MISSING})
_COSTLY = frozenset({Verdict.CRASH, Verdict.HANG})
"""Verdicts that cost a process or its time limit with each further try; no size excuses them."""

_BY_DATA = frozenset({Phase.RUN, Phase.COMPARE})


def next_draw(task: CellTask, record: Record, case: Case | None) -> int:
    """Return the number of the generated inputs that a cell runs with next; 0 if it was tried with enough.

    Args:
        task: The cell as it was tried last.
        record: Its first record.
        case: Its model as it was tried last.
    """
    if record.family is not Family.FAILED or record.expected or record.verdict in _COSTLY:
        return 0
    if case is None or case.recipe is None or not case.ports or record.phase not in _BY_DATA:
        return 0
    if any(one.verdict.family is Family.FAILED for one in record.other_draws):
        return 0  # the verdict does not depend on the inputs
    if SCENARIOS[task.about.scenario].other_data or record.flaky or record.fails_here_alone:
        return 0
    return (task.draw + 1) % DRAWS


def with_draw(first: Record, record: Record) -> Record:
    """Return the first record of a cell with the verdicts of other inputs; unchanged if these say nothing."""
    if record.family in _SAYS_NOTHING:
        return first
    generated = record.content.generated if record.content is not None else None
    tried = OtherDraw(verdict=record.verdict, dimensions=generated.dimensions if generated else {})
    return msgspec.structs.replace(first, other_draws=(*first.other_draws, tried))


def with_draws_reason(finished: Finished) -> Finished:
    """Return a result whose reason begins with what other inputs show about its failure."""
    record = finished.record
    if not record.fails_with_these_alone:
        return finished
    others = [_spelled(one) for one in record.other_draws]
    at = f" (with {' and with '.join(others)})" if all(others) else ""
    what = "at this size" if all(others) else "with these numbers"
    words = f"fails only {what}, and not with {len(others)} other generated inputs{at}"
    record = msgspec.structs.replace(record, reason=one_line(f"{words}; {record.reason}"))
    return msgspec.structs.replace(finished, record=record)


def _spelled(draw: OtherDraw) -> str:
    return ", ".join(f"{name} = {size}" for name, size in draw.dimensions.items())


def windows_beyond_data(facts: Facts, case: LoadedCase) -> str:
    """Return which windows are larger than the generated data of a cell; empty if none is."""
    ran = facts.ended is None or facts.ended.how == "raised"
    if not ran or not isinstance(case, Case) or case.recipe is None:
        return ""
    return one_line("; ".join(case.recipe.fit.beyond), 150)
