"""A question: what is asked about a model, whose CPU provider answers, and about which form of the model."""

import enum
from typing import Any

import msgspec

from harness.core.precision import AS_IS
from harness.core.scenario import PLAIN, SCENARIOS, session_of
from harness.plan.target import Runtime

HOME = Runtime()
"""The harness's own interpreter, whose CPU provider makes the goldens."""


class Kind(enum.StrEnum):
    """What is asked."""

    ANSWER = "answer"
    """The CPU provider's outputs."""
    UNOPTIMIZED = "unoptimized"
    """The same with all graph optimizations off."""
    EVALUATED = "evaluated"
    """The outputs of ``onnx.reference``."""
    FLOAT64 = "float64"
    """The CPU provider's outputs of the model in float64."""
    FLOAT64_EVALUATED = "float64-evaluated"
    """The outputs of ``onnx.reference`` of the model in float64."""
    MADE = "made"
    """The model itself, converted to the precision of the question."""
    REVEALED = "revealed"
    """The values by which the CPU provider chose positions, such as those of ArgMax."""
    UNDEFINED = "undefined"
    """The inputs of operators whose result ONNX leaves undefined for some values."""
    ZEROED = "zeroed"
    """The CPU provider's outputs of the model with zeros in place of the results of single nodes."""
    REPEATED = "repeated"
    """The CPU provider's outputs in another process than before: a check that it can repeat itself."""
    ROUNDED = "rounded"
    """The CPU provider's outputs of a converted model in which every rounding is spelled out."""
    NOISE = "noise"
    """Runs in which every rounding is another one, at the precision ``Question.noise_at``."""

    @property
    def in_float64(self) -> bool:
        """Whether the model is upcast to float64."""
        return self in (Kind.FLOAT64, Kind.FLOAT64_EVALUATED)

    @property
    def by_onnx_reference(self) -> bool:
        """Whether ``onnx.reference`` answers, not onnxruntime."""
        return self in (Kind.EVALUATED, Kind.FLOAT64_EVALUATED)

    @property
    def checks_golden(self) -> bool:
        """Whether the answer is a second opinion on a golden: useful, but no cell depends on it."""
        return self is Kind.UNOPTIMIZED or self.in_float64 or self.by_onnx_reference


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question.

    Attributes:
        suite: The model's suite.
        model: The model.
        runtime: The runtime whose CPU provider answers.
        scenario: The scenario whose data the model gets, and what is done with the session.
        precision: The precision that the model is converted to; ``fp32`` leaves it as it is.
        kind: What is asked.
        noise_at: For the kind ``NOISE`` the precision of the noise, else empty.
    """

    suite: str
    model: str
    runtime: Runtime = HOME
    scenario: str = PLAIN
    precision: str = AS_IS
    kind: Kind = Kind.ANSWER
    noise_at: str = ""

    @property
    def session(self) -> str:
        """The scenario as far as it decides what is done with the session."""
        return session_of(self.scenario)

    @property
    def queue(self) -> str:
        """Name of the queue: slow questions, and those that may hang, must not delay goldens."""
        if self.kind is Kind.MADE:
            return "converter"
        checks = self.kind.checks_golden or self.kind in (Kind.REPEATED, Kind.ZEROED)
        return "references" if checks else "cpu"

    def for_golden(self, precision: str | None = None) -> "Question":
        """Return the question whose answer is the golden: only scenarios with other data have their own.

        Args:
            precision: Of the model; that of this question by default.
        """
        return Question(
            suite=self.suite,
            model=self.model,
            scenario=self.scenario if SCENARIOS[self.scenario].other_data else PLAIN,
            precision=self.precision if precision is None else precision,
        )

    def axes(self) -> dict[str, str]:
        """Return the session's axes that do not have their default values."""
        axes = {"scenario": self.session}
        return axes | {"graph_optimization": "disabled"} if self.kind is Kind.UNOPTIMIZED else axes

    def job_fields(self) -> dict[str, Any]:
        """Return what its job has beyond the model, the data and the axes."""
        if self.kind is Kind.MADE:
            return {"make": self.precision}
        return {"evaluate": True} if self.kind.by_onnx_reference else {}
