"""The record of one cell: the public JSON contract, one line of ``records.jsonl``."""

import functools
from typing import Any

import msgspec

from harness.core.comparison.policy_terms import PolicyTerm
from harness.core.records.facts import Facts
from harness.core.records.manner import Manner
from harness.core.records.reference_answer import Adjudication
from harness.core.records.verdict import Family, Verdict, lacks_target

SCHEMA = 1

_ORDER = [
    "schema",
    "cell",
    "suite",
    "model",
    "target",
    "provider",
    "verdict",
    "family",
    "expected",
    "axes",
    "fed",
    "phase",
    "cause",
    "reason",
    "placement",
    "outputs",
    "again",
    "other",
    "other_check",
    "golden",
    "golden_digest",
    "policy",
    "timings_ms",
    "started",
    "attempt",
    "place",
    "elsewhere",
    "retries",
    "other_draws",
    "beyond",
    "effect",
    "latency",
    "node_times",
    "shape_times",
    "scenario",
    "generation",
    "process",
    "artifacts",
    "content",
    "model_digest",
    "no_spread",
    "adjudication",
    "reference_check",
    "repeats",
    "ended",
    "own_cpu",
    "precision",
    "converted",
    "own_precision",
    "finest",
    "delivers",
    "remedy",
    "no_golden",
    "dispute",
    "undefined",
    "providers_changed",
    "teardown",
    "answered",
    "weak_golden",
    "approximate",
    "unconfirmed",
    "agreement",
    "unchecked",
    "fixed",
]
"""The keys of a line in the order of releases before; those of new fields follow."""


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
        ranks: Numbers of dimensions of these inputs in the first data set, ascending.
        generated: How its inputs were made; null if it has test data.
        default_noise: Operators that the book of operators does not have, such as a vendor's: they are judged
            as if they rounded once.
    """

    opsets: dict[str, int]
    ops: dict[str, int]
    types: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    generated: GeneratedInputs | None = None
    default_noise: tuple[str, ...] = ()


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """A further try of a failed cell: the place, and the verdict there."""

    place: str
    verdict: Verdict


class Decision(Facts, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict of a cell, beside its facts under the policy.

    Of the facts ``outputs``, ``again`` and ``other`` are as the policy judges them, ``cause`` is one word for
    why where the verdict alone does not tell, and ``latency`` and the speed of generated text are there if
    the verdict is a pass.

    Attributes:
        reason: One line for people; may be empty for a pass.
        policy: The settings that judged it, by their dotted names in
            ``harness.core.comparison.policy.Policy``, such as ``limits.rms``; empty if it did not run to its
            end, or an older version judged it.
        adjudication: Whether golden or EP is nearer to a more precise answer, where they disagree.
        approximate: Which right output has a larger error than the rounding of its model, what the EP
            documents that allows it, and how large it is; empty if none has.
        unconfirmed: Why float64 has not confirmed that values are wrong; empty if it has, or need not.
    """

    verdict: Verdict
    reason: str = ""
    policy: dict[str, PolicyTerm] = msgspec.field(default_factory=dict)
    adjudication: tuple[Adjudication, ...] = ()
    approximate: str = ""
    unconfirmed: str = ""


class Record(Decision, frozen=True, kw_only=True, omit_defaults=True):
    """The record of one cell: its facts and the decision, and what the cell and the attempt are.

    Attributes:
        cell: The cell's id.
        provider: The first preferred provider of the target.
        fed: The inputs of the model, in words: ``generated 2x3x64x96, seed 0``, or ``your data:
            test_data_set_0``; empty if nothing was tried, and in records of older versions.
        axes: Every axis of the cell with its value.
        expected: Whether the matrix expects the verdict (an ``expect`` entry, or else no failure).
        started: UTC time in ISO 8601.
        attempt: 1, or more if a process killed from outside made further attempts necessary.
        place: The place of the target that ran it; empty if the target has no places.
        elsewhere: Further tries of a failed cell at other places, in order; another place comes first.
        retries: Verdicts of further tries of a failed cell, in order; they never change its verdict.
        other_draws: The verdicts of a failing cell with other generated inputs: other sizes where the model
            leaves them open, and other numbers; empty if it was not tried with others.
        process: Its process; null if nothing ran, or the process did not outlive the cell.
        artifacts: Folder of a failing cell below the run folder, relative, with forward slashes.
        content: The content of the model; null if it cannot be read, or nothing was tried.
        model_digest: SHA-256 over the unconverted model, its external data and its test data; empty if it
            cannot be read, or nothing was tried.
    """

    schema: int
    cell: str
    suite: str
    model: str
    target: str
    provider: str  # which a record must have
    family: Family
    expected: bool
    axes: dict[str, str] = msgspec.field(default_factory=dict)
    fed: str = ""
    started: str = ""
    attempt: int = 0
    place: str = ""
    elsewhere: tuple[Elsewhere, ...] = ()
    retries: tuple[Verdict, ...] = ()
    other_draws: tuple[OtherDraw, ...] = ()
    process: ProcessState | None = None
    artifacts: str = ""
    content: ModelContent | None = None
    model_digest: str = ""

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
    """Return one JSON line without its newline, its keys in the order of the first release."""
    return _ENCODER.encode(_Line(*map(functools.partial(getattr, record), _Line.__struct_fields__)))


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


_FIELDS = {each.name: each for each in msgspec.structs.fields(Record)}
_Line = msgspec.defstruct(
    "_Line",
    [
        (name, Any, _FIELDS[name].default)
        if _FIELDS[name].default_factory is msgspec.NODEFAULT
        else (name, Any, msgspec.field(default_factory=_FIELDS[name].default_factory))
        for name in dict.fromkeys((*_ORDER, *_FIELDS))
    ],
    omit_defaults=True,
)
"""A record with its fields in the order of the file: that of ``Record`` follows what extends what."""

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Record)
