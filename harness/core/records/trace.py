"""A trace: the error of a target by depth of a model. Public: the lines of ``trace.jsonl``."""

from io import BytesIO
from typing import Any, Literal

import msgspec

from harness.core.files.json_schema import json_schema_of

_SCHEMA = 1

TRACE_FOLDER, TRACE_FILE = "trace", "trace.jsonl"
"""Where a trace is written below a run folder, unless another folder is given."""

BAND = 3.0
"""Multiples of a model's own rounding noise within which an error counts as rounding: the upper edge of the
band of noise. It is the limit of ``harness.core.comparison.noise_limits.NoiseLimits.rms``."""

TraceFinding = Literal["made", "everywhere", "range", "amplified", "together", "none", "unknown"]


class TraceError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The error of a node's results, all of them together: the largest of each figure.

    Attributes:
        noise: The error in multiples of the rounding noise at the precision that the target delivers. More
            than ``BAND`` is no rounding. Null if the noise is not known, or no multiple of it is finite.
        exact: Whether every bit is equal.
        allowed: Whether the rules of verdicts call it right although its noise is not known: a step of
            quantization, or positions of values that tie.
        relative: ``norm(out - golden) / norm(golden)``; null where that is not finite.
        sqnr_db: ``-20 log10(relative)``; null where exact.
        cosine: The smallest cosine of a result with its golden; null where it is undefined.
        max_abs: Largest absolute difference.
        special: Elements with NaN or infinity on one side only.
        flushed: Elements that are zero on one side and subnormal on the other.
        differs: ``shape`` or ``dtype`` where a result has another one.
    """

    noise: float | None = None
    exact: bool = False
    allowed: bool = False
    relative: float | None = None
    sqnr_db: float | None = None
    cosine: float | None = None
    max_abs: float | None = None
    special: int = 0
    flushed: int = 0
    differs: str = ""

    @property
    def is_beyond(self) -> bool:
        """Whether rounding does not explain it."""
        if self.special or self.differs:
            return True
        return self.noise > BAND if self.noise is not None else not (self.exact or self.allowed)


class GoldenRange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The golden values of a node's results.

    Attributes:
        low: The smallest finite value.
        high: The largest finite value.
        too_large: Share of the finite values beyond the largest number of the delivered precision.
        too_small: Share of the values other than 0 below its smallest normal number.
        clipped: For `QuantizeLinear`: share of the values that it reads beyond the range of its scale.
        below_step: In a model that is quantized: share of all values that are not 0 but smaller than
            one step of 255 over the range. A few large values, such as those of a mask, cause it.
    """

    low: float
    high: float
    too_large: float = 0.0
    too_small: float = 0.0
    clipped: float = 0.0
    below_step: float = 0.0


class TracedNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="node", tag_field="kind"):
    """One node on one target.

    Attributes:
        target: The target, as ``TracedTarget.target`` names it.
        number: Its place in the model's own order, from 0.
        depth: The longest way from an input of the model to it, in nodes.
        node: Its name; that of its first output if it has none.
        op_type: Its operator, with its domain before it unless that is ONNX's own.
        attributes: Its attributes in words.
        inputs: Names of the nodes whose results it reads.
        dtype: Element type of its first result.
        shape: Shape of its first result.
        partition: Number of the partition that the EP compiles it in; null if it is not known.
        placed: Where it ran: ``ep``, ``cpu``; ``unknown`` if some nodes of its operator ran on each.
        inherited: The largest error among the results that it reads, in multiples of their noise.
        whole: Its error with inputs as the provider made them: inherited and made.
        made: Its error on golden inputs, which no other node changes.
        range: Golden values of its results; null if they are not known.
        guilty: Whether rounding does not explain the error that it makes.
        disturbed: Whether watching it changed the outputs of the model or the placement: ``whole`` is then
            the error of another computation.
        problem: Why an error is missing; empty if none is.
    """

    target: str
    number: int
    depth: int
    node: str
    op_type: str
    attributes: str = ""
    inputs: tuple[str, ...] = ()
    dtype: str = ""
    shape: tuple[int, ...] = ()
    partition: int | None = None
    placed: Literal["ep", "cpu", "unknown"] = "unknown"
    inherited: float | None = None
    whole: TraceError | None = None
    made: TraceError | None = None
    range: GoldenRange | None = None
    guilty: bool = False
    disturbed: bool = False
    problem: str = ""


class TracedPartition(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="partition", tag_field="kind"
):
    """A partition on one target: nodes that the EP compiles as one. Only what crosses its border is seen.

    Attributes:
        target: The target, as ``TracedTarget.target`` names it.
        number: Its number, from 0, as ``TracedNode.partition`` has it. Sentences count from 1.
        nodes: Number of its nodes that depend on an input.
        first: Name of its first node in the model's order.
        last: Name of its last one.
        inherited: The largest error among the tensors that it reads, in multiples of their noise.
        whole: The error of what leaves it, with inputs as the provider made them: inherited and made.
        made: The same on golden inputs, where its nodes alone are the model and nothing inside is watched.
        guilty: Whether rounding does not explain ``made``, and no node of it is wrong alone.
        compiled: Whether the EP takes those nodes alone as one partition: ``same``; ``otherwise`` if as more
            than one, or not all of them; ``unknown`` if the placement is not known, or nothing was tried.
        disturbed: Number of its nodes that cannot be watched without a change of what is computed.
        problem: Why ``made`` is missing; empty if it is not.
    """

    target: str
    number: int
    nodes: int
    first: str
    last: str
    inherited: float | None = None
    whole: TraceError | None = None
    made: TraceError | None = None
    guilty: bool = False
    compiled: Literal["same", "otherwise", "unknown"] = "unknown"
    disturbed: int = 0
    problem: str = ""


class TogetherGuilty(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are each right alone and wrong together: a fused kernel, or a part of a partition.

    Attributes:
        nodes: Their names.
        op_types: Their operators.
        made: Their error together on golden inputs.
        partition: Number of the partition that they are a part of; null if it is not known.
    """

    nodes: tuple[str, ...]
    op_types: tuple[str, ...]
    made: TraceError
    partition: int | None = None


class KeptFloat32(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that stay in float32 when the model is converted, and what that gave when it was tried.

    Attributes:
        nodes: Their names, as converters and quantizers take them.
        before: The error of the model's outputs without it.
        after: The error with it.
        before_ms: Median time of the first run of five sessions, in milliseconds; null if it is not known.
        after_ms: The same with it.
    """

    nodes: tuple[str, ...]
    before: TraceError
    after: TraceError
    before_ms: float | None = None
    after_ms: float | None = None


class TracedTarget(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="target", tag_field="kind"
):
    """The result of one target, after its nodes.

    Attributes:
        target: Its name with its axes, such as ``openvino[precision=fp16]``.
        provider: Its first provider.
        onnxruntime: The version of its runtime.
        axes: Axes that differ from their defaults.
        verdict: The verdict about the model, of which only its own outputs were asked.
        delivers: The precision whose noise the errors are told in: the one that most nodes show.
        end: The error of the model's own outputs.
        finding: What the error is: ``made`` at some nodes, ``everywhere`` alike, ``range``, ``amplified``,
            ``together``, ``none``, or ``unknown``.
        sentence: The same in one sentence.
        guilty: Names of the nodes that make an error that rounding does not explain.
        shares: What these nodes have in common and others have not.
        together: Nodes that are wrong only together: the fewest that were found.
        guilty_partitions: Numbers of the partitions that are wrong as compiled, while no node of them is
            wrong alone.
        condition: For ``amplified``: by how much the node enlarges the relative error that it inherits.
        keep: The smallest set of nodes to keep in float32 that was found; null if none was searched for, or
            none restores the accuracy.
        partitions: Partitions of the EP; null if they are not known.
        sessions: Sessions that were made.
        disturbed: Number of nodes that cannot be watched without a change of what is computed.
        seconds: Time that it took.
    """

    target: str
    provider: str
    sentence: str
    finding: TraceFinding
    onnxruntime: str = ""
    axes: dict[str, str] = {}
    verdict: str = ""
    delivers: str = "float32"
    end: TraceError | None = None
    guilty: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    together: TogetherGuilty | None = None
    guilty_partitions: tuple[int, ...] = ()
    condition: float | None = None
    keep: KeptFloat32 | None = None
    partitions: int | None = None
    sessions: int = 0
    disturbed: int = 0
    seconds: float = 0.0


class TracedModel(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="model", tag_field="kind"
):
    """The first line: what was traced.

    Attributes:
        schema: The version of this format.
        model: Its name, as ``suite/model`` or as a file's name.
        digest: SHA-256 over the model and its inputs.
        nodes: Nodes of its main graph.
        inputs: Where the inputs come from: ``data set``, ``file``, or ``generated``.
    """

    model: str
    digest: str
    nodes: int
    inputs: Literal["data set", "file", "generated"]
    schema: int = _SCHEMA


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The trace of one model: each target with its nodes, in the model's order; the partitions of all."""

    model: TracedModel
    targets: tuple[tuple[TracedTarget, tuple[TracedNode, ...]], ...]
    partitions: tuple[TracedPartition, ...] = ()

    def partitions_of(self, target: str) -> tuple[TracedPartition, ...]:
        """Return the partitions of one target; none if they are not known."""
        return tuple(one for one in self.partitions if one.target == target)


TraceLine = TracedModel | TracedNode | TracedPartition | TracedTarget


def encode_trace(trace: Trace) -> bytes:
    """Return the lines of a trace: the model, then for each target its nodes, partitions and result."""
    lines: list[TraceLine] = [trace.model]
    for target, nodes in trace.targets:
        lines += [*nodes, *trace.partitions_of(target.target), target]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def decode_traces(content: bytes) -> tuple[Trace, ...]:
    """Read ``trace.jsonl``, which may have several models; what a target without a result has is left out.

    Raises:
        ValueError: A line is no line of this schema, or the first one is not a model.
    """
    traces: list[Trace] = []
    nodes: list[TracedNode] = []
    partitions: list[TracedPartition] = []
    for number, line in enumerate(BytesIO(content), start=1):
        if not line.strip():
            continue
        try:
            read = msgspec.json.decode(line, type=TraceLine)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from error
        if isinstance(read, TracedModel):
            if read.schema != _SCHEMA:
                raise ValueError(
                    f"line {number}: schema {read.schema}, but this version reads schema {_SCHEMA}"
                )
            traces.append(Trace(model=read, targets=()))
            nodes, partitions = [], []
        elif not traces:
            raise ValueError(f"line {number}: no model comes before it")
        elif isinstance(read, TracedNode):
            nodes.append(read)
        elif isinstance(read, TracedPartition):
            partitions.append(read)
        else:
            last, name = traces[-1], read.target
            own = tuple(one for one in nodes if one.target == name)
            parts = (one for one in partitions if one.target == name)
            traces[-1] = Trace(
                model=last.model,
                targets=(*last.targets, (read, own)),
                partitions=(*last.partitions, *parts),
            )
            nodes, partitions = [], []
    return tuple(traces)


def trace_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line: docs/reference/trace.schema.json."""
    return json_schema_of(TraceLine, "a line of trace.jsonl")
