"""What to ship for a folder: every model on every target within one time budget.

First all models are judged on the targets as they are, which uses all processors. Then each model that passes
on a device is timed. Each model has its own search. All searches run at once, so that one process of a
configuration serves many models; the finals run in the same way.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from harness.annex.advise.candidates import Candidate, base_of
from harness.annex.advise.course import CandidateQueue, Course
from harness.annex.advise.fastest import closing_after, simulated_of, timed
from harness.annex.advise.search_result import TriedCandidate
from harness.core.findings.shipping import ShippedModel, ShippingChoice, what_to_ship
from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.core.records.verdict import WRONG_NUMBERS, Family
from harness.core.text.errors import HarnessError
from harness.core.verdicts.not_run import not_run
from harness.corpus.graph import graph_in
from harness.corpus.suites.suite import Suite
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished, TargetReady
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.runs_entry import LatencySettings
from harness.plan.target import Target
from harness.studies.ask import Notify, matrix_for, results

_MEASURED = LatencySettings(warm_up=3, repeats=200, budget_s=0.4)
"""How each candidate is timed: many models share the time."""

_FOR_TIMES = 0.4
"""Share of the time that is reserved for timing, however long the verdicts take."""

_FOR_FINALS = 0.4
"""Share of that time that is reserved for the finals of all models."""

_LEAST_LIMIT_S = 10.0
"""Seconds that a session, or a run, may take at least: opening a large model takes some."""

_SLOW_AT_ONCE = 4
"""Number of sessions and runs of each model at their limit for which the time is enough; software devices
are slow."""

_TIME_WAS_UP = "the time was up; --budget gives more"

Show = Callable[[str, TriedCandidate], None]
"""Shows the result of a model."""


class FolderAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """The answers about a folder.

    Attributes:
        models: Sorted by name.
        targets: The unchanged targets, by name.
        fingerprints: Their environments, by name.
        tried: Number of configurations of models that were tried.
        not_tried: Number of configurations that were left.
        stopped_by: ``end`` if all were tried, ``budget``, or ``interrupt``.
    """

    models: tuple[ShippedModel, ...]
    targets: dict[str, Target]
    fingerprints: dict[str, dict[str, object]]
    simulated: dict[str, str]
    tried: int
    not_tried: int
    stopped_by: str
    elapsed_s: float


class _Model:
    """One model: the verdicts of the targets as they are, then its search."""

    def __init__(self, name: str, course: Course, bases: Sequence[Target]) -> None:
        self.name = name
        self.course = course
        self.verdicts: dict[Candidate, TriedCandidate] = {}
        self.under_way: Candidate | None = None
        self._again: list[Candidate] = []
        for _ in bases:
            course.search.next()  # the unchanged targets, which are judged before anything is timed

    def begin(self, simulated: dict[str, str], search_until: float) -> None:
        """Begin the search: models that pass on a device will be timed; everything else stays unchanged."""
        self.course.simulated, self.course.search_until = simulated, search_until
        for candidate, one in self.verdicts.items():
            if one.record.family is Family.PASSED:
                if candidate.target not in self.course.simulated:
                    self._again.append(candidate)
            else:
                self.course.take(one)

    def next(self) -> Candidate | None:
        """Return the next candidate, which is then under way; None if none is left."""
        candidate = self._again.pop(0) if self._again else self.course.next()
        while candidate is not None and not self._is_worth(candidate):
            candidate = self.course.next()
        self.under_way = candidate
        return candidate

    def _is_worth(self, candidate: Candidate) -> bool:
        """Return whether a candidate may change an answer: a simulator stays one, and a refusal a refusal."""
        if candidate.target in self.course.simulated:
            return False
        plain = self.verdicts.get(Candidate(target=candidate.target))
        if not candidate.changes or plain is None or plain.record.family is Family.PASSED:
            return True
        return plain.record.verdict in WRONG_NUMBERS and candidate.changes[0][0] == "precision"

    def choices(self, suite: str, bases: Sequence[Target]) -> Iterator[ShippingChoice]:
        """Yield what was tried, and a choice without a result for each target that was not reached."""
        found = self.verdicts | self.course.results
        for base in bases:
            if (candidate := Candidate(target=base.name)) not in found:
                cell = candidate.cell(suite, self.name)
                yield ShippingChoice(record=not_run(cell, base.provider[0], _TIME_WAS_UP, expected=False))
        for one in found.values():
            yield ShippingChoice(record=one.record, rounds=one.rounds)


def advise_folder(suite: Suite, matrix: Matrix, *, until: float, notify: Notify, show: Show) -> FolderAdvice:
    """Judge all models on all targets, then search until all is tried, the time is up, or Ctrl-C is pressed.

    Targets, tolerances and dimensions are those of the matrix. ``until`` is on the monotonic clock, in
    seconds. A model that cannot be read, or needs too long, costs its own rows only.
    """
    began = time.monotonic()
    budget_s = max(until - began, 0.0)
    limit_s = max(_LEAST_LIMIT_S, budget_s / (_SLOW_AT_ONCE * len(suite.models())))
    bases = [base_of(target, limit_s) for target in matrix.targets]
    study = _Study(suite, matrix, bases, until, notify, show)
    stopped_by = "budget"
    try:
        study.judge(until - budget_s * _FOR_TIMES)
        study.search()
        if time.monotonic() < until:
            stopped_by = "end"
    except KeyboardInterrupt:
        stopped_by = "interrupt"
    models = study.models.values()
    choices = [choice for model in models for choice in model.choices(suite.name, bases)]
    left = sum(len(model.course.search.waiting()) + (model.under_way is not None) for model in models)
    return FolderAdvice(
        models=what_to_ship(choices, [base.name for base in bases], study.simulated),
        targets={base.name: base for base in bases},
        fingerprints=study.fingerprints,
        simulated=study.simulated,
        tried=sum(len(model.verdicts | model.course.results) for model in models),
        not_tried=left,
        stopped_by="budget" if stopped_by == "end" and left else stopped_by,
        elapsed_s=time.monotonic() - began,
    )


class _Study:
    """All models of a folder, and what is known of the targets."""

    def __init__(
        self,
        suite: Suite,
        matrix: Matrix,
        bases: Sequence[Target],
        until: float,
        notify: Notify,
        show: Show,
    ) -> None:
        self.fingerprints: dict[str, dict[str, object]] = {}
        self.models = {
            name: _Model(name, Course(_search(suite, name, matrix, bases), until), bases)
            for name in suite.models()
        }
        self._suite, self._matrix, self._bases = suite, matrix, bases
        self._until, self._notify, self._show = until, notify, show

    @property
    def simulated(self) -> dict[str, str]:
        """Target -> the program that stands for its accelerator."""
        return simulated_of(self._bases, self.fingerprints)

    def judge(self, until: float) -> None:
        """Judge every model on every target as it is; nothing is timed, so that all processors work."""
        plain = [Candidate(target=base.name) for base in self._bases]
        asked = {self._cell(name, one).id: (name, one) for name in self.models for one in plain}
        with self._engine(matrix_for(self._matrix, self._bases), until) as engine:
            engine.submit(self._cell(*pair) for pair in asked.values())
            engine.drain()
            for record in self._records(engine):
                name, candidate = asked[record.cell]
                one = TriedCandidate(candidate=candidate, record=record)
                self.models[name].verdicts[candidate] = one
                self._show(name, one)

    def search(self) -> None:
        """Time what passes, and try what may be faster, or right; one candidate of each model at once."""
        now = time.monotonic()
        simulated, search_until = self.simulated, self._until - (self._until - now) * _FOR_FINALS
        for model in self.models.values():
            model.begin(simulated, search_until)
        with self._engine(timed(self._matrix, self._bases, _MEASURED), self._until) as engine:
            if not self._submit(engine, self.models):
                return
            for record in self._records(engine):
                model = self.models[record.model]
                assert model.under_way is not None  # noqa: S101 - it was submitted
                one = TriedCandidate(candidate=model.under_way, record=record)
                model.course.take(one)
                self._show(record.model, one)
                self._submit(engine, [record.model])
                if not any(each.under_way for each in self.models.values()):
                    return

    def _submit(self, engine: Engine, names: Iterable[str]) -> bool:
        """Submit the next candidate of models; return whether there is any."""
        found = [(name, candidate) for name in names if (candidate := self.models[name].next())]
        engine.submit([self._cell(name, candidate) for name, candidate in found])
        return bool(found)

    def _cell(self, name: str, candidate: Candidate) -> Cell:
        return candidate.cell(self._suite.name, name)

    @contextlib.contextmanager
    def _engine(self, matrix: Matrix, until: float) -> Iterator[Engine]:
        cells = [
            self._cell(name, Candidate(target=base.name)) for name in self.models for base in self._bases
        ]
        engine = Engine(Plan(matrix=matrix, cells=tuple(cells)), {self._suite.name: self._suite})
        with closing_after(engine, max(until - time.monotonic(), 0.0)):
            yield engine

    def _records(self, engine: Engine) -> Iterator[Record]:
        for event in results(engine, self._notify):
            if isinstance(event, TargetReady):
                self.fingerprints[event.target] = event.fingerprint
            elif isinstance(event, Finished):
                yield event.record


def _search(suite: Suite, model: str, matrix: Matrix, bases: Sequence[Target]) -> CandidateQueue:
    return CandidateQueue(matrix.targets, bases, _operators(suite, model), remedies_first=True)


def _operators(suite: Suite, model: str) -> frozenset[str]:
    """Return the types of a model's nodes; none for an unreadable model, which its cells report."""
    try:
        return frozenset(graph_in(suite, model).op_types)
    except HarnessError:
        return frozenset()
