"""What the difference of two runs tells: cells by kind of change, flows, and other changes of targets."""

from enum import StrEnum

import msgspec

from harness.core.records.verdict import Family, Verdict
from harness.report.changes.latencies import Latencies
from harness.report.changes.likeness import Unlike
from harness.report.changes.same_measure import MeasurePart


class CellChangeKind(StrEnum):
    """How a cell changed. *A result* is one of the families failed, unsupported, untested and passed."""

    REGRESSED = "regressed"
    FIXED = "fixed"
    CHANGED = "changed"
    OTHER_MEASURE = "other_measure"
    GOLDEN_MOVED = "golden_moved"
    OTHER_MODEL = "other_model"
    NEW = "new"
    GONE = "gone"

    @property
    def meaning(self) -> str:
        """One line for users."""
        return _MEANINGS[self]


_MEANINGS = {
    CellChangeKind.REGRESSED: "a worse result than before",
    CellChangeKind.FIXED: "a right answer by the EP, and a worse result before",
    CellChangeKind.CHANGED: "another verdict that is neither, or other facts of note",
    CellChangeKind.OTHER_MEASURE: "another verdict, but the policy changed: another tolerance may explain it",
    CellChangeKind.GOLDEN_MOVED: "another verdict, but the golden is another one, which may explain it",
    CellChangeKind.OTHER_MODEL: "another verdict, but of another model: other weights, graph or test data",
    CellChangeKind.NEW: "has a result, and had none before",
    CellChangeKind.GONE: "had a result, and has none now",
}


class CellChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one cell changed.

    Attributes:
        cell: Its id.
        before: Its verdict in the old run; null if it was not planned.
        after: The same in the new run.
        expected: False if the new verdict is not what the new matrix expects.
        flaky: Whether retries had another verdict, in either run.
        slower: Whether its latency grew by more than noise explains.
        lacks: The missing feature of the device for which it fails in the new run; empty if there is none.
        unclear: Whether the latency may have grown, while noise, a disturbance or another way of measuring
            hides it.
        facts: Other differences, such as ``delivered bits 20.3 -> 10.6``; one line each.
        beside: Other changes of its target, such as ``runtime changed`` or ``device changed``.
        reason: The reason in the new run; one line.
    """

    kind: CellChangeKind
    cell: str
    suite: str
    model: str
    target: str
    before: Verdict | None
    after: Verdict | None
    expected: bool
    flaky: bool
    slower: bool
    facts: tuple[str, ...]
    reason: str
    beside: tuple[str, ...] = ()
    unclear: bool = False
    lacks: str = ""

    @property
    def arrow(self) -> str:
        """``pass -> crash``."""
        before, after = (verdict.value if verdict else "not planned" for verdict in (self.before, self.after))
        return f"{before} -> {after}"


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """Cells of one family in both runs: ``after = before + entered - left``."""

    family: Family
    before: int
    after: int
    entered: int
    left: int


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two runs.

    Attributes:
        old: Name of the old run.
        new: Name of the new run.
        old_not_run: Planned cells without a result in the old run.
        new_not_run: The same in the new run.
        new_not_planned: Records of the new run for cells outside its plan; they are left out.
        required_unavailable: Required targets that are unavailable in the new run.
        compared: Cells with a result in both.
        unchanged: Those of them without a change.
        kinds: Number of cells by kind of change.
        flows: The families, in their order.
        changes: By kind, then by cell.
        unlike: Targets whose environment or settings differ.
        manners: Target -> its cells in the new run with a manner of a kind that they did not have in the old
            one, and its words.
        leaks: Target -> what leaks in the new run but not in the old one: the target itself, or its cells,
            each in words.
        lacks: Features that devices lack in the new run: target -> feature -> cells that need it, in the old
            and in the new run.
        judged: Target -> its cells that say something about the provider, in the old and in the new run.
        measures: Cells of both runs whose ``model``, ``golden`` or ``policy`` differs, whatever their
            verdicts; a part without such cells is left out.
        latency: The comparison of latencies; null without any on like machines.
        unclean_exits: Target -> how its process died or hung when it was asked to end, if the new matrix does
            not expect that and none did so in the old run.
        untried: Target -> its skipped or missing cells in the new run, and all of its cells there, if the
            former are more than a tenth: the rest says little about the target.
    """

    schema: int
    old: str
    new: str
    old_not_run: int
    new_not_run: int
    required_unavailable: tuple[str, ...]
    compared: int
    unchanged: int
    kinds: dict[CellChangeKind, int]
    flows: tuple[Flow, ...]
    changes: tuple[CellChange, ...]
    unlike: tuple[Unlike, ...]
    measures: dict[MeasurePart, int] = {}
    new_not_planned: int = 0
    judged: dict[str, tuple[int, int]] = {}
    latency: Latencies | None = None
    untried: dict[str, tuple[int, int]] = {}
    unclean_exits: dict[str, str] = {}
    manners: dict[str, tuple[str, ...]] = {}
    leaks: dict[str, tuple[str, ...]] = {}
    lacks: dict[str, dict[str, tuple[int, int]]] = {}

    def of(self, kind: CellChangeKind) -> tuple[CellChange, ...]:
        """Return the changes of one kind."""
        return tuple(change for change in self.changes if change.kind is kind)

    def told(self, kind: CellChangeKind) -> tuple[CellChange, ...]:
        """Return the changes of one kind, without cells of targets that the new run could not use."""
        return tuple(change for change in self.of(kind) if change.after is not Verdict.UNAVAILABLE)

    @property
    def unavailable(self) -> tuple[tuple[str, int, str], ...]:
        """Return the targets that the new run could not use: name, cells with a result before, and why."""
        found: dict[str, list[CellChange]] = {}
        for change in self.changes:
            if change.after is Verdict.UNAVAILABLE:
                found.setdefault(change.target, []).append(change)
        return tuple(
            (target, sum(change.kind is CellChangeKind.GONE for change in its), its[0].reason)
            for target, its in found.items()
        )
