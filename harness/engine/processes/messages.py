"""Every message that an agent may send, with the types, names and sizes of its fields.

``docs/reference/agent-protocol.md`` specifies them. A provider that corrupts memory can make its process send
anything, so an agent is hostile input: ``harness.engine.listener`` refuses what does not fit these structs.
"""

from typing import Annotated, Any, Literal

import msgspec

from harness.core.records.facts import MOST_ITEMS, Amount, Text, ToldFacts
from harness.core.records.verdict import Cause
from harness.core.timing.latency import TimedRuns

MOST_SESSION_RUNS = 1 << 31
"""Nodes, runs and sessions that an agent may count; a protobuf, and so a model, is at most 2 GiB."""

MOST_FIGURES = 64
"""Number of prompt lengths, and of batch sizes, whose speed is measured."""

_MOST_LEVELS = 8
"""Nested lists and tables in the description of an environment; agents use three."""

LARGEST_FILE = 1 << 60
"""Bytes: larger than any file system's largest file, and valid for a seek."""

WireName = Text
"""A name from a model, which has no limit of its own; agents cut it like other text."""

WireNames = Annotated[list[WireName], msgspec.Meta(max_length=MOST_ITEMS)]

SessionRunCount = Annotated[int, msgspec.Meta(ge=0, le=MOST_SESSION_RUNS)]

Counts = Annotated[dict[WireName, SessionRunCount], msgspec.Meta(max_length=MOST_ITEMS)]

_Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""An integer that fits into the JSON of records."""

_Scalar = bool | _Whole | float | str

ScenarioFacts = Annotated[
    dict[str, _Scalar | Annotated[list[_Scalar], msgspec.Meta(max_length=MOST_ITEMS)]],
    msgspec.Meta(max_length=MOST_ITEMS),
]
"""Facts about a scenario; entries beyond a record's limit are cut off, not refused."""

WireValues = Annotated[list[Any], msgspec.Meta(max_length=MOST_ITEMS)]
"""Values in wire form, which ``harness.core.values.value.from_wire`` checks; large ones are in files."""

FinishedPhase = Literal["create", "run", "teardown"]


class ProtocolError(Exception):
    """An agent has sent a forbidden message, which ends its process; the text describes the message."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table without unknown keys."""


class PlacementFields(_Table, frozen=True, kw_only=True):
    """Which provider each node was assigned to; fields as in ``harness.core.records.facts.Placement``.

    Attributes:
        ep_named, cpu_named: Name and operator type of each node, if both sides have some; empty if unknown.
    """

    ep_nodes: SessionRunCount
    cpu_nodes: SessionRunCount
    ep_ops: Counts
    cpu_ops: Counts
    partitions: SessionRunCount
    source: Literal["assignment", "incomplete", "profile", "log", "unknown"]
    providers: Counts = {}
    chain_ops: Annotated[dict[WireName, Counts], msgspec.Meta(max_length=MOST_ITEMS)] = {}
    ep_named: Annotated[list[tuple[WireName, WireName]], msgspec.Meta(max_length=MOST_ITEMS)] = []
    cpu_named: Annotated[list[tuple[WireName, WireName]], msgspec.Meta(max_length=MOST_ITEMS)] = []

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if an unknown placement has node counts."""
        if self.source == "unknown" and (self.ep_nodes or self.cpu_nodes or self.partitions):
            raise ValueError("an unknown placement that counts nodes")


class RepeatsFields(_Table, frozen=True, kw_only=True):
    """The result of repeated runs; fields as in ``harness.core.records.facts.Repeats``."""

    runs: Annotated[int, msgspec.Meta(ge=1, le=MOST_SESSION_RUNS)]
    sessions: Annotated[int, msgspec.Meta(ge=1, le=MOST_SESSION_RUNS)]
    distinct: Annotated[int, msgspec.Meta(ge=1, le=MOST_SESSION_RUNS)]
    max_abs: Annotated[float, msgspec.Meta(ge=0, le=1.7976931348623157e308)] | None
    differing: SessionRunCount | None = None


class SpeedFields(_Table, frozen=True, kw_only=True):
    """How fast a session generates text: ``GenerationSpeed`` in ``generation_figures``, in pairs."""

    first_token_ms: Annotated[
        list[tuple[SessionRunCount, Amount]], msgspec.Meta(max_length=MOST_FIGURES)
    ] = []
    tokens_per_s: Annotated[list[tuple[SessionRunCount, Amount]], msgspec.Meta(max_length=MOST_FIGURES)] = []
    tokens_per_s_at: Annotated[
        list[tuple[SessionRunCount, Amount]], msgspec.Meta(max_length=MOST_FIGURES)
    ] = []
    cache_mib: Amount | None = None


class StageFields(_Table, frozen=True, kw_only=True):
    """Where a session of a folder ran: ``harness.core.records.generation_figures.StagePlace``."""

    name: WireName
    asked: bool
    ep_nodes: SessionRunCount
    cpu_nodes: SessionRunCount
    cpu_ops: Counts


class GeneratedFields(_Table, frozen=True, kw_only=True):
    """What the scenario ``generate`` adds to the outputs.

    Attributes:
        declined: Number of each data set that cannot be played, and the reason; it has no outputs.
        text: Tokens that the EP chooses by itself.
        speed: How fast it is.
        stages: Where each session of a folder ran, in their order.
    """

    declined: Annotated[list[tuple[SessionRunCount, Text]], msgspec.Meta(max_length=MOST_ITEMS)] = []
    text: Annotated[list[SessionRunCount], msgspec.Meta(max_length=MOST_ITEMS)] = []
    speed: SpeedFields | None = None
    stages: Annotated[list[StageFields], msgspec.Meta(max_length=MOST_ITEMS)] = []


class _Result(ToldFacts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="status"):
    """What any result may have, beside the facts that a record tells; a failed one has what is known by then.

    Attributes:
        output: What was printed meanwhile.
        names: Names of the session's outputs.
        outputs: For each data set that ran, the outputs in wire form.
        other: The outputs of a run with other inputs, between two runs of the only data set.
        other_error: The error that this run raised instead.
        second: The outputs of a second run of the first data set, if they differ.
        providers, providers_after: The session's providers before and after its runs.
        declined: Why a model could not be converted.
        made: A converted model, in wire form.
        rounded: The model that the CPU provider computes in its place, likewise.
    """

    phase: FinishedPhase = "create"
    output: Text = ""
    names: WireNames | None = None
    outputs: Annotated[list[WireValues], msgspec.Meta(max_length=MOST_ITEMS)] | None = None
    other: WireValues | None = None
    other_error: Text = ""
    second: WireValues | None = None
    providers: WireNames | None = None
    providers_after: WireNames | None = None
    placement: PlacementFields | None = None
    latency: TimedRuns | None = None
    scenario: ScenarioFacts = msgspec.field(default_factory=dict)
    generated: GeneratedFields | None = None
    graph: bytes = b""
    repeats: RepeatsFields | None = None
    declined: Text | None = None
    made: dict[str, Any] | None = None
    rounded: dict[str, Any] | None = None
    message: Text = ""
    kind: Text = ""


class Completed(_Result, frozen=True, kw_only=True, tag="ok"):
    """A model has run, or was converted; each case needs its own fields."""


class Failed(_Result, frozen=True, kw_only=True, tag="error"):
    """onnxruntime, or the provider, has raised an error."""

    phase: FinishedPhase
    message: Text
    kind: Text


class NotFed(_Result, frozen=True, kw_only=True, tag="unfeedable"):
    """The Python API of the target cannot take or return a value."""

    message: Text


class ScenarioRefused(_Result, frozen=True, kw_only=True, tag="unsupported"):
    """The provider, or onnxruntime, has no such scenario.

    Attributes:
        cause: ``not_in_runtime`` if this onnxruntime lacks the API, whatever the provider.
    """

    phase: FinishedPhase
    message: Text
    cause: Literal["", "not_in_runtime"] = ""


RunResult = Completed | Failed | NotFed | ScenarioRefused


class After(_Table, frozen=True, kw_only=True):
    """A process after a session; see ``harness.agent.agent``.

    Attributes:
        manners: Kind, phase and description of each thing that the model changed in the process.
    """

    took_ms: Amount
    teardown_ms: Amount
    processor_ms: Amount
    rss_mib: Amount | None = None
    threads: SessionRunCount | None = None
    descriptors: SessionRunCount | None = None
    manners: Annotated[list[tuple[Text, Text, Text]], msgspec.Meta(max_length=MOST_FIGURES)] = []
    sick: Text = ""


class Device(msgspec.Struct, frozen=True):
    """A device that a provider offers; onnxruntime may have no text for some values."""

    device: Annotated[dict[str, Text | None], msgspec.Meta(max_length=MOST_ITEMS)]
    metadata: Annotated[dict[str, Text | None], msgspec.Meta(max_length=MOST_ITEMS)]
    provider: Text = ""


class Processor(msgspec.Struct, frozen=True):
    """The processors of the agent's machine."""

    model: Text
    count: SessionRunCount
    features: WireNames | None = None


class Plugin(msgspec.Struct, frozen=True):
    """A plugin library."""

    library: Text
    version: Text = ""


class AgentEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of an environment that the harness reads; an agent may send more, as plain values."""

    python: Text = ""
    platform: Text = ""
    onnxruntime: Text = ""
    machine: Text = ""
    processor: Processor | None = None
    packages: Annotated[dict[str, Text], msgspec.Meta(max_length=MOST_ITEMS)] = {}
    owners: WireNames = []
    available_providers: WireNames = []
    providers: WireNames = []
    options: Annotated[dict[str, Text], msgspec.Meta(max_length=MOST_ITEMS)] = {}
    devices: Annotated[list[Device], msgspec.Meta(max_length=MOST_ITEMS)] = []
    plugin: Plugin | None = None


class _Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A list that begins with the name of the message."""


class _FromStart(_Message, frozen=True):
    """A message whose last field describes the environment, which goes to ``run.json`` unchanged."""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if the environment cannot be written there, or if a field has a wrong type."""
        fingerprint: dict[str, Any] = self.fingerprint  # type: ignore[attr-defined]
        msgspec.convert(fingerprint, AgentEnvironment)
        if not _is_plain(fingerprint, _MOST_LEVELS):
            raise ValueError("an environment of more than plain values")


class Imported(_Message, tag="imported", frozen=True):
    """onnxruntime is imported."""


class LibraryDigests(_Message, tag="digests", frozen=True):
    """The SHA-256 of the files that the process has loaded: path -> state of the file, and its digest."""

    files: Annotated[dict[Text, tuple[Text, Text]], msgspec.Meta(max_length=MOST_ITEMS)]


class Ready(_FromStart, tag="ready", frozen=True):
    """The process can take jobs."""

    fingerprint: dict[str, Any]


class TargetUnavailable(_FromStart, tag="unavailable", frozen=True):
    """The target cannot be used."""

    cause: Cause
    reason: Text
    output: Text
    fingerprint: dict[str, Any]


class OptionRefused(_FromStart, tag="rejected", frozen=True):
    """A provider option is refused."""

    option: Text
    reason: Text
    output: Text
    fingerprint: dict[str, Any]


class PhaseEntered(_Message, tag="phase", frozen=True):
    """A job enters a phase."""

    job: int
    phase: FinishedPhase


class JobResult(_Message, tag="result", frozen=True):
    """The result of a job."""

    job: int
    result: RunResult


class JobDone(_Message, tag="done", frozen=True):
    """A job's session has been deleted."""

    job: int
    after: After


class PieceNeeded(_Message, tag="need", frozen=True):
    """The agent needs a piece of a file of a job's model."""

    job: int
    name: WireName
    offset: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_FILE)]


StartMessage = Imported | LibraryDigests | Ready | TargetUnavailable | OptionRefused
JobMessage = PhaseEntered | JobResult | JobDone | PieceNeeded


class Envelope(msgspec.Struct, array_like=True, frozen=True):
    """Wraps a message: msgspec analyses a struct's type once, but a bare union's each time."""

    message: StartMessage | JobMessage


def _is_plain(value: Any, levels: int) -> bool:
    """Return whether a value is JSON of limited depth, with numbers that a run folder can hold."""
    if isinstance(value, dict):
        return levels > 0 and all(type(key) is str and _is_plain(value[key], levels - 1) for key in value)
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(item, levels - 1) for item in value)
    if isinstance(value, str):
        return len(value) <= MOST_ITEMS
    if isinstance(value, int):
        return abs(value) < 1 << 63
    return value is None or isinstance(value, float)
