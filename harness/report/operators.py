"""Which operators each lane computes, from evidence.

Two kinds of evidence stand apart. *Verdicts* come from models that hold one type of operator only, such as
ONNX's operator tests: there a verdict is about that operator. *Placement* comes from every model: on which
provider the nodes of a type were put, whatever became of the model.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import msgspec

from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.report.cell import ReportCell
from harness.report.figures import Share
from harness.report.lane import Lane

MAX_OPERATORS = 1_000
"""Rows of the table: ONNX and onnxruntime have some 400 operators, but a model may name any number."""

MAX_SQUARES = 20_000
"""Operators times lanes in the table."""

REACHES = {
    "passed": "all pass",
    "partial": "some pass",
    "failed": "none passes, some fail",
    "unsupported": "none passes, none fails: left to the CPU, or refused",
}
"""Tone of an operator that was tried -> what it means."""

SHOWN_NOTES = 3
"""How many kinds of trouble are told of one operator in one lane."""

_ONNX = "ai.onnx"
_UNTRIED = (Family.SKIPPED, Family.EXCLUDED, Family.MISSING)

Documented = Mapping[str, Mapping[str, str]]
"""Provider -> operator -> what restricts it, as far as anybody documents the operators of a provider."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Cells of one operator that ended alike, and did not pass.

    Attributes:
        verdict: How.
        count: How many.
        reason: That of the first of them.
    """

    verdict: Verdict
    count: int
    reason: str


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """One type of operator in one lane.

    Attributes:
        name: Its type.
        passed: Models of this operator alone whose right answer the EP computed in whole, of the tried ones.
        opsets: The same by version of ONNX's operators, ascending; 0 for models of other domains alone.
        types: Element types of the inputs of models that passed in whole.
        other_types: Element types of the other models that were tried, without those above.
        failed: How many of the tried ones failed.
        ep_nodes: Nodes of this type on the EP, over all models.
        cpu_nodes: Nodes of this type on the CPU EP.
        troubles: What became of models of this operator alone that did not pass; the most frequent first.
        troubles_left_out: Cells in kinds of trouble that are not listed.
        listed: Whether documents list the operator for this provider; None where there is no list.
        restriction: What restricts it by these documents.
    """

    name: str
    passed: Share
    opsets: tuple[tuple[int, Share], ...]
    types: tuple[str, ...]
    other_types: tuple[str, ...]
    failed: int
    ep_nodes: int
    cpu_nodes: int
    troubles: tuple[Trouble, ...]
    troubles_left_out: int
    listed: bool | None
    restriction: str

    @property
    def reach(self) -> str:
        """``all``, ``some`` or ``none`` of the tried models passed; empty where none was tried."""
        if not self.passed.total:
            return ""
        if not self.passed.count:
            return "none"
        return "all" if self.passed.count == self.passed.total else "some"

    @property
    def tone(self) -> str:
        """How ``reach`` looks: where none passes, whether any failed, or the EP just does not take it."""
        if self.reach == "none":
            return "failed" if self.failed else "unsupported"
        return {"all": "passed", "some": "partial", "": "skipped"}[self.reach]

    @property
    def where(self) -> str:
        """``on the EP``, ``partly`` or ``CPU only``; empty where no node was placed."""
        if not self.ep_nodes and not self.cpu_nodes:
            return ""
        if not self.cpu_nodes:
            return "on the EP"
        return "partly" if self.ep_nodes else "CPU only"

    @property
    def differs(self) -> str:
        """How the evidence differs from the documents; empty where it does not, or where one is missing."""
        if self.listed and self.reach == "none" and not self.ep_nodes:
            return "listed, but none passes"
        if self.listed is False and self.passed.count:
            return "works, but not listed"
        return ""


class LaneOperators(msgspec.Struct, frozen=True, kw_only=True):
    """The operators of one lane, sorted by name."""

    lane: Lane
    operators: tuple[Operator, ...]

    @property
    def reached(self) -> tuple[int, ...]:
        """How many operators have each tone of ``REACHES``."""
        counts = Counter(operator.tone for operator in self.operators)
        return tuple(counts[tone] for tone in REACHES)

    @property
    def bar(self) -> tuple[tuple[str, float, float], ...]:
        """``(tone, start, width)`` of these, in percent of the bar."""
        total = max(1, sum(self.reached))
        before = accumulate(self.reached, initial=0)
        return tuple(
            (tone, round(100 * start / total, 3), round(100 * count / total, 3))
            for tone, count, start in zip(REACHES, self.reached, before, strict=False)
            if count
        )


class OperatorTable(msgspec.Struct, frozen=True, kw_only=True):
    """Operators by lanes.

    Attributes:
        names: The operators of the rows, sorted.
        lanes: One entry per lane in which anything is known about an operator.
        left_out: Operators that are not shown.
    """

    names: tuple[str, ...]
    lanes: tuple[LaneOperators, ...]
    left_out: int

    @property
    def rows(self) -> tuple[tuple[str, tuple[Operator | None, ...]], ...]:
        """``(name, operator per lane)``; None where nothing is known."""
        known = [{operator.name: operator for operator in lane.operators} for lane in self.lanes]
        return tuple((name, tuple(lane.get(name) for lane in known)) for name in self.names)


def operator_table(
    lanes: Sequence[Lane], cells: Iterable[ReportCell], documented: Documented, *, complete: bool
) -> OperatorTable:
    """Count the evidence for each operator.

    Args:
        lanes: The lanes, in their order.
        cells: All cells.
        documented: What documents list; a provider without an entry has no list.
        complete: False where cells of the run were not run.
    """
    tallies: dict[Lane, dict[str, _Tally]] = {lane: {} for lane in lanes}
    for cell in cells:
        _count(tallies[cell.lane], cell.record)
    names = sorted({name for lane in tallies.values() for name in lane})
    shown = names[: min(MAX_OPERATORS, MAX_SQUARES // max(1, len(lanes)))]
    return OperatorTable(
        names=tuple(shown),
        lanes=tuple(
            LaneOperators(
                lane=lane,
                operators=tuple(
                    tallies[lane][name].result(name, documented.get(lane.provider), complete=complete)
                    for name in shown
                    if name in tallies[lane]
                ),
            )
            for lane in lanes
            if tallies[lane]
        ),
        left_out=len(names) - len(shown),
    )


def only_operator(record: Record) -> str:
    """The operator that a verdict is about: the only type in the model; empty where there are others."""
    ops = record.content.ops if record.content is not None else {}
    return next(iter(ops)) if len(ops) == 1 else ""


class _Tally:
    """What is being counted about one operator in one lane."""

    __slots__ = ("cpu_nodes", "ep_nodes", "failed", "opsets", "other_types", "reasons", "troubles", "types")

    def __init__(self) -> None:
        self.opsets: dict[int, tuple[int, int]] = {}  # version -> passed, tried
        self.types: set[str] = set()
        self.other_types: set[str] = set()
        self.failed = 0
        self.ep_nodes = 0
        self.cpu_nodes = 0
        self.troubles: Counter[Verdict] = Counter()
        self.reasons: dict[Verdict, str] = {}

    def verdict(self, record: Record, opset: int, types: Iterable[str]) -> None:
        """Count a model that holds nothing but this operator."""
        passed = record.verdict is Verdict.PASS
        before, tried = self.opsets.get(opset, (0, 0))
        self.opsets[opset] = (before + passed, tried + 1)
        (self.types if passed else self.other_types).update(types)
        self.failed += record.verdict.family is Family.FAILED
        if not passed:
            self.troubles[record.verdict] += 1
            self.reasons.setdefault(record.verdict, record.reason)

    def result(self, name: str, documented: Mapping[str, str] | None, *, complete: bool) -> Operator:
        """What was counted."""
        counted = {
            version: Share(passed, tried, not complete)
            for version, (passed, tried) in sorted(self.opsets.items())
        }
        troubles = self.troubles.most_common(SHOWN_NOTES)
        return Operator(
            name=name,
            passed=Share(
                sum(share.count for share in counted.values()),
                sum(share.total for share in counted.values()),
                not complete,
            ),
            opsets=tuple(counted.items()),
            types=tuple(sorted(self.types)),
            other_types=tuple(sorted(self.other_types - self.types)),
            failed=self.failed,
            ep_nodes=self.ep_nodes,
            cpu_nodes=self.cpu_nodes,
            troubles=tuple(
                Trouble(verdict=verdict, count=count, reason=self.reasons[verdict])
                for verdict, count in troubles
            ),
            troubles_left_out=self.troubles.total() - sum(count for _, count in troubles),
            listed=None if documented is None else name in documented,
            restriction="" if documented is None else documented.get(name, ""),
        )


def _count(lane: dict[str, _Tally], record: Record) -> None:
    placement, content = record.placement, record.content
    if placement is not None:
        for name, nodes in placement.ep_ops.items():
            lane.setdefault(name, _Tally()).ep_nodes += nodes
        for name, nodes in placement.cpu_ops.items():
            lane.setdefault(name, _Tally()).cpu_nodes += nodes
    name = only_operator(record)
    if name and content is not None and record.verdict.family not in _UNTRIED:
        lane.setdefault(name, _Tally()).verdict(record, content.opsets.get(_ONNX, 0), content.types)
