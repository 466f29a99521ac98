"""The record of one cell: the public JSON contract, one line of ``records.jsonl``."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from harness.core.latency import Latency
from harness.core.scenario import Facts
from harness.core.verdict import Family, Phase, Verdict

SCHEMA = 1


class Placement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which provider each node was assigned to.

    Attributes:
        ep_nodes: Nodes on the target's provider, or on any non-CPU provider of its chain.
        cpu_nodes: Nodes on the CPU EP. For a target that *is* the CPU EP these count as ``ep_nodes``.
        ep_ops: Operator type -> count, on the EP.
        cpu_ops: Operator type -> count, left to the CPU EP.
        partitions: Subgraphs that the EP took (a kernel-based EP has one for each node).
        source: ``assignment`` (onnxruntime's own record at partitioning) or ``profile`` (what ran).
        providers: Provider -> nodes, in the order of the chain, the CPU EP last; empty where the chain has
            no second provider besides the CPU EP.
        chain_ops: Provider -> operator type -> count, of those providers but the CPU EP.
        shape_ops: Those of ``cpu_ops`` that only work on shapes here: they stay on the CPU EP by design.
    """

    ep_nodes: int
    cpu_nodes: int
    ep_ops: dict[str, int]
    cpu_ops: dict[str, int]
    partitions: int
    source: Literal["assignment", "profile"]
    providers: dict[str, int] = {}
    chain_ops: dict[str, dict[str, int]] = {}
    shape_ops: tuple[str, ...] = ()


class ProcessState(msgspec.Struct, frozen=True, kw_only=True):
    """The process that a cell ran in, as it was after the cell; over many cells it shows a leak.

    Attributes:
        pid: Its id, on the machine that runs the harness.
        session: Which of the process's sessions this was, from 1.
        took_ms: What the cell took there all told, whatever came of it: its sessions and runs, the first ones
            and those that tell whether it repeats itself, reading and writing of tensors.
        processor_ms: What all threads of the process took of processors meanwhile.
        rss_mib: Its resident memory in MiB, once the session was gone; null where the system does not tell.
        niceness: How far it gave way to processes of longer lanes, as ``nice`` counts, which is what its
            timings are worth; 0 where it did not.
    """

    pid: int
    session: int
    took_ms: float = 0.0
    processor_ms: float = 0.0
    rss_mib: float | None = None
    niceness: int = 0


class OptionEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Whether options that should change what is computed did so in one cell.

    Attributes:
        options: Keys of such options, and the precision mode as ``ep:<name>``; all were left out together.
        seen: False where the outputs are bit-identical without them.
    """

    options: tuple[str, ...]
    seen: bool


class ModelContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is made of, as far as it tells which operators a cell says something about.

    Attributes:
        opsets: Domain -> version that the model imports; ONNX's own domain is ``ai.onnx``.
        ops: Operator type -> nodes before any optimization, those in subgraphs and local functions included.
        types: Element types of the inputs that are fed, sorted.
    """

    opsets: dict[str, int]
    ops: dict[str, int]
    types: tuple[str, ...] = ()


class Noise(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The error of an output as a multiple of the rounding noise of its model; see ``harness.core.spread``.

    Attributes:
        precision: Whose rounding makes the noise, such as ``float32``.
        rms: Root mean square of the error over that of the noise.
        max: Largest error of an element over the noise of that element.
        rms_limit: What ``rms`` may be; null where another tolerance judged.
        max_limit: What ``max`` may be, likewise.
        like: The precision whose noise is nearest to the error; ``exact`` where there is no error.
    """

    precision: str
    rms: float
    max: float
    rms_limit: float | None = None
    max_limit: float | None = None
    like: str = ""


class PrecisionError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model of reduced precision loses: on the EP, and on the CPU EP.

    Errors are ``norm(out - golden) / norm(golden)`` against the golden of the float32 model; 0 where nothing
    differs, whatever the norm of the golden.

    Attributes:
        error: Of the EP.
        cpu_error: Of the CPU EP with the same model.
        ratio: ``norm(out - golden) / norm(cpu_out - golden)``; 1 where both are 0.
        unknown: Why one of these numbers is missing; empty where all three are there.
        within: Whether the EP's answer is near the CPU EP's own, or its error within limits on the CPU EP's:
            whatever a tolerance says of its distance from the golden; see ``harness.core.precise``.
        in_limits: The latter alone, which holds under any tolerance.
        own_frontier: As ``frontier``, of the distance from the CPU EP's own answer; empty where ``in_limits``
            says enough, or the answer is further from it than the precision explains.
        lost: Whether the precision takes so much on the CPU EP that an output that fails judges nobody.
    """

    error: float | None = None
    cpu_error: float | None = None
    ratio: float | None = None
    unknown: str = ""
    within: bool = False
    in_limits: bool = False
    own_frontier: tuple[tuple[float, float], ...] = ()
    lost: bool = False


class Adjudication(msgspec.Struct, frozen=True, kw_only=True):
    """Which of golden and EP is nearer to a more precise answer, for one output.

    Attributes:
        output: Its name.
        by: What gave that answer, such as ``float64 on the CPU EP``.
        golden: ``norm(golden - answer) / norm(answer)``.
        ep: The same of the EP's output.
        nearer: The nearer one; ``equal`` where neither is clearly.
    """

    output: str
    by: str
    golden: float
    ep: float
    nearer: Literal["golden", "ep", "equal"]


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """What repeated runs of a cell came to.

    Attributes:
        runs: In each session, the first one included.
        sessions: Opened one after the other.
        distinct: Different results, bit for bit, over all of them.
        max_abs: Largest ``|out - first|`` of any element of any run; null where it cannot be measured.
        bit_equal: Whether the matrix demands equal bits.
    """

    runs: int
    sessions: int
    distinct: int
    max_abs: float | None = None
    bit_equal: bool = False


class OutputDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of an output whose values are more than numbers, or zeros of another sign.

    Attributes:
        steps: Of a quantized output: largest difference in steps of its scale.
        ties: Of an output of positions: elements at another place whose values tie with the golden's.
        distribution: Of one that is drawn by lot: what it was judged by in place of its values.
        unseen: Of the same: departure of the cumulative distribution, from 0 to 1, below which a wrong one
            would pass for want of numbers.
        signed_zeros: Zeros whose sign is not the golden's; they count as equal.
    """

    steps: float | None = None
    ties: int = 0
    distribution: str = ""
    unseen: float | None = None
    signed_zeros: int = 0


class OutputMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """How one output (or one leaf of a sequence or map) compares with its golden.

    Metrics are taken over the elements where both sides are finite; they are null where they are
    undefined (strings, other shapes, no finite pair) or not finite themselves.

    Attributes:
        name: Output name; ``name[2]`` for an item of a sequence, ``name.keys`` and ``name.values`` for a map.
        dtype: ONNX element type in lower case, such as ``float32``, ``bfloat16``, ``int4``, ``string``; or
            ``sequence``, ``map``, ``optional`` for a container that is empty or wrong as a whole.
        shape: Shape of the EP's result, of the golden where the EP gave none; ``(length,)`` of a container.
        max_abs: Largest ``|out - golden|``.
        max_rel: Largest ``|out - golden| / |golden|`` over elements whose golden is not zero.
        rmse: Root of the mean squared error.
        cosine: Cosine of the angle between the two as flat vectors.
        sqnr_db: ``20 log10(norm(golden) / norm(out - golden))`` in decibels; null when exact.
        delivered_bits: ``-log2(norm(out - golden) / norm(golden))``; null when exact.
        mismatched: Elements outside the tolerance, those that differ in NaN or infinity included; every
            element, and at least 1, of an output that is missing, or of another shape, structure or type.
        elements: Elements compared.
        rtol: Relative tolerance that judged.
        atol: Absolute tolerance that judged.
        headroom: Largest ``error / (atol + rtol * |golden|)``; 1.0 is the limit; null where it is infinite.
        frontier: ``(atol, rtol)`` pairs: for each atol of a fixed grid the smallest rtol that passes, up to
            the first rtol of 0; empty where no tolerance of the grid passes.
        noise: The error in units of the model's rounding noise; null where that is not known, or exact.
        precision_error: What the precision costs, where the model was made for another than its own.
        details: What its values are besides numbers; null where they are just that.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float | None = None
    max_rel: float | None = None
    rmse: float | None = None
    cosine: float | None = None
    sqnr_db: float | None = None
    delivered_bits: float | None = None
    mismatched: int = 0
    elements: int = 0
    rtol: float = 0.0
    atol: float = 0.0
    headroom: float | None = None
    frontier: tuple[tuple[float, float], ...] = ()
    noise: Noise | None = None
    precision_error: PrecisionError | None = None
    details: OutputDetails | None = None


class Apart(OutputMetrics, frozen=True, kw_only=True, omit_defaults=True):
    """How far two answers lie apart in one output, as far as it takes to judge that again.

    Only ``name``, ``dtype``, ``elements``, ``max_abs``, ``delivered_bits``, ``mismatched``, the tolerance,
    ``headroom``, ``frontier``, ``noise`` and ``details`` are told; a field with nothing to say is left out.
    """

    shape: tuple[int, ...] = ()


class Witness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody else makes of the model; golden and EP are held against it as EP and golden were.

    Attributes:
        name: Who, for people.
        golden: How far the golden lies from it, of every output in which EP and golden differ at all.
        ep: The same of the EP's result.
        is_golden_again: Whether it is the golden's own implementation, made to compute in another way: no
            second opinion, but it shows how certain the golden is.
        dwarfed: Of such a one, outputs in which the EP is off by far more than the golden is uncertain.
    """

    name: str
    golden: tuple[Apart, ...] = ()
    ep: tuple[Apart, ...] = ()
    is_golden_again: bool = False
    dwarfed: tuple[str, ...] = ()


class Hearing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was said of a golden and a result that differs from it: enough to decide again who is right.

    Attributes:
        verdict: What the cell would be by its golden alone.
        witnesses: By their rank, the most trustworthy first; those who have no answer are left out.
        adjudication: As the record's, of every output that can be adjudicated.
    """

    verdict: Verdict
    witnesses: tuple[Witness, ...] = ()
    adjudication: tuple[Adjudication, ...] = ()


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about one cell once it ended.

    Attributes:
        cell: The cell's id.
        provider: The first preferred provider of the target.
        axes: Every axis of the cell with its value.
        expected: True where the verdict is what the matrix expects (an ``expect`` entry, or else no failure).
        phase: Where the cell ended.
        cause: For ``unavailable`` a ``Cause``; for ``crash`` the signal or exit code, such as ``SIGSEGV``.
        reason: One line for people.
        again: As ``outputs``, of a second run of the first data set, or of the one furthest from the first of
            several; empty where all gave the same bits.
        golden: What judged the values: ``cpu`` or, where the CPU EP has no kernel, ``expected`` (the
            suite's data).
        timings_ms: ``create``, ``first_run``, ``teardown`` in milliseconds, measured inside the agent.
        started: UTC time in ISO 8601.
        attempt: 1, or 2 where a process killed from outside made a second attempt necessary.
        retries: Verdicts of further tries of a failed cell, in their order; they never change its verdict.
        effect: Whether options that should change what is computed did; null where none should, or where the
            cell cannot tell, because its outputs are exact.
        latency: How long its runs took, where the matrix asks for it and the verdict is a pass.
        scenario: What was seen in the cell's scenario, by name; the axes tell its name.
        process: What it ran in; null where nothing ran, or the process did not outlive the cell.
        artifacts: Folder of a failing cell below the run folder, relative, with forward slashes.
        content: What the model is made of; null where it cannot be read, or nothing was tried.
        model_digest: SHA-256 over the model as it came, its external data and its test data; empty where it
            cannot be read, or nothing was tried.
        no_spread: Why the noise of the model is not known although it was to judge; empty otherwise.
        adjudication: Whether golden or EP is nearer to a more precise answer, where they disagree.
        hearing: What witnesses say, where the result fails its golden, or a usual tolerance would fail it.
        repeats: What further runs and sessions gave, where the matrix asks for them.
    """

    schema: int
    cell: str
    suite: str
    model: str
    target: str
    provider: str
    verdict: Verdict
    family: Family
    expected: bool
    axes: dict[str, str] = {}
    phase: Phase | None = None
    cause: str = ""
    reason: str = ""
    placement: Placement | None = None
    outputs: tuple[OutputMetrics, ...] = ()
    again: tuple[OutputMetrics, ...] = ()
    golden: str = ""
    timings_ms: dict[str, float] = {}
    started: str = ""
    attempt: int = 0
    retries: tuple[Verdict, ...] = ()
    effect: OptionEffect | None = None
    latency: Latency | None = None
    scenario: Facts = {}
    process: ProcessState | None = None
    artifacts: str = ""
    content: ModelContent | None = None
    model_digest: str = ""
    no_spread: str = ""
    adjudication: tuple[Adjudication, ...] = ()
    hearing: Hearing | None = None
    repeats: Repeats | None = None

    @property
    def flaky(self) -> bool:
        """Whether a further try gave another verdict."""
        return any(verdict is not self.verdict for verdict in self.retries)

    @property
    def took_ms(self) -> float:
        """For how long its process was at it, failed or not; its phases where that is not known."""
        return (self.process.took_ms if self.process else 0.0) or sum(self.timings_ms.values())


class ShardInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which share of a plan a run is; it tells what is missing where another share does not come back.

    Attributes:
        index: From 1.
        count: Shares of the plan.
        plan: Digest of the whole plan.
        cells: Cells of the whole plan.
    """

    index: int
    count: int
    plan: str
    cells: int


class RunInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``run.json``: what was planned, by which matrix, in which environments.

    Attributes:
        plan: Digest over the sorted ids of the planned cells.
        cells: How many cells were planned.
        matrix: The matrix as it was read, defaults filled in.
        targets: Target name -> environment fingerprint, as the agent reported it.
        complete: True once every planned cell has its record.
        shard: Where the plan is a share of a larger one.
    """

    schema: int
    plan: str
    cells: int
    matrix: dict[str, object]
    targets: dict[str, dict[str, object]]
    complete: bool
    shard: ShardInfo | None = None


def encode_record(record: Record) -> bytes:
    """One JSON line without its newline."""
    return _ENCODER.encode(record)


def decode_record(line: bytes | str) -> Record:
    """Read one line of ``records.jsonl``.

    Raises:
        msgspec.ValidationError: The line is JSON but not a record of this schema.
        msgspec.DecodeError: The line is not JSON, for example because it is torn.
    """
    return _DECODER.decode(line)


def failing_outputs(record: Record) -> Iterator[OutputMetrics]:
    """The outputs in which at least one element is outside the tolerance."""
    return (output for output in record.outputs if output.mismatched)


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Record)
