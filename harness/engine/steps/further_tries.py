"""Further tries of a failed cell: retries, other places, other generated inputs. The first verdict stands."""

import msgspec

from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.corpus.case import Case
from harness.engine.steps import elsewhere, input_draws
from harness.engine.tasks.events import Finished
from harness.engine.tasks.task import CellTask

UNTRIED = frozenset({Family.SKIPPED, Family.MISSING})
"""Families of cells that were not tried: they say nothing about the provider."""


def with_try(task: CellTask, first: Record, record: Record) -> Record:
    """Return the first record of a cell with the result of a further try.

    The result never turns it into a pass.
    """
    if task.draw:
        return input_draws.with_draw(first, record)
    if _is_elsewhere(task):
        return elsewhere.with_try_elsewhere(task, first, record)
    tried = () if record.family in UNTRIED else (record.verdict,)
    return msgspec.structs.replace(first, retries=(*first.retries, *tried))


def next_try(
    task: CellTask, finished: Finished, record: Record, case: Case | None, retries: int
) -> CellTask | None:
    """Return the task of a further try of a cell; None if its result is final.

    Args:
        task: The cell as it was tried last.
        finished: Its result so far.
        record: The record of the last try.
        case: Its model as it was tried last.
        retries: How often the target retries an unexpected failure.
    """
    # Without model and inputs: many such cells may wait for a long time.
    first = msgspec.structs.replace(finished, case=None)
    if record.family not in UNTRIED and not task.draw:
        needs_retry = not _is_elsewhere(task) and _needs_retry(first.record, retries)
        if needs_retry or elsewhere.send_on(task, first.record):
            task.first, task.attempt, task.losses = first, 1, 0
            return task
    draw = input_draws.next_draw(task, first.record, case)
    if not draw:
        return None
    return CellTask(cell=task.cell, first=first, draw=draw, expected_ms=task.expected_ms)


def with_tries_reason(finished: Finished) -> Finished:
    """Return a result whose reason begins with what its further tries show."""
    return elsewhere.with_places_reason(input_draws.with_draws_reason(finished))


def _is_elsewhere(task: CellTask) -> bool:
    """Return whether a task checks the place at which a cell failed."""
    return bool(task.only or task.avoid)


def _needs_retry(record: Record, retries: int) -> bool:
    """Return whether an unexpected failure is tried again; a single difference shows a flake."""
    unexpected = record.family is Family.FAILED and not record.expected
    return unexpected and not record.flaky and len(record.retries) < retries
