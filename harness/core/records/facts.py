"""The facts of one cell, before it is judged; a record publishes all of them."""

import functools
import operator
from typing import Annotated, Any, Literal

import msgspec

from harness.core.agreement.agreement import Agreement
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.cell_end import CellEnd, OwnCpu
from harness.core.records.device_proof import DeviceProof
from harness.core.records.fixed_sizes import FixedSizes
from harness.core.records.generation_figures import GenerationFigures
from harness.core.records.reference_answer import ReferenceCheck
from harness.core.records.run_work import Unchecked
from harness.core.records.scenario import Observations
from harness.core.records.shape_times import MOST_SHAPES, ShapeTime
from harness.core.records.verdict import Phase
from harness.core.timing.latency import Latency
from harness.core.timing.node_times import NodeTimes

CPU_PROVIDER = "CPUExecutionProvider"

SIZED_BY_CHANCE = "draws numbers, on which sizes of outputs depend; no two runtimes agree"
"""End of a dispute's reason: two runs of the CPU EP give outputs of different shapes."""

UNREPEATABLE = "the CPU EP itself gives another result each time"
"""Reason of a dispute: another run of the CPU EP gives another golden."""

MOST_ITEMS = 1 << 16
"""Entries of a list or a table that an agent sends: outputs of a model, operator types. Models have some
thousands."""

Text = Annotated[str, msgspec.Meta(max_length=MOST_ITEMS)]
"""Text for people. Agents send 32768 characters at most, twice ``harness.agent.safe_text.OUTPUT_LIMIT``."""

Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
"""Milliseconds or MiB: not negative, neither NaN nor infinite."""

Timings = Annotated[dict[Text, Amount], msgspec.Meta(max_length=MOST_ITEMS)]


class Placement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which provider each node was assigned to.

    Attributes:
        ep_nodes: Nodes on the target's provider, or on any non-CPU provider of its chain.
        cpu_nodes: Nodes on the CPU EP. For a target that *is* the CPU EP these count as ``ep_nodes``.
        ep_ops: Operator type -> count, on the EP.
        cpu_ops: Operator type -> count, left to the CPU EP.
        partitions: Subgraphs that the EP took (a kernel-based EP has one for each node).
        source: ``assignment`` (onnxruntime's own record at partitioning), ``incomplete`` (that record before
            1.27, which may lack float16 nodes on the CPU EP, with no profile to show them), ``profile`` (the
            nodes that ran), ``log`` (the runtime's messages), or ``unknown``: then all counts are 0.
        providers: Provider -> nodes, in the order of the chain, the CPU EP last; empty where the chain has
            no second provider besides the CPU EP.
        chain_ops: Provider -> operator type -> count, of those providers but the CPU EP.
        shape_ops: Those of ``cpu_ops`` that only work on shapes here: they stay on the CPU EP by design.
        ep_share: Part of the compute on the EP, from 0 to 1, without ``shape_ops``; null where all of it is
            on one side, or nothing is known.
        share_of: What was counted: ``work`` (multiply-adds, and bytes that are moved) or ``nodes``.
    """

    ep_nodes: int
    cpu_nodes: int
    ep_ops: dict[str, int]
    cpu_ops: dict[str, int]
    partitions: int
    source: Literal["assignment", "incomplete", "profile", "log", "unknown"]
    providers: dict[str, int] = {}
    chain_ops: dict[str, dict[str, int]] = {}
    shape_ops: tuple[str, ...] = ()
    ep_share: float | None = None
    share_of: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether nothing shows which provider ran the nodes."""
        return self.source == "unknown"


class OptionEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Whether options that should change the computation did so in one cell.

    Attributes:
        options: Keys of such options, and the precision mode as ``ep:<name>``; all were left out together.
        seen: False if the outputs are bit-identical without them.
    """

    options: tuple[str, ...]
    seen: bool


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """The results of repeated runs of a cell.

    Attributes:
        runs: Runs in each session, the first one included.
        sessions: Sessions, one after the other.
        distinct: Different results, bit for bit, over all of them.
        max_abs: Largest ``|out - first|`` of any element of any run; null where it cannot be measured.
        differing: Runs that gave other bits than the first; null if the agent does not count them.
        bit_equal: Whether the matrix demands equal bits.
    """

    runs: int
    sessions: int
    distinct: int
    max_abs: float | None = None
    bit_equal: bool = False
    differing: int | None = None


class OtherCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What judges a result for other inputs; fields as the record has them for the first inputs.

    Attributes:
        unchecked: Why outputs, or all of them, were not judged for other inputs; empty if all were.
        error: What the EP raised for other inputs, which the CPU EP computes; empty if nothing.
        dispute: Why the golden for other inputs is in doubt whatever the EP gives.
        undefined: Output -> why ONNX leaves its values undefined for other inputs.
        no_spread: Why the noise for other inputs is not known although it was needed.
        reference_check: Comparison with references for other inputs.
        answered: The questions that were asked about other inputs: see
            ``harness.core.verdicts.missing.Need``.
    """

    unchecked: str = ""
    error: str = ""
    dispute: str = ""
    undefined: dict[str, str] = {}
    no_spread: str = ""
    reference_check: ReferenceCheck | None = None
    answered: tuple[str, ...] = ()


class ToldFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts that an agent tells, and that reach the record as they are: a part of its message, too.

    An agent may send anything, so their types have limits. A fact needs a default: agents of before do not
    tell it.

    Attributes:
        timings_ms: ``create``, ``first_run``, ``teardown`` in milliseconds, measured inside the agent.
        device: Whether the session uses the device that it was made for; null if nothing was asked: before
            onnxruntime 1.24, in JavaScript, on the CPU EP, and by agents of before.
        node_times: The time of its nodes, if the matrix asks for it; a record has it as ``latency``.
        shape_times: The time of each data set, in the order of the fact ``shapes``, if the matrix has a grid.
    """

    timings_ms: Timings = {}
    device: DeviceProof | None = None
    node_times: NodeTimes | None = None
    shape_times: Annotated[tuple[ShapeTime, ...], msgspec.Meta(max_length=MOST_SHAPES + 2)] = ()


class RunFacts(ToldFacts, frozen=True, kw_only=True, omit_defaults=True):
    """The facts that a run has by itself, without a golden: a part of its outcome, too.

    Attributes:
        placement: Which provider each node was assigned to; null if nothing ran.
        providers_changed: The session's providers before and after the run if they differ.
        teardown: How the process died or hung in teardown, after the result, or why it was replaced then.
        latency: The latency of its runs, if the matrix asks for it; a record has it if the verdict is a pass.
        scenario: Observations in the cell's scenario, by name; the axes have its name.
        repeats: How often the first data set was run, and what that gave; null if nothing ran, or if the
            scenario has runs of its own.
    """

    placement: Placement | None = None
    providers_changed: str = ""
    teardown: str = ""
    latency: Latency | None = None
    scenario: Observations = {}
    repeats: Repeats | None = None


class Facts(RunFacts, frozen=True, kw_only=True, omit_defaults=True):
    """The facts of one cell. A record is its facts, with the names of the cell and the decision.

    Attributes:
        provider: The first preferred provider of the target.
        phase: The phase in which the cell ended.
        cause: For ``unavailable`` a ``Cause``; for ``crash`` the signal or exit code, such as ``SIGSEGV``;
            for ``fallback`` ``too_little`` where the EP computed less than a tenth of the work; for
            ``pass_partial`` ``assignment incomplete`` where nothing shows that the CPU EP computed none.
        ended: How the cell ended; null if it ran to its end.
        own_cpu: The result of the CPU EP of the target's own runtime; null if it was not asked.
        precision: The computing precision that decides the default tolerance, such as ``float32``.
        converted: Whether the model was converted to that precision.
        own_precision: The precision of the model itself; empty in records of releases that did not tell it.
        finest: The finest precision of the model's values, whose rounding is the noise, where ``precision``
            is coarser; else empty.
        delivers: Coarser precisions that the EP may compute in by its own default; empty if the matrix asks
            for a precision.
        remedy: What makes the EP compute at the model's own precision, in words; empty if nothing is known,
            or it does so.
        outputs: Metrics of each output.
        again: As ``outputs``, of a second run of the first data set, or of the one furthest from the first of
            several; empty if all gave the same bits.
        other: As ``outputs``, of a run with other inputs between two of the first data set; those whose bits
            differ from the golden.
        other_check: What judges them; null if all bits are equal, and in records of before.
        golden: The source of the golden: ``cpu`` or, where the CPU EP has no kernel, ``expected`` (the
            suite's data); ``profile`` for a case of a profile.
        golden_digest: Digest of the golden's values; for a converted model also of the CPU EP's own answer.
        no_golden: Why there is no answer to compare with; empty if there is one.
        dispute: Why the golden is in doubt whatever the EP gives; empty if it is not.
        drawn: Outputs into which random numbers enter, so that nothing judges their values; empty if all are
            such.
        weak_golden: Why the golden cannot tell this answer from a wrong one; empty if it can.
        undefined: Output -> why ONNX leaves its values undefined for this input.
        beyond: Which windows of the model are larger than their data, with generated inputs that are at fault
            for a failure; empty if none is.
        generation: What the scenario ``generate`` has besides; null in any other scenario.
        no_spread: Why the noise of the model is not known although it was needed; empty otherwise.
        reference_check: Comparison with references, if the result fails its golden or would fail a usual
            tolerance.
        effect: Whether options that should change the computation did; null if none should, or if the outputs
            are exact and so cannot show it.
        answered: The questions that were asked before the verdict: see
            ``harness.core.verdicts.missing.Need``.
        agreement: How many answers of the model's task are the golden's; empty if no task is known.
        unchecked: Checks that were left out, with the reason: work, a limit of the matrix, the agent.
        fixed: The placement with fixed sizes, where a symbolic dimension keeps nodes off the EP; null where
            none does, or that was not tried.
    """

    provider: str = ""
    phase: Phase | None = None
    cause: str = ""
    ended: CellEnd | None = None
    own_cpu: OwnCpu | None = None
    precision: str = "float32"
    converted: bool = False
    own_precision: str = ""
    finest: str = ""
    delivers: tuple[str, ...] = ()
    remedy: str = ""
    outputs: tuple[OutputMetrics, ...] = ()
    again: tuple[OutputMetrics, ...] = ()
    other: tuple[OutputMetrics, ...] = ()
    other_check: OtherCheck | None = None
    golden: str = ""
    golden_digest: str = ""
    no_golden: str = ""
    dispute: str = ""
    drawn: tuple[str, ...] = ()
    weak_golden: str = ""
    undefined: dict[str, str] = {}
    beyond: str = ""
    generation: GenerationFigures | None = None
    no_spread: str = ""
    reference_check: ReferenceCheck | None = None
    effect: OptionEffect | None = None
    answered: tuple[str, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    fixed: FixedSizes | None = None

    @property
    def is_cpu(self) -> bool:
        """Whether the CPU EP itself is under test."""
        return self.provider == CPU_PROVIDER


COMPUTES_IN = ("precision", "converted", "own_precision", "finest", "delivers", "remedy")
"""The facts on what a cell computes in, which ``harness.core.comparison.policy.Policy`` has, too."""


def shared(value: msgspec.Struct, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the fields that a struct has of a struct it extends: ``Record(**shared(facts, Facts), ...)``."""
    return dict(zip(kind.__struct_fields__, _all_fields(kind)(value), strict=True))


@functools.cache
def _all_fields(kind: type[msgspec.Struct]) -> "operator.attrgetter[tuple[Any, ...]]":
    return operator.attrgetter(*kind.__struct_fields__)


def facts_for_other_inputs(facts: Facts) -> Facts:
    """Return the facts of the run with other inputs alone, in the form of those of the first inputs."""
    check = facts.other_check or OtherCheck()
    return Facts(
        **{name: getattr(facts, name) for name in COMPUTES_IN},
        provider=facts.provider,
        phase=facts.phase,
        placement=facts.placement,
        outputs=facts.other,
        golden=facts.golden,
        dispute=check.dispute,
        undefined=check.undefined,
        no_spread=check.no_spread,
        reference_check=check.reference_check,
        answered=check.answered,
    )
