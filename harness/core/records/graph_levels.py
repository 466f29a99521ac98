"""Graph optimization of one model, level by level: the values that the page and the table show."""

from typing import Literal

import msgspec

from harness.core.records.verdict import Verdict

OperatorOrigin = Literal["standard", "onnxruntime", "custom"]
GraphChangeKind = Literal["fused", "replaced", "folded", "merged", "removed", "added"]

GRAPH_CHANGE_KINDS: dict[GraphChangeKind, str] = {
    "fused": "several nodes became fewer",
    "replaced": "other nodes stand in their place",
    "folded": "their result is a constant now",
    "merged": "they computed what another node computes",
    "removed": "they are gone, because nothing uses their result",
    "added": "they are new",
}
"""Kind of change -> meaning."""

ORIGINS: dict[OperatorOrigin, str] = {
    "standard": "ONNX's own operators",
    "onnxruntime": "onnxruntime's own operators",
    "custom": "operators of others",
}
"""Origin of an operator -> meaning."""

_STANDARD_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"})
"""Domains of the ONNX standard (``onnx/defs/schema.h``)."""

_ONNXRUNTIME_DOMAINS = ("com.microsoft", "com.ms.internal", "org.pytorch.aten")
"""Beginnings of the domains of onnxruntime's own operators (``onnxruntime/core/graph/constants.h``)."""


class OperatorType(msgspec.Struct, frozen=True, order=True):
    """A kind of operator; the domain is empty for ONNX's main one."""

    domain: str
    op_type: str

    @property
    def label(self) -> str:
        """``Conv``, or ``com.microsoft.FusedConv`` for another domain."""
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type

    @property
    def origin(self) -> OperatorOrigin:
        """The origin of its definition."""
        if self.domain in _STANDARD_DOMAINS:
            return "standard"
        return "onnxruntime" if self.domain.startswith(_ONNXRUNTIME_DOMAINS) else "custom"


OperatorCounts = tuple[tuple[OperatorType, int], ...]


class GraphChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change to a graph, and how often it was made.

    Attributes:
        before: Operators of the removed nodes, with their counts, in the order of the graph.
        after: Operators of the nodes that replace them.
    """

    kind: GraphChangeKind
    before: OperatorCounts
    after: OperatorCounts
    times: int

    @property
    def text(self) -> str:
        """``Conv + Add → Conv``; operators of other domains with their domain."""
        ends = {"folded": "a constant", "merged": "one of them"}
        return f"{_sum(self.before) or 'nothing'} → {_sum(self.after) or ends.get(self.kind, 'nothing')}"


class LevelStep(msgspec.Struct, frozen=True, kw_only=True):
    """The model's graph on the CPU provider at one level.

    Attributes:
        form: ``onnx``, or ``ort`` where the model was converted to ORT format at that level.
        nodes: Nodes of the graph, those of subgraphs included; null where there is no graph.
        problem: Why there is no graph, in one line.
        against: What the changes are relative to: ``model`` or the name of another step.
        changes: How the main graph differs from it.
    """

    level: str
    form: Literal["onnx", "ort"]
    nodes: int | None = None
    problem: str = ""
    against: str = ""
    changes: tuple[GraphChange, ...] = ()

    @property
    def name(self) -> str:
        """``basic``, or ``ORT basic`` for the converted model."""
        return f"ORT {self.level}" if self.form == "ort" else self.level


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """The number of nodes of an operator: in the model itself, and after each step that has a graph."""

    operator: OperatorType
    in_model: int
    counts: tuple[int | None, ...]


class TargetShare(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that a target takes at one step.

    Attributes:
        nodes: Nodes that the provider takes; null if unknown.
        of: All nodes of its own session, so that nodes that the provider adds (such as Transpose for another
            layout) count in both.
        partitions: Subgraphs that it takes; one for each node if it has a kernel for each. Null if nothing
            ran.
        inferred: Whether ``nodes`` is the graph's number less the nodes that ran on the CPU. onnxruntime does
            not report the assignment of nodes for a model in ORT format.
    """

    verdict: Verdict
    reason: str = ""
    nodes: int | None = None
    of: int | None = None
    partitions: int | None = None
    inferred: bool = False


class TargetShares(msgspec.Struct, frozen=True, kw_only=True):
    """The shares of one target, one for each step; null if the run was interrupted before that step.

    ``provider`` is the first preferred one, ``onnxruntime`` the version of the runtime, empty if unknown.
    """

    target: str
    provider: str
    onnxruntime: str = ""
    shares: tuple[TargetShare | None, ...]


class Levels(msgspec.Struct, frozen=True, kw_only=True):
    """All levels of one model.

    Attributes:
        opsets: Domain -> version that the model imports.
        nodes: Nodes of the model itself, those of subgraphs included.
        nested: How many of them are in subgraphs; changes there are counted and not explained.
        onnxruntime: Version of the runtime whose CPU provider made the graphs; empty if none did.
        operators: Standard ones first, then by domain and name.
        targets: Those with another provider than the CPU provider.
        complete: False if the run was interrupted.
    """

    model: str
    opsets: dict[str, int]
    nodes: int
    nested: int
    onnxruntime: str
    steps: tuple[LevelStep, ...]
    operators: tuple[OperatorRow, ...]
    targets: tuple[TargetShares, ...]
    complete: bool = True

    def problems(self) -> tuple[tuple[str, str], ...]:
        """Return why graphs are missing: each reason, with its steps."""
        steps: dict[str, list[str]] = {}
        for step in self.steps:
            if step.problem:
                steps.setdefault(step.problem, []).append(step.name)
        return tuple((", ".join(names), problem) for problem, names in steps.items())

    def remarks(self) -> tuple[tuple[str, str], ...]:
        """Return remarks on shares: each text, with its targets and steps."""
        about: dict[str, dict[str, list[str]]] = {}
        for target in self.targets:
            for step, share in zip(self.steps, target.shares, strict=True):
                if share is not None and share.reason:
                    names = about.setdefault(f"{share.verdict}: {share.reason}", {})
                    names.setdefault(target.target, []).append(step.name)
        return tuple(
            ("; ".join(f"{target} at {', '.join(steps)}" for target, steps in names.items()), text)
            for text, names in about.items()
        )


def _sum(operators: OperatorCounts) -> str:
    return " + ".join(
        operator.label if count == 1 else f"{count} {operator.label}" for operator, count in operators
    )
