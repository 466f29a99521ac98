"""Every message that an agent may send, with the types, names and sizes of all that is in it.

``harness.agent.agent`` lists the words; what stands here is what the harness takes from them. A provider that
writes into foreign memory can make its process send anything, so an agent is hostile input: what does not fit
these structs never gets past ``harness.engine.protocol``.
"""

from typing import Annotated, Any, Literal

import msgspec

from harness.core.latency import Measured
from harness.core.verdict import Cause

MOST_ITEMS = 1 << 16
"""Entries of a list or a table: outputs of a model, operator types, packages. Models have some thousands."""

MOST_SESSION_RUNS = 1 << 31
"""Nodes, runs and sessions that an agent may count; a protobuf, and so a model, ends at 2 GiB."""

MOST_LEVELS = 8
"""Levels of lists and tables within one another in what an agent tells of its environment; it uses three."""

LARGEST_FILE = 1 << 60
"""Bytes: beyond any file system's largest file, and within what a seek takes."""

Text = Annotated[str, msgspec.Meta(max_length=MOST_ITEMS)]
"""Text for people. Agents send 32768 characters at most, twice ``harness.agent.text.OUTPUT_LIMIT``."""

Name = Text
"""A name from a model, which has no limit of its own; agents cut it as they cut other text."""

Names = Annotated[list[Name], msgspec.Meta(max_length=MOST_ITEMS)]

Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
"""Milliseconds or MiB: not negative, and neither NaN nor infinite, which satisfy no limit."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_SESSION_RUNS)]

Counts = Annotated[dict[Name, Count], msgspec.Meta(max_length=MOST_ITEMS)]

Timings = Annotated[dict[Name, Amount], msgspec.Meta(max_length=MOST_ITEMS)]

_Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""What JSON of records can hold."""

_Scalar = bool | _Whole | float | str

Told = Annotated[
    dict[str, _Scalar | Annotated[list[_Scalar], msgspec.Meta(max_length=MOST_ITEMS)]],
    msgspec.Meta(max_length=MOST_ITEMS),
]
"""What was seen in a scenario; of more than records keep, the rest is cut off and not refused."""

Values = Annotated[list[Any], msgspec.Meta(max_length=MOST_ITEMS)]
"""Values in wire form, which ``harness.core.value.from_wire`` checks: large ones lie in files."""

FinishedPhase = Literal["create", "run", "teardown"]


class ProtocolError(Exception):
    """An agent has sent what it must not send; the text says what, and ends its process."""


class _Plain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table all of whose keys are known."""


class ToldPlacement(_Plain, frozen=True, kw_only=True):
    """Which provider each node was assigned to; fields as in ``harness.core.record.Placement``."""

    ep_nodes: Count
    cpu_nodes: Count
    ep_ops: Counts
    cpu_ops: Counts
    partitions: Count
    source: Literal["assignment", "profile"]
    providers: Counts = {}
    chain_ops: Annotated[dict[Name, Counts], msgspec.Meta(max_length=MOST_ITEMS)] = {}


class ToldRepeats(_Plain, frozen=True, kw_only=True):
    """What repeated runs came to; fields as in ``harness.core.record.Repeats``."""

    runs: Annotated[int, msgspec.Meta(ge=1, le=MOST_SESSION_RUNS)]
    sessions: Annotated[int, msgspec.Meta(ge=1, le=MOST_SESSION_RUNS)]
    distinct: Annotated[int, msgspec.Meta(ge=1, le=MOST_SESSION_RUNS)]
    max_abs: Annotated[float, msgspec.Meta(ge=0, le=1.7976931348623157e308)] | None


class _Result(_Plain, frozen=True, kw_only=True, tag_field="status"):
    """What any result may have: one that failed has what was found out until then.

    Attributes:
        phase: The one that was entered last.
        output: What was printed meanwhile.
        timings_ms: Phase -> milliseconds.
        names: Of the session's outputs.
        outputs: For each data set that was run the outputs in wire form.
        other: Those of a run with other inputs, between two of the only data set.
        second: Those of a second run of the first data set where they differ.
        providers: Of the session, before its runs.
        providers_after: Of the session, after them.
        latency: How long its runs took.
        scenario: What was seen in its scenario.
        graph: The optimized model.
        declined: Why a model could not be converted.
        made: A converted model, in wire form.
        rounded: What the CPU provider is to compute in its place, likewise.
        message: What went wrong.
        kind: The type of the error.
    """

    phase: FinishedPhase = "create"
    output: Text = ""
    timings_ms: Timings = {}
    names: Names | None = None
    outputs: Annotated[list[Values], msgspec.Meta(max_length=MOST_ITEMS)] | None = None
    other: Values | None = None
    second: Values | None = None
    providers: Names | None = None
    providers_after: Names | None = None
    placement: ToldPlacement | None = None
    latency: Measured | None = None
    scenario: Told = {}
    graph: bytes = b""
    repeats: ToldRepeats | None = None
    declined: Text | None = None
    made: dict[str, Any] | None = None
    rounded: dict[str, Any] | None = None
    message: Text = ""
    kind: Text = ""


class Completed(_Result, frozen=True, kw_only=True, tag="ok"):
    """A model has run, or was converted; which of both was asked for decides what has to be there."""


class Failed(_Result, frozen=True, kw_only=True, tag="error"):
    """onnxruntime, or the provider, has raised an error."""

    phase: FinishedPhase
    message: Text
    kind: Text


class NotFed(_Result, frozen=True, kw_only=True, tag="unfeedable"):
    """The Python API there cannot take or give a value."""

    message: Text


class Refused(_Result, frozen=True, kw_only=True, tag="unsupported"):
    """The provider, or onnxruntime, has no such scenario."""

    phase: FinishedPhase
    message: Text


Result = Completed | Failed | NotFed | Refused


class After(_Plain, frozen=True, kw_only=True):
    """A process after a session; see ``harness.agent.agent``."""

    took_ms: Amount
    teardown_ms: Amount
    processor_ms: Amount
    rss_mib: Amount | None = None
    sick: Text = ""


class Device(msgspec.Struct, frozen=True):
    """A device that a provider offers; of some facts onnxruntime may have no text."""

    device: Annotated[dict[str, Text | None], msgspec.Meta(max_length=MOST_ITEMS)]
    metadata: Annotated[dict[str, Text | None], msgspec.Meta(max_length=MOST_ITEMS)]
    provider: Text = ""


class Processor(msgspec.Struct, frozen=True):
    """The processors there."""

    model: Text
    count: Count


class Plugin(msgspec.Struct, frozen=True):
    """A plugin library."""

    library: Text
    version: Text = ""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What the harness reads of an environment; an agent may tell more, as plain values."""

    python: Text = ""
    platform: Text = ""
    onnxruntime: Text = ""
    machine: Text = ""
    processor: Processor | None = None
    packages: Annotated[dict[str, Text], msgspec.Meta(max_length=MOST_ITEMS)] = {}
    owners: Names = []
    available_providers: Names = []
    providers: Names = []
    options: Annotated[dict[str, Text], msgspec.Meta(max_length=MOST_ITEMS)] = {}
    devices: Annotated[list[Device], msgspec.Meta(max_length=MOST_ITEMS)] = []
    plugin: Plugin | None = None


class _Word(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A list that begins with what it is."""


class Imported(_Word, tag="imported", frozen=True):
    """onnxruntime is there."""


class Ready(_Word, tag="ready", frozen=True):
    """It can take jobs."""

    fingerprint: dict[str, Any]

    def __post_init__(self) -> None:
        _check_environment(self.fingerprint)


class Useless(_Word, tag="unavailable", frozen=True):
    """The target cannot be used."""

    cause: Cause
    reason: Text
    output: Text
    fingerprint: dict[str, Any]

    def __post_init__(self) -> None:
        _check_environment(self.fingerprint)


class Refuses(_Word, tag="rejected", frozen=True):
    """A provider option is refused."""

    option: Text
    reason: Text
    output: Text
    fingerprint: dict[str, Any]

    def __post_init__(self) -> None:
        _check_environment(self.fingerprint)


class Enters(_Word, tag="phase", frozen=True):
    """A job enters a phase."""

    job: int
    phase: FinishedPhase


class Results(_Word, tag="result", frozen=True):
    """What came of a job."""

    job: int
    result: Result


class Done(_Word, tag="done", frozen=True):
    """A job's session is gone."""

    job: int
    after: After


class Needs(_Word, tag="need", frozen=True):
    """A piece of a file of a job's model."""

    job: int
    name: Name
    offset: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_FILE)]


OfStart = Imported | Ready | Useless | Refuses
OfJob = Enters | Results | Done | Needs


class Envelope(msgspec.Struct, array_like=True, frozen=True):
    """Around a message: msgspec analyses a struct's type once, and a bare union's each time."""

    said: OfStart | OfJob


def _check_environment(fingerprint: dict[str, Any]) -> None:
    """Check what an agent tells of its environment, which goes to ``run.json`` as it is.

    Raises:
        ValueError: It cannot be written there, or what the harness reads of it has another type.
    """
    msgspec.convert(fingerprint, Environment)
    if not _is_plain(fingerprint, MOST_LEVELS):
        raise ValueError("an environment of more than plain values")


def _is_plain(value: Any, levels: int) -> bool:
    """Whether a value is a tree of JSON of bounded depth, with numbers that JSON of a run folder can hold."""
    if isinstance(value, dict):
        return levels > 0 and all(type(key) is str and _is_plain(value[key], levels - 1) for key in value)
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(item, levels - 1) for item in value)
    if isinstance(value, str):
        return len(value) <= MOST_ITEMS
    if isinstance(value, int):
        return abs(value) < 1 << 63
    return value is None or isinstance(value, float)
