"""Whether a failure depends on the place: a failed cell runs again elsewhere, and then where it failed.

The first verdict stands, whatever the further tries give. They show whether the machine or the provider is
the cause. Equal failures at two places are the provider's; one that only one place repeats is the machine's;
one that no place repeats is a flake.
"""

import msgspec

from harness.core.records.record import Elsewhere, Record
from harness.core.records.verdict import Family
from harness.core.text.errors import one_line
from harness.engine.tasks.events import Finished
from harness.engine.tasks.task import CellTask


def send_on(task: CellTask, record: Record) -> bool:
    """Set in a task where its cell runs next; return False if the cell has run everywhere that it must.

    ``record`` is its first one, with the tries so far.
    """
    if not record.place or record.family is not Family.FAILED or record.expected or record.flaky:
        return False
    if task.only:
        return False
    if not task.avoid:
        task.avoid = record.place
        return True
    last = record.elsewhere[-1] if record.elsewhere else None
    if last is None or last.verdict.family is Family.FAILED:
        return False
    task.avoid, task.only = "", record.place
    return True


def with_try_elsewhere(task: CellTask, first: Record, record: Record) -> Record:
    """Return the first record of a cell, with a further try added."""
    if record.family in (Family.SKIPPED, Family.MISSING):
        return first
    tried = (*first.elsewhere, Elsewhere(place=record.place, verdict=record.verdict))
    fails = record.family is Family.FAILED
    is_flake = fails and record.verdict is not first.verdict if task.avoid else not fails
    retries = (*first.retries, *(one.verdict for one in tried)) if is_flake else first.retries
    return msgspec.structs.replace(first, elsewhere=tried, retries=retries)


def with_places_reason(finished: Finished) -> Finished:
    """Return a result whose reason begins with what the places show about its failure."""
    record = finished.record
    passing = ", ".join(one.place for one in record.elsewhere if one.verdict.family is not Family.FAILED)
    if record.fails_here_alone:
        words = f"fails on {record.place} alone, and not on {passing}: the machine, not the EP"
    elif passing and not record.flaky:
        words = f"fails on {record.place} and not on {passing}; {record.place} could not try again"
    else:
        return finished
    record = msgspec.structs.replace(record, reason=one_line(f"{words}; {record.reason}"))
    return msgspec.structs.replace(finished, record=record)
