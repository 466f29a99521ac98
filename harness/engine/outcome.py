"""What came of trying a cell, before anyone judges it: plain values, one struct for each way to end."""

import math
from typing import Any

import msgspec

from harness.core.errors import one_line
from harness.core.latency import Latency, latency_of
from harness.core.record import Placement, ProcessState, Repeats
from harness.core.scenario import OTHER_SESSION, PLAIN, Fact, Facts, Scalar
from harness.core.value import Tensor, Value, value_bytes
from harness.core.verdict import Phase
from harness.engine.tensor_files import Tensors

NamedValues = tuple[tuple[str, Value], ...]

FACTS_LIMIT = 64
"""Facts of a scenario that are kept, and items of each: an agent in a damaged process may send millions."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """The model ran to its end.

    Attributes:
        outputs: For each data set the outputs by name.
        second: Outputs of another run of the first data set where they differ from the first run's; of
            several those furthest from it.
        placement: Where the nodes went.
        providers_changed: The session's providers before and after the run where they differ.
        timings_ms: ``create``, ``first_run`` and, once known, ``teardown``.
        printed: What the process printed meanwhile.
        teardown: How the process died or hung in teardown, after the result; empty where it did not.
        process: The process as it was afterwards; None where it did not outlive the session.
        latency: How long its runs took, where that was asked for.
        scenario: What was seen in its scenario.
        graph: The optimized model without its weights, where that was asked for.
        repeats: What came of repeating it, where that was asked for.
    """

    outputs: tuple[NamedValues, ...]
    placement: Placement
    timings_ms: dict[str, float]
    second: NamedValues | None = None
    providers_changed: str = ""
    printed: str = ""
    teardown: str = ""
    process: ProcessState | None = None
    latency: Latency | None = None
    scenario: Facts = {}
    graph: bytes = b""
    repeats: Repeats | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the outputs take."""
        all_outputs = (*self.outputs, self.second or ())
        return sum(value_bytes(value) for outputs in all_outputs for _, value in outputs)


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """onnxruntime or the provider raised an error.

    Attributes:
        data_set: Number of the data set that was at work; None where none was.
        sick: What the process can no longer do since then; empty where it is well.
        process: The process as it was afterwards.
        scenario: What was seen in its scenario until then.
    """

    phase: Phase
    kind: str
    message: str
    data_set: int | None = None
    printed: str = ""
    sick: str = ""
    process: ProcessState | None = None
    scenario: Facts = {}


class Unsupported(msgspec.Struct, frozen=True, kw_only=True):
    """The provider, or this onnxruntime, has no such scenario.

    Attributes:
        process: The process as it was afterwards.
        scenario: What was seen in its scenario until then.
    """

    phase: Phase
    message: str
    printed: str = ""
    process: ProcessState | None = None
    scenario: Facts = {}


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A model was to be converted to another precision.

    Attributes:
        content: The serialized model as uint8; None where there is none.
        rounded: What the CPU provider is to compute in its place; None where that is the same.
        reason: Why there is none.
    """

    content: Tensor | None = None
    rounded: Tensor | None = None
    reason: str = ""


class Unfeedable(msgspec.Struct, frozen=True, kw_only=True):
    """The target's Python API cannot take or give a value; nothing is known about the provider."""

    message: str


class Died(msgspec.Struct, frozen=True, kw_only=True):
    """The process died: ``cause`` is a signal's name or an exit code."""

    phase: Phase
    cause: str
    printed: str = ""


class Hung(msgspec.Struct, frozen=True, kw_only=True):
    """The process was killed at the time limit of a phase."""

    phase: Phase
    limit_s: float
    printed: str = ""


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """The target cannot be used here."""

    cause: str
    reason: str
    printed: str = ""


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """The provider refuses an option: a session can be made without it, and not with it."""

    option: str
    reason: str
    printed: str = ""


Outcome = Ran | Raised | Unsupported | Unfeedable | Died | Hung | Unavailable | Rejected

Ending = Outcome | Made
"""How a task may end, a question for a converted model included."""


def from_result(result: dict[str, Any], tensors: Tensors, scenario: str = PLAIN) -> Outcome:
    """Read the agent's ``result`` message.

    Args:
        result: The message.
        tensors: What has carried the outputs.
        scenario: What was to be played. An agent that tells nothing about it may have done something else.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: It is nonsense.
    """
    printed = result.get("output", "")
    if result["status"] == "unfeedable":
        return Unfeedable(message=result["message"])
    facts = _facts(result.get("scenario", {}))
    if result["status"] == "unsupported":
        return Unsupported(
            phase=Phase(result["phase"]), message=result["message"], printed=printed, scenario=facts
        )
    if result["status"] == "error":
        phase = Phase(result["phase"])
        return Raised(
            phase=phase,
            kind=result["kind"],
            message=result["message"],
            data_set=len(result.get("outputs", ())) if phase is Phase.RUN else None,
            printed=printed,
            scenario=facts,
        )
    if scenario in OTHER_SESSION and not facts:
        raise ValueError(f"nothing is told about the scenario {scenario}")
    names = result["names"]
    before, after = result["providers"], result["providers_after"]
    second = result.get("second")
    return Ran(
        outputs=tuple(_named(names, outputs, tensors) for outputs in result["outputs"]),
        second=None if second is None else _named(names, second, tensors),
        placement=msgspec.convert(result["placement"], Placement),
        providers_changed="" if before == after else f"{', '.join(before)} became {', '.join(after)}",
        timings_ms=result["timings_ms"],
        printed=printed,
        latency=latency_of(result["latency"]) if "latency" in result else None,
        scenario=facts,
        graph=bytes(memoryview(result.get("graph", b""))),
        repeats=msgspec.convert(result["repeats"], Repeats) if "repeats" in result else None,
    )


def from_making(result: dict[str, Any], tensors: Tensors) -> Ending:
    """Read the ``result`` message of a job that converts a model; arguments and errors as ``from_result``."""
    if result["status"] != "ok":
        return from_result(result, tensors)
    if "declined" in result:
        return Made(reason=one_line(result["declined"]))
    content = _model(tensors.take(result["made"]))
    rounded = _model(tensors.take(result["rounded"])) if "rounded" in result else None
    return Made(content=content, rounded=rounded)


def _model(value: Value) -> Tensor:
    if not isinstance(value, Tensor) or value.dtype != "uint8" or not value.array.size:
        raise ValueError("it made no model")
    return value


def _facts(told: Any) -> Facts:
    """What an agent tells about a scenario, within bounds; numbers that JSON lacks as text."""
    if told == {}:
        return {}
    facts = msgspec.convert(told, Facts)
    return {one_line(name, 60): _bounded(fact) for name, fact in list(facts.items())[:FACTS_LIMIT]}


def _bounded(fact: Fact) -> Fact:
    return tuple(map(_short, fact[:FACTS_LIMIT])) if isinstance(fact, tuple) else _short(fact)


def _short(fact: Scalar) -> Scalar:
    if isinstance(fact, str) or (isinstance(fact, float) and not math.isfinite(fact)):
        return one_line(fact, 200)
    return fact


def _named(names: list[str], wires: list[Any], tensors: Tensors) -> NamedValues:
    return tuple((name, tensors.take(wire)) for name, wire in zip(names, wires, strict=True))
