"""Whether past and present of a decoder's cache may share one buffer in a configuration."""

from contextlib import closing
from typing import Literal

import msgspec

from harness.annex.advise.candidates import Candidate
from harness.core.records.record import Record
from harness.core.records.scenario import GENERATE
from harness.core.records.verdict import Family
from harness.corpus.suites.suite import Suite
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.target import Target
from harness.studies.ask import Notify, matrix_for, results

SHARED_WAY = "shared_buffer"
"""The way with one buffer."""

_FIRST = "at_once"


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """The answer.

    Attributes:
        state: ``right``: its results are right; ``wrong``: they are not, or it fails; ``declined``: model or
            EP cannot share; ``unknown``: it was not tried.
        reason: Why, in one line; empty if it is right.
    """

    state: Literal["right", "wrong", "declined", "unknown"]
    reason: str = ""


def with_ways(matrix: Matrix, ways: list[str]) -> Matrix:
    """Return a matrix whose cells of the scenario ``generate`` play these ways only."""
    generate = msgspec.structs.replace(matrix.scenarios.generate, ways=ways)
    scenarios = msgspec.structs.replace(matrix.scenarios, generate=generate)
    return msgspec.structs.replace(matrix, scenarios=scenarios)


def shares_buffer(
    suite: Suite, matrix: Matrix, target: Target, candidate: Candidate, notify: Notify
) -> Sharing:
    """Play the text with one buffer for past and present, for the only decoder of a suite.

    Tolerances, dimensions and text are those of the matrix; the target is the candidate's, ready for use.
    """
    (model,) = suite.models()
    cell = candidate.cell(suite.name, model, GENERATE)
    asked = with_ways(matrix_for(matrix, [target]), [_FIRST, SHARED_WAY])
    with closing(Engine(Plan(matrix=asked, cells=(cell,)), {suite.name: suite})) as engine:
        engine.submit([cell])
        engine.drain()
        for event in results(engine, notify):
            if isinstance(event, Finished):
                return sharing_of(event.record)
    return Sharing(state="unknown", reason="the engine ended without a result")


def sharing_of(record: Record) -> Sharing:
    """Return the answer of a record in which the way was asked for."""
    found = record.generation
    if found is not None and SHARED_WAY in found.declined:
        return Sharing(state="declined", reason=found.declined[SHARED_WAY])
    played = found is not None and any(way.way == SHARED_WAY for way in found.ways)
    if played and record.family is Family.PASSED:
        return Sharing(state="right")
    if record.family is Family.FAILED:
        return Sharing(state="wrong", reason=record.reason or str(record.verdict))
    return Sharing(state="unknown", reason=record.reason or str(record.verdict))
