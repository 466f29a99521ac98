"""Models computed by the CPU provider of any runtime, without cells; and the events of an engine for a study.

The CPU provider runs in processes that may die; this one never imports onnxruntime.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

import msgspec

from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import Suite
from harness.engine.engine import Engine
from harness.engine.tasks.events import Answered, Event, Noted, TargetReady, Warned
from harness.engine.tasks.task import QuestionKind
from harness.engine.workers.admission import processors
from harness.engine.workers.queues import CHECK_TIMEOUTS
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.plan import Plan
from harness.plan.target import Runtime, Target

SuiteModels = Sequence[tuple[str, str]]
"""Pairs of a suite and a model."""

Notify = Callable[[str], None]
"""Shows one line to the user."""


class ModelNote(msgspec.Struct, frozen=True, kw_only=True):
    """A model, as ``suite/model``, and one line about it."""

    model: str
    message: str


class PlannedModels(msgspec.Struct, frozen=True, kw_only=True):
    """The models of a plan, with its settings of models."""

    plan: Plan
    suites: Mapping[str, Suite]

    @classmethod
    def of_folder(cls, suite: Suite) -> "PlannedModels":
        """Return the models of a suite of a folder, without settings."""
        models = ModelSelection(folders=(str(suite.root),))
        matrix = Matrix(path=suite.name, schema=1, models=models, targets=())
        return cls(plan=Plan(matrix=matrix, cells=()), suites={suite.name: suite})

    def pairs(self) -> SuiteModels:
        """Return each model once, in the order of the plan."""
        return tuple(dict.fromkeys((cell.suite, cell.model) for cell in self.plan.cells))

    def case(self, suite: str, model: str) -> Case:
        """Return a model with its data; of generated inputs the first attempt, see ``harness.golden.trials``.

        Raises:
            ModelError: The model or its data cannot be used.
        """
        settings = self.plan.model_settings(suite, model)
        return load_case(self.suites[suite], model, self.plan.matrix.models.dimensions, settings=settings)

    def answers(
        self, models: SuiteModels, runtime: Runtime, notify: Notify, kind: QuestionKind = QuestionKind.ANSWER
    ) -> Iterator[TargetReady | Answered]:
        """Yield the environment of a runtime, if it starts, and what its CPU provider computes of models.

        The models come once each, in any order, whether or not the cache has results.
        """
        if not models:
            return
        target = Target(name="golden", provider=(CPU,), runtime=runtime, workers=processors())
        if kind.checks_golden:
            target = msgspec.structs.replace(target, timeouts_s=CHECK_TIMEOUTS)
        matrix = msgspec.structs.replace(matrix_for(self.plan.matrix, [target]), tolerance=())
        with closing(Engine(Plan(matrix=matrix, cells=()), self.suites)) as engine:
            engine.ask(target.name, models, kind)
            engine.drain()
            for event in results(engine, notify):
                if isinstance(event, TargetReady | Answered):
                    yield event


def note_on(answered: Answered, message: str) -> ModelNote:
    """Return a note on the model of an answer."""
    return ModelNote(model=f"{answered.suite}/{answered.model}", message=message)


def matrix_for(matrix: Matrix, targets: Sequence[Target]) -> Matrix:
    """Return the matrix with other targets, and without entries about its own targets."""
    return msgspec.structs.replace(
        matrix, targets=tuple(targets), axes={}, exclude=(), expect=(), latency=(), repeat=()
    )


def results(engine: Engine, notify: Notify) -> Iterator[Event]:
    """Yield the events of an engine, except messages, which go to ``notify``."""
    for event in engine.events():
        if isinstance(event, Warned | Noted):
            notify(event.message)
        else:
            yield event
