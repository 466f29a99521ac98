"""The record of one cell: the public JSON contract, one line of ``records.jsonl``."""

from typing import Literal

import msgspec

from harness.core.agreement import Agreement
from harness.core.ended import Ended, OwnCpu
from harness.core.fixed_sizes import FixedSizes
from harness.core.generated import Generation
from harness.core.latency import Latency
from harness.core.manner import Manner
from harness.core.other_check import OtherCheck
from harness.core.output_metrics import OutputMetrics
from harness.core.policy_terms import PolicyTerm
from harness.core.reference import Adjudication, ReferenceCheck
from harness.core.scenario import Observations
from harness.core.verdict import Family, Phase, Verdict, lacks_target
from harness.core.work import Unchecked

SCHEMA = 1


class Placement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which provider each node was assigned to.

    Attributes:
        ep_nodes: Nodes on the target's provider, or on any non-CPU provider of its chain.
        cpu_nodes: Nodes on the CPU EP. For a target that *is* the CPU EP, these count as ``ep_nodes``.
        ep_ops: Operator type -> count, on the EP.
        cpu_ops: Operator type -> count, left to the CPU EP.
        partitions: Subgraphs that the EP took (a kernel-based EP has one for each node).
        source: ``assignment`` (onnxruntime's own record at partitioning), ``profile`` (the nodes that ran),
            ``log`` (the runtime's messages), or ``unknown``: then all counts are 0.
        providers: Provider -> nodes, in the order of the chain, the CPU EP last; empty where the chain has
            no second provider besides the CPU EP.
        chain_ops: Provider -> operator type -> count, for the providers other than the CPU EP.
        shape_ops: Those of ``cpu_ops`` that only work on shapes in this model: they stay on the CPU EP by
            design.
        ep_share: Share of the compute on the EP, from 0 to 1, without ``shape_ops``; null where all of it is
            on one side, or nothing is known.
        share_of: The unit of the share: ``work`` (multiply-adds, and bytes that are moved) or ``nodes``.
    """

    ep_nodes: int
    cpu_nodes: int
    ep_ops: dict[str, int]
    cpu_ops: dict[str, int]
    partitions: int
    source: Literal["assignment", "profile", "log", "unknown"]
    providers: dict[str, int] = {}
    chain_ops: dict[str, dict[str, int]] = {}
    shape_ops: tuple[str, ...] = ()
    ep_share: float | None = None
    share_of: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether nothing shows which provider ran the nodes."""
        return self.source == "unknown"


class ProcessState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The process of a cell, after the cell; over many cells it shows a leak.

    Attributes:
        pid: Its id, on the machine of the harness.
        session: Number of the session in the process, from 1.
        took_ms: Time of the whole cell in this process, whatever its result: sessions, all runs, reading and
            writing of tensors.
        processor_ms: Processor time of all threads of the process meanwhile.
        rss_mib: Its resident memory in MiB, after the session was released; null if the system does not
            report it.
        threads: Its threads at that time; null as well if the system does not report it.
        descriptors: Its open descriptors, on Windows handles, likewise.
        manners: Changes that the cell made to the process and that its user does not expect.
    """

    pid: int
    session: int
    took_ms: float = 0.0
    processor_ms: float = 0.0
    rss_mib: float | None = None
    threads: int | None = None
    descriptors: int | None = None
    manners: tuple[Manner, ...] = ()


class OptionEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Whether options that should change the computation did so in one cell.

    Attributes:
        options: Keys of such options, and the precision mode as ``ep:<name>``; all were left out together.
        seen: False if the outputs are bit-identical without them.
    """

    options: tuple[str, ...]
    seen: bool


class OtherDraw(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A second try of a failing cell with other generated inputs.

    Attributes:
        verdict: Its verdict with these inputs.
        dimensions: Symbolic dimension -> its size, as in ``GeneratedInputs``.
    """

    verdict: Verdict
    dimensions: dict[str, int] = {}


class GeneratedInputs(msgspec.Struct, frozen=True, kw_only=True):
    """How the inputs of a model without test data were generated.

    Attributes:
        dimensions: Symbolic dimension -> its size; ``axis N`` where it has no name.
        sizes: How the sizes were chosen: ``distinct`` (those that the graph needs, else different primes),
            ``single`` (the same with a batch of 1), or one size for all.
        values: The values of unrestricted inputs: ``plain``; or ``positive``, ``wide`` or ``small`` where the
            model does not run with plain ones or its golden is weak.
        seed: Seed of the values.
    """

    dimensions: dict[str, int] = {}
    sizes: str = "distinct"
    values: str = "plain"
    seed: int = 0


class ModelContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The operators and inputs of a model.

    Attributes:
        opsets: Domain -> version that the model imports; ONNX's own domain is ``ai.onnx``.
        ops: Operator type -> nodes before any optimization, those in subgraphs and local functions included.
        types: Element types of the inputs that are fed, sorted.
        ranks: Ranks of these inputs in the first data set, ascending.
        generated: How its inputs were generated; null if it has test data.
    """

    opsets: dict[str, int]
    ops: dict[str, int]
    types: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    generated: GeneratedInputs | None = None


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """The results of repeated runs of a cell.

    Attributes:
        runs: Runs in each session, the first one included.
        sessions: Sessions, one after the other.
        distinct: Number of different results, bit for bit, over all sessions.
        max_abs: Largest ``|out - first|`` of any element of any run; null where it cannot be measured.
        differing: Runs whose bits differ from the first run's; null if the agent does not count them.
        bit_equal: Whether the matrix demands equal bits.
    """

    runs: int
    sessions: int
    distinct: int
    max_abs: float | None = None
    bit_equal: bool = False
    differing: int | None = None


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """A further try of a failed cell: the place, and the verdict there."""

    place: str
    verdict: Verdict


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of one cell.

    Attributes:
        cell: The cell's id.
        provider: The first preferred provider of the target.
        fed: The inputs of the model, in words: ``generated 2x3x64x96, seed 0``, or ``your data:
            test_data_set_0``; empty if nothing was tried, and in records of older versions.
        axes: Every axis of the cell with its value.
        expected: Whether the matrix expects the verdict (by an ``expect`` entry; without one it expects no
            failure).
        phase: The phase in which the cell ended.
        cause: For ``unavailable`` a ``Cause``; for ``crash`` the signal or exit code, such as ``SIGSEGV``;
            for ``fallback`` ``too_little`` where the EP computed less than a tenth of the work.
        reason: One line for people.
        other: As ``outputs``, for a run with other inputs between two runs of the first data set; only
            outputs whose bits differ from the golden.
        other_check: Facts for judging them; null if all bits are equal, and in records of older versions.
        again: As ``outputs``, for a second run of the first data set; of several runs, for the one furthest
            from the first; empty if all had the same bits.
        golden: The source of the golden: ``cpu`` or, where the CPU EP has no kernel, ``expected`` (the
            suite's data); ``profile`` for a case of a profile.
        golden_digest: Digest of the golden's values; for a converted model the digest includes the CPU EP's
            own answer.
        policy: The settings that judged the cell, by their dotted names in ``harness.core.policy.Policy``,
            such as ``limits.rms``; empty if the cell did not run to its end, or an older version judged it.
        timings_ms: ``create``, ``first_run``, ``teardown`` in milliseconds, measured inside the agent.
        started: UTC time in ISO 8601.
        attempt: 1, or more if a process killed from outside made further attempts necessary.
        place: The place of the target that ran it; empty if the target has no places.
        elsewhere: Further tries of a failed cell at other places, in order; another place comes first.
        retries: Verdicts of further tries of a failed cell, in order; they never change its verdict.
        other_draws: The verdicts of a failing cell with other generated inputs: other sizes where the model
            leaves them open, and other numbers; empty if there was no such try.
        beyond: Which windows of the model are larger than their data, if generated inputs are the reason of a
            failure; empty if none is.
        effect: Whether options that should change the computation did so; null if there are none, or if the
            outputs are exact and cannot show it.
        latency: The latency of its runs, if the matrix asks for it and the verdict is a pass.
        scenario: Observations in the cell's scenario, by name; the axes have its name.
        generation: Further observations of the scenario ``generate``; null in any other scenario.
        process: Its process; null if nothing ran, or the process did not outlive the cell.
        artifacts: Folder of a failing cell below the run folder, relative, with forward slashes.
        content: The content of the model; null if it cannot be read, or nothing was tried.
        model_digest: SHA-256 over the unconverted model, its external data and its test data; empty if it
            cannot be read, or nothing was tried.
        no_spread: Why the model's noise is unknown although it was needed; empty otherwise.
        adjudication: Whether golden or EP is nearer to a more precise answer, where they disagree.
        reference_check: Comparison with references, if the result fails against its golden or would fail a
            usual tolerance.
        repeats: How often the first data set was run, and the results; null if nothing ran, or if the
            scenario has its own runs.
        unchecked: Checks that were left out, with the reason: the amount of work, a limit of the matrix, or
            the agent.
        fixed: The placement with fixed sizes, where a symbolic dimension keeps nodes off the EP; null where
            none does, or where it was not tried.
        weak_golden: Why the golden cannot tell a right answer from a wrong one; empty if it can.
        ended: How the cell ended; null if it ran to its end.
        own_cpu: The result of the CPU EP of the target's own runtime; null if it was not asked.
        precision: The computing precision that decides the default tolerance, such as ``float32``.
        own_precision: The precision of the model itself; empty in records of releases that did not write it.
        finest: The finest precision of the model's values, whose rounding is the noise, where ``precision``
            is coarser; else empty.
        delivers: Coarser precisions that the EP may compute in by its own default; empty if the matrix asks
            for a precision.
        remedy: How to make the EP compute at the model's own precision, in words; empty if unknown, or if the
            EP does so already.
        converted: Whether the model was converted to that precision.
        no_golden: Why there is no answer to compare with; empty if there is one.
        dispute: Why the golden is in doubt, whatever the EP returns; empty if it is not.
        undefined: Output -> why ONNX leaves its values undefined for this input.
        providers_changed: The session's providers before and after the run, if they differ.
        teardown: How the process died or hung in teardown, after the result, or why it was then replaced.
        answered: The questions that were asked before the verdict: see ``harness.core.missing.Need``.
        approximate: The right output whose error is larger than its model's rounding, the EP's document that
            allows the error, and the size of the error; empty if there is none.
        unconfirmed: Why float64 has not confirmed that values are wrong; empty if it has, or if no
            confirmation is needed.
        agreement: How many answers of the model's task equal the golden's; empty if no task is known.
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
    fed: str = ""
    phase: Phase | None = None
    cause: str = ""
    reason: str = ""
    placement: Placement | None = None
    outputs: tuple[OutputMetrics, ...] = ()
    again: tuple[OutputMetrics, ...] = ()
    other: tuple[OutputMetrics, ...] = ()
    other_check: OtherCheck | None = None
    golden: str = ""
    golden_digest: str = ""
    policy: dict[str, PolicyTerm] = {}
    timings_ms: dict[str, float] = {}
    started: str = ""
    attempt: int = 0
    place: str = ""
    elsewhere: tuple[Elsewhere, ...] = ()
    retries: tuple[Verdict, ...] = ()
    other_draws: tuple[OtherDraw, ...] = ()
    beyond: str = ""
    effect: OptionEffect | None = None
    latency: Latency | None = None
    scenario: Observations = {}
    generation: Generation | None = None
    process: ProcessState | None = None
    artifacts: str = ""
    content: ModelContent | None = None
    model_digest: str = ""
    no_spread: str = ""
    adjudication: tuple[Adjudication, ...] = ()
    reference_check: ReferenceCheck | None = None
    repeats: Repeats | None = None
    ended: Ended | None = None
    own_cpu: OwnCpu | None = None
    precision: str = "float32"
    converted: bool = False
    own_precision: str = ""
    finest: str = ""
    delivers: tuple[str, ...] = ()
    remedy: str = ""
    no_golden: str = ""
    dispute: str = ""
    undefined: dict[str, str] = {}
    providers_changed: str = ""
    teardown: str = ""
    answered: tuple[str, ...] = ()
    weak_golden: str = ""
    approximate: str = ""
    unconfirmed: str = ""
    agreement: tuple[Agreement, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    fixed: FixedSizes | None = None

    @property
    def manners(self) -> tuple[Manner, ...]:
        """Unexpected changes that the cell made to its process; a mark beside the verdict."""
        return () if self.process is None else self.process.manners

    @property
    def rests_on_weak_golden(self) -> bool:
        """Whether the EP's answer passes only against a weak golden."""
        return bool(self.weak_golden) and self.verdict.family is Family.PASSED

    @property
    def lacks_target(self) -> bool:
        """Whether its target cannot be used."""
        return lacks_target(self.verdict, self.phase)

    @property
    def flaky(self) -> bool:
        """Whether a further try had another verdict."""
        return any(verdict is not self.verdict for verdict in self.retries)

    @property
    def fails_here_alone(self) -> bool:
        """Whether the cell fails at its place, each time, and not at another one: the machine, not the EP."""
        here = [each.verdict.family for each in self.elsewhere if each.place == self.place]
        others = [each.verdict.family for each in self.elsewhere if each.place != self.place]
        return (
            Family.FAILED in here and bool(others) and all(family is not Family.FAILED for family in others)
        )

    @property
    def fails_with_these_alone(self) -> bool:
        """Whether the cell fails with its generated inputs but with no other inputs that were tried."""
        tried = [one.verdict.family for one in self.other_draws]
        return self.family is Family.FAILED and bool(tried) and Family.FAILED not in tried

    @property
    def took_ms(self) -> float:
        """The time that its process spent on the cell, failed or not; the sum of its phases if unknown."""
        return (self.process.took_ms if self.process else 0.0) or sum(self.timings_ms.values())


def encode_record(record: Record) -> bytes:
    """Return one JSON line without its newline."""
    return _ENCODER.encode(record)


def decode_record(line: bytes | str) -> Record:
    """Read one line of ``records.jsonl``.

    Raises:
        msgspec.ValidationError: The line is JSON but not a record of this schema.
        msgspec.DecodeError: The line is not JSON, for example because it is torn.
    """
    try:
        return _DECODER.decode(line)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Record)
