"""Outcomes of tasks, before they are judged: one struct for each way to end."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.core.records.facts import Placement, Repeats, RunFacts, ToldFacts, shared
from harness.core.records.generation_figures import GenerationSpeed, StagePlace
from harness.core.records.record import ProcessState
from harness.core.records.scenario import PLAIN, SCENARIOS, Observation, Observations, ParameterValue
from harness.core.records.verdict import Phase
from harness.core.text.errors import one_line
from harness.core.timing.latency import latency_of
from harness.core.values.value import NamedValues, Tensor, Value, value_bytes
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.processes.messages import (
    Completed,
    Failed,
    GeneratedFields,
    NotFed,
    PlacementFields,
    ProtocolError,
    RunResult,
    ScenarioRefused,
)

FACTS_LIMIT = 64
"""Largest number of observations of a scenario that are kept, and of items in each: a damaged process may
send millions."""


NodeNames = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
"""Names and operator types of nodes on a provider, and on the CPU."""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What the scenario ``generate`` adds to the outputs.

    Attributes:
        declined: Number of a data set -> why the target cannot play it.
        text: Tokens that the EP chooses by itself.
        speed: How fast it is; None if it was not requested.
        stages: Where each session of a folder ran.
    """

    declined: dict[int, str] = {}
    text: tuple[int, ...] = ()
    speed: GenerationSpeed | None = None
    stages: tuple[StagePlace, ...] = ()


class Ran(RunFacts, frozen=True, kw_only=True):
    """The model ran to its end; of the facts ``timings_ms`` has ``teardown`` once that is known.

    Attributes:
        outputs: For each data set the outputs by name.
        other: Outputs for other inputs, which ``harness.agent.other_inputs`` makes; None without such a run.
        other_error: What the run with other inputs raised; empty if nothing.
        second: Outputs of another run of the first data set, if they differ from the first run's; of
            several those furthest from it.
        named: Name and operator type of the nodes on the provider, and of those on the CPU; both empty where
            the agent does not tell.
        process: The process as it was afterwards; None if it did not outlive the session.
        generated: What the scenario ``generate`` has besides; of declined data sets the outputs are empty.
        graph: The optimized model without its weights, if that was asked for.
    """

    outputs: tuple[NamedValues, ...]
    placement: Placement
    other: NamedValues | None = None
    other_error: str = ""
    second: NamedValues | None = None
    named: NodeNames = ((), ())
    printed: str = ""
    process: ProcessState | None = None
    generated: Played | None = None
    graph: bytes = b""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the outputs take."""
        all_outputs = (*self.outputs, self.other or (), self.second or ())
        return sum(value_bytes(value) for outputs in all_outputs for _, value in outputs)


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """onnxruntime or the provider raised an error.

    Attributes:
        data_set: Number of the data set that was running; None if none was.
        sick: What the process can no longer do; empty if it can go on.
        process: The process after the session.
        scenario: Observations of its scenario up to the error.
    """

    phase: Phase
    kind: str
    message: str
    data_set: int | None = None
    printed: str = ""
    sick: str = ""
    process: ProcessState | None = None
    scenario: Observations = {}


class Unsupported(msgspec.Struct, frozen=True, kw_only=True):
    """The provider, or this onnxruntime, has no such scenario; other fields as in ``Raised``.

    Attributes:
        cause: ``not_in_runtime``: this onnxruntime lacks the API; ``not_in_agent``: the agent declines it;
            empty if the provider refuses.
    """

    phase: Phase
    message: str
    cause: str = ""
    printed: str = ""
    process: ProcessState | None = None
    scenario: Observations = {}


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A task was to convert a model to another precision.

    Attributes:
        content: The serialized model as uint8; None without one.
        rounded: The model that the CPU provider computes in its place; None if it is the same.
        reason: Why there is no converted model.
    """

    content: Tensor | None = None
    rounded: Tensor | None = None
    reason: str = ""


class Unfeedable(msgspec.Struct, frozen=True, kw_only=True):
    """The target's Python API cannot take or return a value; nothing is known about the provider."""

    message: str


class Died(msgspec.Struct, frozen=True, kw_only=True):
    """The process died: ``cause`` is a signal's name or an exit code.

    ``left`` names the processes that it left behind; empty without any.
    """

    phase: Phase
    cause: str
    printed: str = ""
    left: str = ""


class Hung(msgspec.Struct, frozen=True, kw_only=True):
    """The process was killed at the time limit of a phase.

    Attributes:
        at_work: Whether it was still working, so that it may only be slow.
        told: What it did in the last part of the limit; empty if that is unknown.
        took_s: Wall-clock seconds of the phase; a limit grows with the time that other programs took.
        left: As in ``Died``.
    """

    phase: Phase
    limit_s: float
    printed: str = ""
    at_work: bool = False
    told: str = ""
    took_s: float = 0.0
    left: str = ""


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """The target cannot be used here."""

    cause: str
    reason: str
    printed: str = ""


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """The provider refuses an option: a session can be created without it, but not with it."""

    option: str
    reason: str
    printed: str = ""


Outcome = Ran | Raised | Unsupported | Unfeedable | Died | Hung | Unavailable | Rejected

Ending = Outcome | Made
"""The ways in which a task may end, including a question for a converted model."""


class ExpectedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the result of a job must contain.

    Attributes:
        data_sets: Number of data sets to run.
        outputs: Names of the model's outputs, as the model declares them.
        by_reference: Whether it is an answer that judges others, and so must have exactly these outputs.
        plays: Whether each data set is played in a way of the scenario ``generate``.
        stages: Whether several sessions of a folder play it.
    """

    data_sets: int
    outputs: tuple[str, ...]
    by_reference: bool = False
    plays: bool = False
    stages: bool = False


def from_result(
    result: RunResult, tensors: Tensors, scenario: str = PLAIN, asked: ExpectedResult | None = None
) -> Outcome:
    """Return the outcome in an agent's ``result`` message.

    Raises:
        ProtocolError: Something is missing, a value is malformed, or there are other values than requested.
    """
    facts = _facts(result.scenario)
    match result:
        case NotFed():
            return Unfeedable(message=result.message)
        case ScenarioRefused():
            return Unsupported(
                phase=Phase(result.phase),
                message=result.message,
                cause=result.cause,
                printed=result.output,
                scenario=facts,
            )
        case Failed():
            phase = Phase(result.phase)
            return Raised(
                phase=phase,
                kind=result.kind,
                message=result.message,
                data_set=len(result.outputs or ()) if phase is Phase.RUN else None,
                printed=result.output,
                scenario=facts,
            )
        case Completed():
            if SCENARIOS[scenario].other_session and not facts:  # it may have run something else
                raise ProtocolError(f"it reported nothing about the scenario {scenario}")
            return _ran(result, tensors, facts, asked)


def from_making(result: RunResult, tensors: Tensors) -> Ending:
    """Return the outcome of a job that converts a model; arguments and errors as ``from_result``."""
    if not isinstance(result, Completed):
        return from_result(result, tensors)
    if result.declined is not None:
        return Made(reason=one_line(result.declined))
    content = _model(_value(result.made, tensors))
    rounded = None if result.rounded is None else _model(_value(result.rounded, tensors))
    return Made(content=content, rounded=rounded)


def _ran(result: Completed, tensors: Tensors, facts: Observations, asked: ExpectedResult | None) -> Ran:
    names, outputs, placement = result.names, result.outputs, result.placement
    before, after = result.providers, result.providers_after
    if names is None or outputs is None or placement is None or before is None or after is None:
        raise ProtocolError("a result lacks its outputs, their names, the providers or the placement")
    if asked is not None:
        _check_outputs(names, outputs, asked)
        _check_played(result.generated, asked)
    played = None if result.generated is None else _played(result.generated, len(outputs))
    declined = () if played is None else played.declined
    return Ran(
        outputs=tuple(
            () if index in declined else _named(names, values, tensors)
            for index, values in enumerate(outputs)
        ),
        other=None if result.other is None else _named(names, result.other, tensors),
        other_error=result.other_error,
        second=None if result.second is None else _named(names, result.second, tensors),
        placement=placement_record(placement),
        named=(tuple(placement.ep_named), tuple(placement.cpu_named)),
        providers_changed="" if before == after else f"{', '.join(before)} became {', '.join(after)}",
        printed=result.output,
        latency=None if result.latency is None else latency_of(result.latency),
        scenario=facts,
        generated=played,
        graph=result.graph,
        repeats=None if result.repeats is None else Repeats(**msgspec.structs.asdict(result.repeats)),
        **shared(result, ToldFacts),
    )


def placement_record(fields: PlacementFields) -> Placement:
    """Return a placement in the form of a record."""
    values = msgspec.structs.asdict(fields)
    return Placement(**{key: values[key] for key in values.keys() - {"ep_named", "cpu_named"}})


def _played(fields: GeneratedFields, data_sets: int) -> Played:
    numbers = {number for number, _ in fields.declined}
    if any(number >= data_sets for number in numbers) or len(numbers) == data_sets:
        raise ProtocolError(f"it declined {len(numbers)} data sets of {data_sets}, and ended well")
    speed = None
    if fields.speed is not None:
        speed = GenerationSpeed(
            first_token_ms=dict(fields.speed.first_token_ms),
            tokens_per_s=dict(fields.speed.tokens_per_s),
            tokens_per_s_at=dict(fields.speed.tokens_per_s_at),
            cache_mib=fields.speed.cache_mib,
        )
    return Played(
        declined={number: one_line(why) for number, why in fields.declined},
        text=tuple(fields.text),
        speed=speed,
        stages=tuple(StagePlace(**msgspec.structs.asdict(one)) for one in fields.stages),
    )


def _check_outputs(names: list[str], outputs: list[list[Any]], asked: ExpectedResult) -> None:
    """Check that there are as many results as requested, each for another output.

    Other outputs of a session are the provider's fault and are judged: ``shape_mismatch``.
    """
    if len(outputs) != asked.data_sets:
        raise ProtocolError(
            f"it gave outputs of {len(outputs)} data sets, and was asked for {asked.data_sets}"
        )
    if len(set(names)) != len(names) and sorted(names) != sorted(asked.outputs):
        raise ProtocolError("it gave an output twice that the model has once")
    if asked.by_reference and set(names) != set(asked.outputs):
        raise ProtocolError(f"it gave {len(names)} outputs with other names than the model declares")


def _check_played(generated: GeneratedFields | None, asked: ExpectedResult) -> None:
    """Check that ways were played if requested: a plain run would pass for all of them."""
    if asked.plays and generated is None:
        raise ProtocolError("it was asked to play ways of generating text, and gave a plain result")
    if generated is not None and not asked.plays:
        raise ProtocolError("it reported ways of generating text, but the job requested none")
    if generated is not None and bool(generated.stages) != asked.stages:
        what = (
            "reported sessions of a folder" if generated.stages else "did not report each session of a folder"
        )
        raise ProtocolError(f"it {what}, and was asked for {'several' if asked.stages else 'one'}")


def _named(names: list[str], wires: list[Any], tensors: Tensors) -> NamedValues:
    if len(names) != len(wires):
        raise ProtocolError(f"it gave {len(wires)} values for {len(names)} outputs")
    return tuple((name, _value(wire, tensors)) for name, wire in zip(names, wires, strict=True))


def _value(wire: Any, tensors: Tensors) -> Value:
    try:
        return tensors.take(wire)
    except ValueError as error:
        raise ProtocolError(f"it sent a malformed value: {one_line(error)}") from error


def _model(value: Value) -> Tensor:
    if not isinstance(value, Tensor) or value.dtype != "uint8" or not value.array.size:
        raise ProtocolError("it made no model")
    return value


def _facts(facts: Mapping[str, ParameterValue | list[ParameterValue]]) -> Observations:
    """Return the observations of a scenario, within limits; numbers that JSON cannot express become text."""
    return {one_line(name, 60): _bounded(fact) for name, fact in itertools.islice(facts.items(), FACTS_LIMIT)}


def _bounded(fact: ParameterValue | list[ParameterValue]) -> Observation:
    return tuple(map(_short, fact[:FACTS_LIMIT])) if isinstance(fact, list) else _short(fact)


def _short(fact: ParameterValue) -> ParameterValue:
    if isinstance(fact, str) or (isinstance(fact, float) and not math.isfinite(fact)):
        return one_line(fact, 200)
    return fact
