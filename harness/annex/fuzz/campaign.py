"""The loop of fuzzing: batches of models through one engine until time is up.

The run folder gets the cells that show something new, and some cells of each group of failures. All others
are counted. So its size depends on the findings, not on the duration.
"""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from harness.annex.fuzz.coverage import Coverage
from harness.annex.fuzz.findings import Findings
from harness.annex.fuzz.fuzz_state import FuzzState, write_state
from harness.annex.fuzz.next_models import AXES, Candidates
from harness.annex.fuzz.originals import Originals
from harness.annex.fuzz.work_folder import prune_old_goldens, remove_model, suite_in
from harness.annex.made.fuzz_suite import FUZZ
from harness.annex.triage.histories import Histories, write_histories
from harness.core.lru_cache import Room
from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict, says_nothing
from harness.engine.answers.references import Stores
from harness.engine.engine import Engine, StudySettings
from harness.engine.tasks.events import Event, Finished, Noted, TargetReady, Warned
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.target import Target
from harness.plan.tolerance_policy import cell_of
from harness.run.artifacts import keep_artifacts
from harness.run.interruption import Interruption
from harness.run.run_folder import RunFolder

_BATCH = 150
"""Largest number of models that wait in the engine; two processors judge so many in some ten seconds."""

ROOM = Room(count=2 * _BATCH, nbytes=16 << 20)
"""Forms of models, and answers of each kind, that are kept in memory.

No model is needed again once it is judged. More room would only take longer to fill: rare kinds of answers,
such as noise, would keep growing for an hour.
"""

SAVE_S = 20.0
"""Seconds between two states on disk."""

TOLD_S = 15.0
"""Seconds between two lines of progress."""

_LIMIT_S = 30.0
"""Limit of a phase, unless the target's is lower: a model of a few nodes that takes longer counts as hung."""

RENEW_SESSIONS, RENEW_MIB = 2000, 512.0
"""Limits after which a process is replaced, unless the target's are lower.

Compiled shaders and kernels of thousands of different models are never needed again.
"""

TellProgress = Callable[[str], None]


class FuzzSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of fuzzing.

    Attributes:
        seconds: The time for making models.
        operators: Only these operators are used; all if there are none.
        stop: Number of models after which it ends; None for no limit.
    """

    seed: int
    seconds: float
    operators: tuple[str, ...] = ()
    stop: int | None = None


class Campaign:
    """Fuzzes the targets of a matrix.

    Args:
        matrix: The targets; its models do not matter.
        tell: Receives lines about what happens.
        before: Records of an earlier session, and its state.
    """

    def __init__(
        self,
        matrix: Matrix,
        folder: RunFolder,
        settings: FuzzSettings,
        tell: TellProgress,
        before: tuple[tuple[Record, ...], FuzzState] | None = None,
    ) -> None:
        records, state = before or ((), FuzzState(seed=settings.seed, operators=settings.operators))
        self.coverage, self.findings = Coverage(), Findings()
        self.verdicts = {
            target.name: Counter({Verdict(key): count for key, count in counts.items()})
            for target in matrix.targets
            for counts in [state.verdicts.get(target.name, {})]
        }
        self.unusable: dict[str, str] = {}
        """Targets that cannot run anything -> the reason."""
        self.models = self._before = state.models
        self.matrix = matrix
        self._folder = folder
        self._settings = settings
        self._tell = tell
        # Agents have their own working folder, so a relative path means nothing to them.
        self._work = folder.path.absolute() / "work"
        self._candidates = Candidates(
            settings.seed, state.next, tuple(target.name for target in matrix.targets), settings.operators
        )
        self._candidates.passed_over = state.passed_over
        self._kept = [_cell(record) for record in records]
        self._known = {record.cell for record in records}
        """Ids of kept cells: a continued session may judge some of them again."""
        self._unsaved: list[Record] = []
        self._open: Counter[str] = Counter()
        self._excluded: dict[str, str] = {}
        """Target -> why its latest invalid model is invalid."""
        self._originals = Originals()
        self._histories = Histories()
        self._saved_at = self._told_at = time.monotonic()
        for record in records:
            self.coverage.add(record, 0)
            self.findings.add(record)

    @property
    def cells(self) -> int:
        """Return the number of judged cells."""
        return sum(counts.total() for counts in self.verdicts.values())

    @property
    def made(self) -> int:
        """Return the number of models of this session."""
        return self.models - self._before

    @property
    def valid(self) -> tuple[int, int]:
        """Return the number of cells with a valid model, and of all tried ones."""
        skipped = (Family.SKIPPED, Family.MISSING)
        tried = [(verdict, count) for one in self.verdicts.values() for verdict, count in one.items()]
        tried = [(verdict, count) for verdict, count in tried if verdict.family not in skipped]
        invalid = sum(count for verdict, count in tried if verdict.family is Family.EXCLUDED)
        total = sum(count for _, count in tried)
        return total - invalid, total

    @property
    def passed_over(self) -> int:
        """Return the number of cells that were skipped because they would have shown nothing new."""
        return self._candidates.passed_over

    def plan(self) -> Plan:
        """Return the plan of the kept cells: part of a suite that any run can have."""
        return plan_of(self.matrix, self._settings.seed, self._candidates.next, self._kept)

    def run(self) -> bool:
        """Fuzz until the time is up or no target is left; return whether a signal ended it early."""
        suite = suite_in(self._work / "models", self._settings.seed)
        limited = tuple(limited_target(target) for target in self.matrix.targets)
        plan = Plan(matrix=msgspec.structs.replace(self.matrix, targets=limited), cells=())
        stores = Stores.of_here(self._work / "goldens")
        engine = Engine(
            plan, {suite.name: suite}, study=StudySettings(stores=stores, room=ROOM, is_small=True)
        )
        began = time.monotonic()
        with Interruption() as interruption:
            try:
                interruption.stops(engine.stop)
                self._submit(engine)
                for batch in engine.batches():
                    self._take(batch)
                    if self._is_over(began):
                        engine.drain()
                    elif len(self._open) < _BATCH // 2 and not interruption.came:
                        self._submit(engine)
            finally:
                engine.close()
                self.save()
                shutil.rmtree(self._work, ignore_errors=True)
        self._name_useless_targets()
        return interruption.came

    def _name_useless_targets(self) -> None:
        """Call a target unusable if no model was fit to judge it: a lack of failures then says nothing."""
        for target, counts in self.verdicts.items():
            if says_nothing(counts):
                what = f"none of {counts.total():,} models is valid"
                self.unusable.setdefault(target, f"{what}; the last one: {self._excluded.get(target, '')}")

    def _is_over(self, began: float) -> bool:
        stop = self._settings.stop
        return time.monotonic() - began >= self._settings.seconds or (
            stop is not None and self.models >= stop
        )

    def _submit(self, engine: Engine) -> None:
        stop = self._settings.stop
        room = _BATCH - len(self._open)
        if stop is not None:
            room = min(room, stop - self.models)
        cells = tuple(self._candidates.take(max(0, room), self.coverage, self.findings))
        self._open.update(cell.model for cell in cells)
        self.models += len({cell.model for cell in cells})
        engine.submit(cells)
        if not cells and not self._open:
            engine.drain()

    def _take(self, batch: Iterable[Event]) -> None:
        for event in batch:
            if isinstance(event, Finished):
                self._finished(event)
            elif isinstance(event, TargetReady):
                self._folder.ready(event)
                self._tell(f"{'unavailable' if event.problem else 'ready':<12} {event.target}")
            elif isinstance(event, Warned):
                self._tell(f"warning: {event.message}")
            elif isinstance(event, Noted):
                self._tell(event.message)
        now = time.monotonic()
        if now - self._told_at >= TOLD_S:
            self._told_at = now
            groups = len(self.findings.groups)
            self._tell(
                f"progress     {self.models:,} models, {self.cells:,} cells, {groups} groups of failures"
            )
        if now - self._saved_at >= SAVE_S:
            self.save()

    def _finished(self, event: Finished) -> None:
        record = event.record
        self._close(record.model)
        if record.verdict is Verdict.UNAVAILABLE:
            self.unusable.setdefault(record.target, record.reason)
            self._candidates.drop(record.target)
            return
        self.verdicts[record.target][record.verdict] += 1
        if record.family is Family.EXCLUDED:
            self._excluded[record.target] = record.reason
        rank = len(event.case.ports[0].type.shape or ()) if event.case and event.case.ports else 0
        is_new = self.coverage.add(record, rank, event.printed)
        is_finding = self.findings.add(record)
        self._histories.add(record, is_finding=is_finding)
        if record.cell in self._known:
            return
        if is_finding:
            originals = self._originals.of(record)
            self._known.update(one.cell for one in originals)
            self._unsaved += originals
        if is_finding or (is_new and record.family is not Family.FAILED) or self._originals.hold(record):
            self._known.add(record.cell)
            self._unsaved.append(
                keep_artifacts(self._folder.path, event, lambda text: self._tell(f"warning: {text}"))
            )

    def _close(self, model: str) -> None:
        """Remove a model that was judged on all targets."""
        self._open[model] -= 1
        if not self._open[model]:
            del self._open[model]
            remove_model(self._work / "models", model)

    def save(self) -> None:
        """Write the new findings and the progress."""
        self._kept += [_cell(record) for record in self._unsaved]
        self._folder.replan(self.plan())
        self._folder.add(*self._unsaved)
        write_histories(self._folder.path, self._histories.take())
        self._unsaved = []
        # A continued session examines models again that are not judged yet.
        waiting = [int(name.partition("-")[0]) for name in self._open]
        write_state(
            self._folder.path,
            FuzzState(
                seed=self._settings.seed,
                suite=max(1, self._candidates.next),
                next=min((*waiting, self._candidates.next)),
                operators=self._settings.operators,
                models=self.models - len(waiting),
                cells=self.cells,
                verdicts={
                    target: {verdict.value: count for verdict, count in counts.items()}
                    for target, counts in self.verdicts.items()
                },
                passed_over=self.passed_over,
            ),
        )
        prune_old_goldens(self._work / "goldens", older_than_s=10 * SAVE_S)
        self._saved_at = time.monotonic()


def plan_of(matrix: Matrix, seed: int, count: int, cells: Iterable[Cell]) -> Plan:
    """Return the plan of some cells of the suite with the first ``count`` models of a seed."""
    models = msgspec.structs.replace(matrix.models, suites=(f"{FUZZ}{seed}:{max(1, count)}",), folders=())
    return Plan(matrix=msgspec.structs.replace(matrix, models=models), cells=tuple(dict.fromkeys(cells)))


def limited_target(target: Target) -> Target:
    """Return a target with limits for small models."""
    limits = target.timeouts_s.at_most(_LIMIT_S)
    renew = msgspec.structs.replace(
        target.renew_after,
        sessions=min(target.renew_after.sessions, RENEW_SESSIONS),
        growth_mib=min(target.renew_after.growth_mib, RENEW_MIB),
    )
    return msgspec.structs.replace(target, timeouts_s=limits, renew_after=renew, axes={})


def _cell(record: Record) -> Cell:
    """Return the cell of a record; all kept cells share the names of the target and the axes."""
    cell = cell_of(record)
    return msgspec.structs.replace(
        cell, suite=sys.intern(cell.suite), target=sys.intern(cell.target), axes=AXES
    )
