"""Tasks: each is one model to run on one configuration, for a cell, a baseline or a question."""

import enum
from functools import cached_property
from typing import Any

import msgspec

from harness.core.records.cell import Cell
from harness.core.records.precision import AS_IS, made_for
from harness.core.records.scenario import PLAIN, SCENARIOS, session_of
from harness.engine.processes.message_budget import MessageBudget
from harness.engine.tasks.events import Finished
from harness.engine.tasks.measurement import Measurement
from harness.engine.tasks.outcome import ExpectedResult, Outcome
from harness.golden.provenance import SESSION, WHERE_POSSIBLE
from harness.plan.target import Runtime

HOME = Runtime()
"""The harness's own interpreter, whose CPU provider makes the goldens."""


class QuestionKind(enum.StrEnum):
    """What a question asks for."""

    ANSWER = "answer"
    """The CPU provider's outputs."""
    UNOPTIMIZED = "unoptimized"
    """The same with all graph optimizations off."""
    FUSED = "fused"
    """The same in a session as applications create it: quantized operators are fused into integer kernels."""
    EVALUATED = "evaluated"
    """The outputs of ``onnx.reference``."""
    FLOAT64 = "float64"
    """The CPU provider's outputs of the model in float64."""
    FLOAT64_EVALUATED = "float64-evaluated"
    """The outputs of the model in float64, computed node by node; see ``harness.agent.float64``."""
    MADE = "made"
    """The model itself, converted to the precision of the question."""
    REVEALED = "revealed"
    """The values by which the CPU provider chose positions, such as those of ArgMax."""
    UNDEFINED = "undefined"
    """The inputs of operators whose result ONNX leaves undefined for some values."""
    SETTLED_LOW = "settled-low"
    """The CPU provider's outputs of the model with a value in place of each undefined result."""
    SETTLED_HIGH = "settled-high"
    """The same with another value."""
    ZEROED = "zeroed"
    """The CPU provider's outputs of the model with zeros in place of the results of single nodes."""
    REPEATED = "repeated"
    """The CPU provider's outputs in another process: a check whether it can repeat the golden."""
    PLAYED = "played"
    """The CPU provider's outputs in the ways of the scenario ``generate``, not in one run for each text."""
    ROUNDED = "rounded"
    """The CPU provider's outputs of a converted model in which every rounding is spelled out."""
    NOISE = "noise"
    """Outputs of runs with other roundings, at the precision ``Question.noise_at``."""

    @property
    def in_float64(self) -> bool:
        """Whether the model is computed in float64."""
        return self in (QuestionKind.FLOAT64, QuestionKind.FLOAT64_EVALUATED)

    @property
    def without_session(self) -> bool:
        """Whether an evaluator answers, not a session of onnxruntime."""
        return self in (QuestionKind.EVALUATED, QuestionKind.FLOAT64_EVALUATED)

    @property
    def checks_golden(self) -> bool:
        """Whether the answer is a second opinion on a golden: useful, but no cell depends on it."""
        return self is QuestionKind.UNOPTIMIZED or self.in_float64 or self.without_session


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question about a model.

    Attributes:
        runtime: The runtime whose CPU provider answers.
        scenario: The scenario that determines the model's data and the use of the session.
        precision: The precision that the model is converted to; ``fp32`` leaves it as it is.
        noise_at: For the kind ``NOISE`` the source of the noise, see
            ``harness.corpus.derived.noisy.with_allowed``; else empty.
        others: Whether the model gets other inputs: those of ``harness.agent.other_inputs``.
        draw: Which generated inputs it gets; see ``harness.corpus.inputs.attempts``.
    """

    suite: str
    model: str
    runtime: Runtime = HOME
    scenario: str = PLAIN
    precision: str = AS_IS
    kind: QuestionKind = QuestionKind.ANSWER
    noise_at: str = ""
    others: bool = False
    draw: int = 0

    @property
    def session(self) -> str:
        """The scenario, as far as it decides the use of the session."""
        return session_of(self.scenario)

    @property
    def queue(self) -> str:
        """Name of the queue: slow questions, and those that may hang, must not delay goldens."""
        if self.kind is QuestionKind.MADE:
            return "converter"
        checks = self.kind.checks_golden or self.kind in (
            QuestionKind.REPEATED,
            QuestionKind.ZEROED,
            QuestionKind.PLAYED,
        )
        return "references" if checks else "cpu"

    def for_golden(self, precision: str | None = None) -> "Question":
        """Return the question whose answer is the golden, by default at the same precision.

        Only scenarios with other data have a golden of their own.
        """
        return Question(
            suite=self.suite,
            model=self.model,
            scenario=self.scenario if SCENARIOS[self.scenario].other_data else PLAIN,
            precision=self.precision if precision is None else precision,
            others=self.others,
            draw=self.draw,
        )

    def axes(self) -> dict[str, str]:
        """Return the session's axes that do not have their default values."""
        axes = {"scenario": self.scenario if self.kind is QuestionKind.PLAYED else self.session}
        return axes | {"graph_optimization": "disabled"} if self.kind is QuestionKind.UNOPTIMIZED else axes

    def job_fields(self) -> dict[str, Any]:
        """Return the fields of its job besides the model, the data and the axes."""
        if self.kind is QuestionKind.MADE:
            return {"make": self.precision}
        if self.kind is QuestionKind.FUSED:
            return {"entries": dict.fromkeys((*SESSION, *WHERE_POSSIBLE), "0")}
        return {"evaluate": True} if self.kind is QuestionKind.EVALUATED else {}


class _Handed(msgspec.Struct, kw_only=True, dict=True):
    """The fields of every task. ``dict`` is for the cached property ``about``.

    Attributes:
        attempt: Counts from 1.
        started: UTC time at which a worker got it, ISO 8601.
        expected_ms: Its duration in an earlier run; 0 if unknown.
        nbytes: Size of its inputs, once a worker has them.
        asked: What its result must contain, once a worker has it.
        budget: How many messages about it may come, likewise.
        place: The place that runs it; empty if its target has none.
        only: The only place that may run it; empty for any.
        avoid: A place that may not run it; empty for none.
        losses: Attempts that ended because a machine or a process was killed from outside.
    """

    attempt: int = 1
    started: str = ""
    expected_ms: float = 0.0
    nbytes: int = 0
    asked: ExpectedResult | None = None
    budget: MessageBudget | None = None
    place: str = ""
    only: str = ""
    avoid: str = ""
    losses: int = 0

    def may_run_at(self, place: str) -> bool:
        """Return whether a place may run it."""
        return place != self.avoid and self.only in ("", place)


class _OfCell(_Handed):
    cell: Cell
    draw: int = 0

    @cached_property
    def about(self) -> Question:
        """The model and its data, in the form of the question for the CPU provider's answer."""
        axes = dict(self.cell.axes)
        return Question(
            suite=self.cell.suite,
            model=self.cell.model,
            scenario=axes.get("scenario", PLAIN),
            precision=made_for(axes.get("precision", AS_IS)),
            draw=self.draw,
        )


class CellTask(_OfCell):
    """A cell; ``first`` is the result of its first attempt, if this is a further one.

    ``draw`` numbers the generated inputs of further attempts; see ``harness.engine.steps.input_draws``.
    """

    first: Finished | None = None


class BaselineTask(_OfCell):
    """The first cell that needs a baseline, on its target without the options in question."""


class FixedTask(_OfCell, kw_only=True):
    """A session of a cell with fixed sizes, to learn whether a symbolic dimension keeps nodes off the EP.

    It is a separate task: if its process dies, the cell keeps its verdict.

    Attributes:
        cell_task: The cell, which waits.
        measured: What it measures.
        outcome: What it gave.
        sizes: Symbolic dimension -> size.
    """

    cell_task: CellTask
    measured: Measurement
    outcome: Outcome
    sizes: dict[str, int]


class QuestionTask(_Handed):
    """A question that cells wait for, or that the engine's caller asked."""

    about: Question
    for_caller: bool = False


Task = CellTask | BaselineTask | FixedTask | QuestionTask
