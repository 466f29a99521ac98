"""What came of trying a cell, before anyone judges it: plain values, one struct for each way to end."""

from typing import Any

import msgspec

from harness.core.record import Placement, ProcessState
from harness.core.value import Value
from harness.core.verdict import Phase
from harness.engine.tensor_files import Tensors

NamedValues = tuple[tuple[str, Value], ...]


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """The model ran to its end.

    Attributes:
        outputs: For each data set the outputs by name.
        second: Outputs of a second run of the first data set where they differ from the first run's.
        placement: Where the nodes went.
        providers_changed: The session's providers before and after the run where they differ.
        timings_ms: ``create``, ``first_run`` and, once known, ``teardown``.
        printed: What the process printed meanwhile.
        teardown: How the process died or hung in teardown, after the result; empty where it did not.
        process: The process as it was afterwards; None where it did not outlive the session.
    """

    outputs: tuple[NamedValues, ...]
    placement: Placement
    timings_ms: dict[str, float]
    second: NamedValues | None = None
    providers_changed: str = ""
    printed: str = ""
    teardown: str = ""
    process: ProcessState | None = None


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """onnxruntime or the provider raised an error.

    Attributes:
        sick: What the process can no longer do since then; empty where it is well.
        process: The process as it was afterwards.
    """

    phase: Phase
    kind: str
    message: str
    printed: str = ""
    sick: str = ""
    process: ProcessState | None = None


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


Outcome = Ran | Raised | Unfeedable | Died | Hung | Unavailable | Rejected


def from_result(result: dict[str, Any], tensors: Tensors) -> Outcome:
    """Read the agent's ``result`` message.

    Args:
        result: The message.
        tensors: What has carried the outputs.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: It is nonsense.
    """
    printed = result.get("output", "")
    if result["status"] == "unfeedable":
        return Unfeedable(message=result["message"])
    if result["status"] == "error":
        return Raised(
            phase=Phase(result["phase"]), kind=result["kind"], message=result["message"], printed=printed
        )
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
    )


def _named(names: list[str], wires: list[Any], tensors: Tensors) -> NamedValues:
    return tuple((name, tensors.take(wire)) for name, wire in zip(names, wires, strict=True))
