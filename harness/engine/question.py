"""What is asked about a model without any cell: of whose CPU provider, and of which form of the model."""

from typing import Any

import msgspec

from harness.core.precision import AS_IS
from harness.core.scenario import OTHER_DATA, PLAIN, session_of
from harness.plan.target import Runtime

HOME = Runtime()
"""The harness's own interpreter, whose CPU provider makes the goldens."""

ANSWER = "answer"
"""What the CPU provider makes of the model."""

UNOPTIMIZED = "unoptimized"
"""The same with all graph optimizations off."""

EVALUATED = "evaluated"
"""What ``onnx.reference`` makes of the model."""

FLOAT64 = "float64"
"""What the CPU provider makes of the model in float64."""

FLOAT64_EVALUATED = "float64-evaluated"
"""What ``onnx.reference`` makes of the model in float64."""

MADE = "made"
"""The model itself, converted to the precision of the question."""

REVEALED = "revealed"
"""What the CPU provider's positions, such as those of ArgMax, were chosen by."""

UNDEFINED = "undefined"
"""What operators read whose result ONNX leaves undefined for some values."""

ZEROED = "zeroed"
"""What the CPU provider makes of the model with zeros in place of what single nodes compute."""

REPEATED = "repeated"
"""What the CPU provider makes of the model in another process than before: whether it can repeat itself."""

ROUNDED = "rounded"
"""What the CPU provider makes of a converted model in which every rounding is spelled out."""

NOISE = "noise:"
"""With the name of a precision behind it: runs in which every rounding is another one."""

UPCAST = frozenset({FLOAT64, FLOAT64_EVALUATED})
"""Kinds that are about the model in float64."""

BY_REFERENCE = frozenset({EVALUATED, FLOAT64_EVALUATED})
"""Kinds that ``onnx.reference`` answers."""

WITNESSES = frozenset({UNOPTIMIZED, EVALUATED, FLOAT64, FLOAT64_EVALUATED})
"""Kinds whose answers speak for or against a golden."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question.

    Attributes:
        suite: The model's suite.
        model: The model.
        runtime: Whose CPU provider is asked.
        scenario: Whose data the model gets, and what is done with the session.
        precision: What the model is made for; ``fp32`` leaves it as it is.
        kind: What is asked: one of this module's constants.
    """

    suite: str
    model: str
    runtime: Runtime = HOME
    scenario: str = PLAIN
    precision: str = AS_IS
    kind: str = ANSWER

    @property
    def session(self) -> str:
        """The scenario as far as it decides what is done with the session."""
        return session_of(self.scenario)

    @property
    def lane(self) -> str:
        """Who answers: what is slow or may hang must not stand before the goldens."""
        if self.kind == MADE:
            return "maker"
        return "witness" if self.kind in WITNESSES | {REPEATED, ZEROED} else "cpu"

    def for_golden(self, precision: str | None = None) -> "Question":
        """The question whose answer is the golden: other data have their own, other sessions have not.

        Args:
            precision: Of the model; that of this question by default.
        """
        return Question(
            suite=self.suite,
            model=self.model,
            scenario=self.scenario if self.scenario in OTHER_DATA else PLAIN,
            precision=self.precision if precision is None else precision,
        )

    def axes(self) -> dict[str, str]:
        """Values of the session's axes that are not their defaults."""
        axes = {"scenario": self.session}
        return axes | {"graph_optimization": "disabled"} if self.kind == UNOPTIMIZED else axes


def asked_of(question: Question) -> dict[str, Any]:
    """What a job says beyond its model, its data and the axes."""
    if question.kind == MADE:
        return {"make": question.precision}
    return {"evaluate": True} if question.kind in BY_REFERENCE else {}
