"""The fastest configuration that passes, by best-first search within a time budget.

Every target is tried unchanged, then with one change at a time, beginning at the fastest. Changes that made a
target faster are combined. At the end the fastest candidates run in turns, forth and back: A B B A. Each
candidate is a cell: it is judged by all rules, and its latency is measured while no other cell runs.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from harness.annex.advise.candidates import base_of
from harness.annex.advise.course import CandidateQueue, Course
from harness.annex.advise.search_result import Advice, TriedCandidate
from harness.core.records.scenario import GENERATE, PLAIN
from harness.corpus.graph import graph_in
from harness.corpus.suites.suite import Suite
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished, TargetReady
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.runs_entry import LatencySettings, RunsRequest
from harness.plan.selector import Selector
from harness.plan.surroundings import surroundings_of
from harness.plan.target import Target
from harness.studies.ask import Notify, matrix_for, results

_MEASURED = LatencySettings(warm_up=3, repeats=300, budget_s=1.0)
"""How each candidate is timed: enough runs for a stable median, and one second at most."""

MEASURED_TEXT = LatencySettings(warm_up=2, repeats=100, budget_s=0.25)
"""How each figure of generated text is timed: a candidate has some ten, for prompts and batches."""

_FOR_FINAL = 0.25
"""Share of the time that is reserved for the final."""

_SHARE_OF_BUDGET = 0.25
"""Share of the time that a session, or a run, may take at most: a slow device must leave time for others."""


def advise(
    suite: Suite,
    matrix: Matrix,
    *,
    until: float,
    notify: Notify,
    show: Callable[[TriedCandidate], None],
    scenario: str = PLAIN,
) -> Advice:
    """Search until all candidates are tried, the time is used up, or Ctrl-C is pressed.

    The suite holds one model. Targets, tolerances and dimensions are those of the matrix. ``until`` is on the
    monotonic clock, in seconds. In the scenario ``generate`` a run is that of one token.

    Raises:
        UsageError: The model cannot be read.
    """
    began = time.monotonic()
    budget_s = max(until - began, 0.0)
    bases = [base_of(target, max(1.0, budget_s * _SHARE_OF_BUDGET)) for target in matrix.targets]
    (model,) = suite.models()
    search = CandidateQueue(matrix.targets, bases, graph_in(suite, model).op_types)
    course = Course(search, until - budget_s * _FOR_FINAL)
    fingerprints: dict[str, dict[str, object]] = {}
    cells = tuple(candidate.cell(suite.name, model, scenario) for candidate in search.waiting())
    settings = MEASURED_TEXT if scenario == GENERATE else _MEASURED
    engine = Engine(Plan(matrix=timed(matrix, bases, settings), cells=cells), {suite.name: suite})
    stopped_by, candidate = "budget", course.next()
    with closing_after(engine, budget_s):
        try:
            if candidate is not None:
                engine.submit([candidate.cell(suite.name, model, scenario)])
            for event in results(engine, notify):
                if isinstance(event, TargetReady):
                    fingerprints[event.target] = event.fingerprint
                    course.simulated = simulated_of(bases, fingerprints)
                elif isinstance(event, Finished) and candidate is not None:
                    result = TriedCandidate(candidate=candidate, record=event.record)
                    course.take(result)
                    show(result)
                    candidate = course.next()
                    if candidate is None:
                        stopped_by = "budget" if search.waiting() else "end"
                        break
                    engine.submit([candidate.cell(suite.name, model, scenario)])
        except KeyboardInterrupt:
            stopped_by = "interrupt"
    under_way = () if candidate is None or candidate in course.results else (candidate,)
    simulated = course.simulated
    return Advice(
        # Stable: each part keeps its order.
        ranked=tuple(sorted(course.ranked(), key=lambda one: one.candidate.target in simulated)),
        fell_out=tuple(one for one in course.results.values() if one.p50_ms is None),
        not_tried=under_way + search.waiting(),
        targets={base.name: base for base in bases},
        fingerprints=fingerprints,
        simulated=simulated,
        stopped_by=stopped_by,
        elapsed_s=time.monotonic() - began,
    )


def simulated_of(
    targets: Sequence[Target], fingerprints: Mapping[str, Mapping[str, object]]
) -> dict[str, str]:
    """Return target -> the program in place of its accelerator, for targets with such a program."""
    found = {
        one.name: surroundings_of(fingerprints[one.name], one.provider, one.device).simulated_by
        for one in targets
        if one.name in fingerprints
    }
    return {name: by for name, by in found.items() if by}


@contextlib.contextmanager
def closing_after(engine: Engine, budget_s: float) -> Iterator[None]:
    """Close an engine at the end, or after some time; that ends its events, whatever is running."""
    alarm = threading.Timer(budget_s, engine.close)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()
        engine.close()


def timed(matrix: Matrix, targets: Sequence[Target], settings: LatencySettings) -> Matrix:
    """Return the matrix with other targets, whose cells are all timed."""
    every = RunsRequest(selector=Selector(), settings=settings)
    return msgspec.structs.replace(matrix_for(matrix, targets), latency=(every,))
