"""A fault: what triage found out about failing cells of one cause. Public: one line of ``faults.jsonl``."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any, Literal

import msgspec

from harness.core.files.json_schema import json_schema_of
from harness.core.records.verdict import Phase, Verdict

_SCHEMA = 1

TRIAGE_FOLDER, FAULTS_FILE = "triage", "faults.jsonl"
"""Where triage writes faults below a run folder, unless another folder is given."""


class Signature(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a trial must show to be the same failure.

    Attributes:
        verdict: Its verdict.
        phase: Where it ended.
        cause: For a crash: the signal or exit code.
        message: For an error: its message without numbers, names and paths. For a wrong value: which run
            shows it, ``first run``, ``second run`` or ``other inputs``.
    """

    verdict: Verdict
    phase: Phase | None = None
    cause: str = ""
    message: str = ""


class Repetition(msgspec.Struct, frozen=True, kw_only=True):
    """How often the failure appears when its cell is repeated.

    Attributes:
        outcome: ``always``, ``sometimes``, ``never``; ``unknown`` if the infrastructure failed.
        trials: How often it was tried.
        failures: How often the failure appeared.
        repeats: Trials that a later step needs before it accepts that a failure is gone.
    """

    outcome: Literal["always", "sometimes", "never", "unknown"]
    trials: int
    failures: int
    repeats: int = 1


class GraphNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node of a model, as far as a drawing or a sentence needs it.

    Attributes:
        name: Its name; the name of its first output if it has none.
        op_type: Its operator type.
        domain: The operator's domain; empty for ONNX's own.
        inputs: Names of the tensors that it reads; empty for an input that the node omits.
        outputs: Names of the tensors that it writes.
        attributes: Name -> value as a short text.
        guilty: Whether the failure was located in it.
    """

    name: str
    op_type: str
    domain: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    attributes: dict[str, str] = {}
    guilty: bool = False


class GraphTensor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tensor of a model.

    Attributes:
        name: Its name.
        role: Its role in the graph.
        dtype: Its element type; empty if unknown.
        shape: Its shape as text, such as ``1x3x8x8``; empty if unknown or a scalar.
    """

    name: str
    role: Literal["input", "output", "initializer", "inner"]
    dtype: str = ""
    shape: str = ""


class ReducedModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The smallest model that still fails in the same way.

    Attributes:
        nodes: Its nodes in topological order.
        tensors: Its inputs, outputs and initializers, and inner tensors whose type is known.
        bytes: Size of ``model.onnx`` with its external data.
        nodes_before: Nodes of the model of the cell.
        bytes_before: Size of the model of the cell.
        opsets: Domain -> version.
        weights: How the weights were changed: ``kept``, ``random`` or ``single`` (one value in each).
        complete: Whether no step could make it smaller; false if time ran out first.
    """

    nodes: tuple[GraphNode, ...]
    tensors: tuple[GraphTensor, ...]
    bytes: int
    nodes_before: int
    bytes_before: int
    opsets: dict[str, int] = {}
    weights: Literal["kept", "random", "single"] = "kept"
    complete: bool = True


class Location(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where in the model the failure is.

    Attributes:
        nodes: Names of the nodes that hold it, in topological order; one if it is exact.
        op_types: Their operators.
        exact: Whether it is one node.
        unfinished: Whether time ran out before it was located: any of the nodes may hold it.
        alone: Whether the nodes fail alone, fed with golden tensors; null if that was not tried.
        cumulative: Whether the part of the model that ends with these nodes fails.
        onwards: Whether the rest of the model fails with golden tensors in place of the nodes' results; if
            so, there is another fault.
        fused: Nodes that must be compiled together for the failure to appear; empty if they also fail
            separately.
        fused_op_types: Their operators.
        decomposed: Composite operators (``RMSNormalization``) whose decomposition removes the failure.
        error_ratio: Error of the located nodes as a multiple of their rounding noise; null for a failure that
            is not about values.
    """

    nodes: tuple[str, ...]
    op_types: tuple[str, ...]
    exact: bool
    unfinished: bool = False
    alone: bool | None = None
    cumulative: bool | None = None
    onwards: bool | None = None
    fused: tuple[str, ...] = ()
    fused_op_types: tuple[str, ...] = ()
    decomposed: tuple[str, ...] = ()
    error_ratio: float | None = None


Varied = Literal[
    "accuracy",
    "attribute",
    "dtype",
    "graph_optimization",
    "opset",
    "optimizer",
    "option",
    "original",
    "precision",
    "runtime",
    "scenario",
    "shape",
    "target",
    "values",
]
"""What is varied, one at a time, to find out when a failure appears."""


class Condition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one change does to the failure of the reduced model.

    Attributes:
        kind: The kind of thing that was varied.
        name: Its name: an option's key, an attribute, an optimizer, an input; may be empty.
        value: The value that was tried.
        fails: Whether the failure is still there; null if it could not be judged.
        verdict: The verdict of the trial if the failure is gone.
    """

    kind: Varied
    name: str = ""
    value: str = ""
    fails: bool | None = None
    verdict: str = ""


class Frame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One frame of a native stack.

    Attributes:
        library: File name of the library, without its folder.
        function: Its symbol; empty if the library has none there.
        offset: Offset from the symbol or, without one, from the start of the library.
    """

    library: str
    function: str = ""
    offset: int = 0


class NativeCrash(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a process died.

    Attributes:
        signal: Such as ``SIGSEGV``.
        frames: Innermost first.
        culprit: Library of the innermost frame outside of the C library, Python and the harness.
        address: Faulting address as hexadecimal text; empty if the signal has none.
    """

    signal: str
    frames: tuple[Frame, ...] = ()
    culprit: str = ""
    address: str = ""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The least use of a session with which the failure appears: with less, it does not.

    Attributes:
        threads: Threads that run the session at once; null if one thread runs it.
        runs: Runs of a session; of each thread, if there are several.
        sessions: Sessions, one after the other; null if one is enough.
    """

    threads: int | None = None
    runs: int | None = None
    sessions: int | None = None

    @property
    def words(self) -> str:
        """Describe the use, such as ``in 2 threads at once, with 3 runs each``.

        Empty for a single plain run.
        """
        if self.threads is not None:
            threads = f"in {self.threads} threads at once" if self.threads > 1 else "in a thread of its own"
            return f"{threads}, with {self.runs} runs each" if (self.runs or 1) > 1 else threads
        runs = f"from run {self.runs} of a session on" if self.runs is not None else ""
        sessions = f"with {self.sessions} sessions one after the other" if self.sessions is not None else ""
        return ", ".join(filter(None, (runs, sessions)))


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cause of failing cells.

    Attributes:
        id: ``F`` and ten hexadecimal digits; equal for equal reduced graphs, verdicts and signatures.
        sentence: What is wrong, in one plain sentence.
        signature: What every trial has to show.
        target: The target of the representative.
        provider: Its first provider.
        representative: Id of the cell that was triaged.
        cells: Ids of all cells that the fault explains, the representative first.
        confirmation: How often the failure appears.
        inconclusive: Why nothing more is known; empty if there is a reduced model.
        location: Where in the model the failure is.
        reduced: The smallest model.
        conditions: What was varied, and the effect on the failure.
        crash: Where the process died, if it did.
        preceding: Cells that must run before in the same process; empty if the model fails alone.
        preceding_reduced: The smallest model of each of these with which the failure still appears.
        scenario: The scenario that the failure needs; empty for a plain session.
        usage: The least use of a session with which it appears; null if creating a session and running it
            once is enough.
        bundle: Folder of the bundle, relative to the triage folder; empty if there is none.
        trials: Number of all trials.
        seconds: Time that the trials took.
        onnxruntime: Version of the target's runtime.
        fed: The inputs of the representative, as in its record.
        unconfirmed: Why float64 does not confirm that wrong values are the EP's; empty where it does, and for
            other failures.
        library: Version of the EP's plugin, with its library if a path gives it; ``of onnxruntime 1.31.1`` if
            the EP is part of that build.
    """

    schema: int = _SCHEMA
    id: str
    sentence: str
    signature: Signature
    target: str
    provider: str
    representative: str
    cells: tuple[str, ...]
    confirmation: Repetition
    inconclusive: str = ""
    location: Location | None = None
    reduced: ReducedModel | None = None
    conditions: tuple[Condition, ...] = ()
    crash: NativeCrash | None = None
    preceding: tuple[str, ...] = ()
    preceding_reduced: tuple[ReducedModel, ...] = ()
    scenario: str = ""
    usage: Usage | None = None
    bundle: str = ""
    trials: int = 0
    seconds: float = 0.0
    onnxruntime: str = ""
    library: str = ""
    unconfirmed: str = ""
    fed: str = ""


def encode_fault(fault: Fault) -> bytes:
    """Return one JSON line without its newline."""
    return msgspec.json.encode(fault)


def decode_fault(line: bytes | str) -> Fault:
    """Read one line of ``faults.jsonl``.

    Raises:
        msgspec.ValidationError: The line is JSON but not a fault of this schema.
        msgspec.DecodeError: The line is not JSON.
    """
    return msgspec.json.decode(line, type=Fault)


def decode_faults(content: bytes) -> Iterator[tuple[int, Fault | str]]:
    """Read ``faults.jsonl``: yield the number of each line, from 1, with its fault or with why it has none.

    A damaged line loses only its own fault. Blank lines are left out.
    """
    for number, line in enumerate(BytesIO(content), start=1):
        if not line.strip():
            continue
        try:
            fault = decode_fault(line)
        except msgspec.ValidationError as error:
            yield number, f"not a fault: {error}"
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield number, f"not JSON: {error}"
        else:
            other = f"schema {fault.schema}, but this version reads schema {_SCHEMA}"
            yield number, fault if fault.schema == _SCHEMA else other


def fault_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line: docs/reference/fault.schema.json."""
    return json_schema_of(Fault, "a line of faults.jsonl")
