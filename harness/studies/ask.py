"""The CPU provider of any runtime, asked about models without any cell.

It computes in processes that may die; this one never imports onnxruntime.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from harness.corpus.case import Case, load_case
from harness.corpus.suites import Suite
from harness.engine.engine import Engine
from harness.engine.events import Answered, Noted, TargetReady, Warned
from harness.engine.job import CPU
from harness.engine.lanes import WITNESS_TIMEOUTS
from harness.engine.processors import processors
from harness.engine.question import ANSWER, WITNESSES
from harness.plan.plan import Plan
from harness.plan.target import Runtime, Target

Models = Sequence[tuple[str, str]]
"""Pairs of a suite and a model."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A model and what there is to say about it.

    Attributes:
        model: ``suite/model``.
        message: One line for people.
    """

    model: str
    message: str


def told(answered: Answered, message: str) -> Told:
    """Something to say about the model of an answer."""
    return Told(model=f"{answered.suite}/{answered.model}", message=message)


def models_of(plan: Plan) -> Models:
    """The models of a plan, each once, in its order."""
    return tuple(dict.fromkeys((cell.suite, cell.model) for cell in plan.cells))


def planned_case(plan: Plan, suites: Mapping[str, Suite], suite: str, model: str) -> Case:
    """A model with its data; of generated inputs the first attempt, see ``harness.engine.trials``.

    Raises:
        ModelError: It cannot be used.
    """
    settings = plan.model_settings(suite, model)
    return load_case(suites[suite], model, plan.matrix.models.dimensions, settings=settings)


def answers(
    plan: Plan,
    suites: Mapping[str, Suite],
    models: Models,
    runtime: Runtime,
    tell: Callable[[str], None],
    kind: str = ANSWER,
) -> Iterator[TargetReady | Answered]:
    """What the CPU provider of a runtime makes of models now, whatever is known of them.

    Args:
        plan: What it says of the models counts.
        suites: Suite name -> suite.
        models: Which.
        runtime: Whose CPU provider.
        tell: Called with a line for people.
        kind: What is asked of each: a constant of ``harness.engine.question``.

    Yields:
        The environment, where there is one, and each model once, in any order.
    """
    if not models:
        return
    target = Target(name="golden", provider=(CPU,), runtime=runtime, workers=processors())
    if kind in WITNESSES:
        target = msgspec.structs.replace(target, timeouts_s=WITNESS_TIMEOUTS)
    asked = msgspec.structs.replace(
        plan.matrix, targets=(target,), axes={}, exclude=(), tolerance=(), expect=(), latency=(), repeat=()
    )
    engine = Engine(Plan(matrix=asked, cells=()), suites)
    try:
        engine.ask(target.name, models, kind)
        engine.drain()
        for event in engine.events():
            if isinstance(event, TargetReady | Answered):
                yield event
            elif isinstance(event, Warned | Noted):
                tell(event.message)
    finally:
        engine.close()
