"""The triage of a run: turns its failing cells into faults, each one line of ``faults.jsonl``.

Targets are triaged concurrently; the failures of one target one after another, in the same live processes.
Results are written to disk at once, so an interrupted triage continues where it stopped.
"""

import contextlib
import functools
import hashlib
import queue
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.annex.triage.explain import TargetVariation
from harness.annex.triage.failure import FailureRerun, rerun_failure
from harness.annex.triage.failure_groups import NOT_PREFIX, FailureGroup, failing_groups
from harness.annex.triage.hand_over import hand_over
from harness.annex.triage.hang_limits import limited_targets
from harness.annex.triage.lab import Lab, after_targets
from harness.annex.triage.preceding import MOST_NEEDED, Earlier, Reruns, earlier_cells
from harness.annex.triage.study import FailureStudy
from harness.annex.triage.study_request import Studied, TriageRequest
from harness.annex.triage.time_budget import TimeBudget
from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.files.writing import writing
from harness.core.records.fault import FAULTS_FILE, Condition, Fault, decode_faults, encode_fault
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.core.text.errors import Problem, UsageError, one_line
from harness.corpus.suites.suite import Suite
from harness.engine.processes.native_crash import SWITCHED_ON
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.target import Target

WORK = "work"
"""Folder below that of the faults that keeps the trials."""

TRIAL_LIMIT_S = 60.0
"""Limit of a phase of a trial, unless the target's is lower; a longer trial of a small model hangs."""


RERUNS = 3
"""One part in so many of a budget for running cells again, before the first is studied."""


class TriageSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a triage.

    Attributes:
        cells: Ids of the cells to triage; empty for one of each group of failures.
        jobs: Number of targets that are triaged at once.
        budget_s: Seconds for everything; None for no limit.
        keep_weights: Whether reduced models keep the weights of their models.
    """

    cells: tuple[str, ...] = ()
    jobs: int = 1
    budget_s: float | None = None
    keep_weights: bool = False


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A finding about a cell or a target, by its id or name, in one line.

    Attributes:
        passing: Whether it matters only until the next note about the same.
    """

    about: str
    text: str
    passing: bool = False


TellNote = Callable[[Note], None]

_Results = queue.SimpleQueue[Fault | BaseException | None]
"""Results of the threads that each triage a target: faults, the error that ended a thread, and None at its
end."""


class Triage(msgspec.Struct, eq=False):
    """Triages the failing cells of a run; faults go into a folder. ``tell`` is called from several threads.

    ``earlier`` is for runs that keep only records of a few cells.

    Raises:
        UsageError: A requested cell has no record, or did not fail; the folder cannot be written.
    """

    matrix: Matrix
    suites: Mapping[str, Suite]
    records: Collection[Record]
    folder: Path
    settings: TriageSettings
    tell: TellNote
    earlier: Earlier | None = None
    groups: tuple[FailureGroup, ...] = ()
    known: dict[str, Fault] = {}
    stop: threading.Event = msgspec.field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        _check_cells(self.settings.cells, self.records)
        self.groups = failing_groups(self.records, self.settings.cells, self.matrix.targets)
        with writing(self.folder):
            (self.folder / WORK).mkdir(parents=True, exist_ok=True)
        self.known = {fault.representative: fault for fault in read_faults(self.folder / FAULTS_FILE)}

    def run(self) -> Iterator[Fault]:
        """Yield each fault as soon as it is on disk; those of an earlier session first.

        Several groups may have one fault: each of them yields it, with the same id and its own cells.
        """
        waiting: dict[str, list[FailureGroup]] = {}
        for group in self.groups:
            known = self.known.get(group.representative.cell)
            if known is not None:
                yield known
            else:
                waiting.setdefault(group.representative.target, []).append(group)
        results: _Results = queue.SimpleQueue()
        budget = TimeBudget(self.settings.budget_s, self.stop)
        todo = list(waiting.items())
        threads = [
            threading.Thread(target=self._work, args=(todo, budget, results), daemon=True)
            for _ in range(min(self.settings.jobs, len(todo)))
        ]
        for thread in threads:
            thread.start()
        try:
            yield from self._taken(results, len(threads))
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()

    def _taken(self, results: _Results, open_threads: int) -> Iterator[Fault]:
        while open_threads:
            found = results.get()
            if found is None:
                open_threads -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                with writing(self.folder), (self.folder / FAULTS_FILE).open("ab") as file:
                    file.write(encode_fault(found) + b"\n")
                yield found

    def _work(
        self,
        todo: list[tuple[str, list[FailureGroup]]],
        budget: TimeBudget,
        results: _Results,
    ) -> None:
        """Triage one target after another, until none is left."""
        try:
            while not self.stop.is_set():
                try:
                    name, groups = todo.pop(0)
                except IndexError:
                    break
                self._of_target(name, groups, budget, results.put)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            results.put(error)
        results.put(None)

    def _of_target(
        self, name: str, groups: Sequence[FailureGroup], budget: TimeBudget, put: Callable[[Fault], None]
    ) -> None:
        target = next(target for target in self.matrix.targets if target.name == name)
        # Many reruns must not take the time of all studies: those of large models come last.
        representatives = [group.representative for group in groups]
        again = rerun_failure(self.matrix, self.suites, representatives, budget.share(RERUNS))
        own = trial_target(target)
        variations = tuple(variations_of(own, self.matrix.targets))
        home = self.folder / WORK / hashlib.sha256(name.encode()).hexdigest()[:16]
        request = TriageRequest(
            target=own.name,
            limited=limited_targets(own),
            variations=variations,
            fingerprint=again.fingerprint,
            keep_weights=self.settings.keep_weights,
        )
        others = (own, *(variation.target for variation in variations))
        targets = [*others, *(one.target for one in request.limited)]
        targets += [each for one in others for each in after_targets(one, MOST_NEEDED)]
        earlier = self.earlier or functools.partial(earlier_cells, self.records)
        with Lab(targets, home, lambda text: self.tell(Note(about=name, text=text))) as lab:
            found: dict[tuple[object, ...], list[Studied]] = {}
            for number, group in enumerate(groups):
                cell = group.representative.cell
                if self.stop.is_set() or budget.spent:
                    break
                if cell not in again.failures:
                    continue
                share = budget.share(len(again.failures) - number)
                tell = functools.partial(self._learnt, cell)
                reruns = Reruns(self.matrix, self.suites, group.representative, earlier, share)
                alike = found.setdefault(group.alike, []) if group.alike else []
                asked = msgspec.structs.replace(request, known=tuple(alike))
                study = FailureStudy(lab, group, again.failures[cell], asked, share, tell, reruns)
                studied = study.run()
                if studied.fault.id not in {one.fault.id for one in alike}:
                    alike.append(studied)
                if not self.stop.is_set():  # else it was cut short, and will be tried again
                    put(self._bundled(studied, target, again))

    def _bundled(self, studied: Studied, target: Target, again: FailureRerun) -> Fault:
        """Write the bundle of a fault that was reproduced, unless another group has the same fault."""
        fault = studied.fault
        if studied.reproduced is None:
            return fault
        folder = self.folder / fault.id
        if not folder.exists():
            try:
                tolerance = Plan(matrix=self.matrix, cells=()).tolerance(studied.failure.cell)
                hand_over(folder, fault, studied.reproduced, target, tolerance, again.fingerprint)
            except ValueError as error:
                self._learnt(fault.representative, f"no bundle: {one_line(error)}")
                return fault
        return msgspec.structs.replace(fault, bundle=fault.id)

    def _learnt(self, cell: str, text: str, *, passing: bool = False) -> None:
        self.tell(Note(about=cell, text=text, passing=passing))


def trial_target(target: Target) -> Target:
    """Return a target as trials need it: without retries, with short limits, reporting where it dies."""
    limits = target.timeouts_s
    limits = msgspec.structs.replace(
        limits, create=min(limits.create, TRIAL_LIMIT_S), run=min(limits.run, TRIAL_LIMIT_S)
    )
    env = target.env | SWITCHED_ON
    return msgspec.structs.replace(
        target, axes={}, retries=0, alone=False, required=False, workers=1, timeouts_s=limits, env=env
    )


def variations_of(target: Target, others: Sequence[Target]) -> Iterator[TargetVariation]:
    """Yield targets that differ from one in an option, and those of the same provider in other runtimes.

    The run already has other providers' results for the cell's own model.
    """
    for key, value in target.options.items():
        rest = {other: text for other, text in target.options.items() if other != key}
        yield TargetVariation(
            condition=Condition(kind="option", name=key, value=f"{NOT_PREFIX}{value}"),
            target=msgspec.structs.replace(target, name=f"{target.name} without {key}", options=rest),
        )
    for other in others:
        if other.provider == target.provider and other.runtime != target.runtime:
            condition = Condition(kind="runtime", value=other.name)
            yield TargetVariation(condition=condition, target=trial_target(other))


def read_faults(path: Path) -> tuple[Fault, ...]:
    """Return the faults of a file, in its order; none if it does not exist."""
    content = b""
    with contextlib.suppress(FileNotFoundError):
        content = read_regular(path, MOST_FILE)
    return tuple(fault for _, fault in decode_faults(content) if isinstance(fault, Fault))


def _check_cells(cells: Collection[str], records: Collection[Record]) -> None:
    verdicts = {record.cell: record.verdict for record in records}
    hint = "`ep-harness list MATRIX` shows all cells"
    problems = [
        Problem(where=cell, what="the run has no record of this cell", hint=hint)
        if cell not in verdicts
        else Problem(where=cell, what=f"did not fail: its verdict is {verdicts[cell]}")
        for cell in cells
        if cell not in verdicts or verdicts[cell].family is not Family.FAILED
    ]
    if problems:
        raise UsageError(*problems)
