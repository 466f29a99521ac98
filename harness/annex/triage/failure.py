"""A failure to triage: a failing cell, run again, with its model and its data."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing

import msgspec

from harness.annex.triage.lab import CellAxes
from harness.annex.triage.session_use import usage_axes
from harness.annex.triage.signature import names_of, signature_of
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.core.comparison.policy import Policy
from harness.core.records.cell import Cell
from harness.core.records.fault import Signature
from harness.core.records.precision import IN_MODEL
from harness.core.records.record import Record
from harness.core.records.scenario import GENERATE
from harness.corpus.case import Case
from harness.corpus.decoders.generation_case import GenerationSupport, generation_of
from harness.corpus.suites.suite import Suite
from harness.engine.answers.evidence import rule_of
from harness.engine.engine import Engine
from harness.engine.processes.native_crash import SWITCHED_ON
from harness.engine.tasks.events import Finished, TargetReady
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.tolerance_policy import cell_of


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A failing cell, with its record in the run.

    Attributes:
        again: The result of running it again; its signature is compared with that of the run.
        policy: The policy that judges the cell.
        axes: Axes of its trials: all except a precision that the model already has, and how much the cell
            uses its session.
        subjects: Its model with each of its data sets; empty if the model cannot be read.
        generation: What a cell of the scenario ``generate`` plays, each data set in one way; None in others.
    """

    record: Record
    cell: Cell
    again: Finished
    signature: Signature
    policy: Policy
    axes: CellAxes
    subjects: tuple[Subject, ...]
    generation: GenerationSupport | None = None

    @property
    def trial_policy(self) -> Policy:
        """Return the policy that judges trials: a model that was converted for the cell is used as it is."""
        return msgspec.structs.replace(self.policy, converted=False)

    @property
    def fails_again(self) -> bool:
        """Whether it failed again in the same way."""
        return signature_of(self.again.record, self.policy, _names(self.subjects)) == self.signature


class FailureRerun(msgspec.Struct, frozen=True, kw_only=True):
    """Failing cells of one target by id, run once more, and the environment of the target."""

    failures: Mapping[str, Failure]
    fingerprint: Mapping[str, object]


def rerun_failure(
    matrix: Matrix,
    suites: Mapping[str, Suite],
    records: Collection[Record],
    budget: TimeBudget | None = None,
) -> FailureRerun:
    """Run cells of one target again, in their order in one process, judged as in their run.

    When the budget is spent, the remaining cells are left out.
    """
    by_cell = {record.cell: record for record in records}
    cells = {record.cell: cell_of(record) for record in records}
    (name,) = {record.target for record in records}
    plan = Plan(matrix=_for_triage(matrix, name), cells=tuple(cells.values()))
    failures: dict[str, Failure] = {}
    fingerprint: Mapping[str, object] = {}
    with closing(Engine(plan, suites, measures=False, gives_outputs=True)) as engine:
        engine.submit(plan.cells)
        engine.drain()
        for event in engine.events():
            if isinstance(event, TargetReady) and event.target == name:
                fingerprint = event.fingerprint
            elif isinstance(event, Finished):
                record = by_cell[event.record.cell]
                failures[record.cell] = _failure(plan, record, cells[record.cell], event)
            if failures and budget is not None and budget.spent:
                break
    return FailureRerun(failures=failures, fingerprint=fingerprint)


def _failure(plan: Plan, record: Record, cell: Cell, again: Finished) -> Failure:
    case = again.case
    subjects = tuple(_subjects(case)) if case is not None else ()
    policy = rule_of(plan, cell, case).policy if case is not None else Policy()
    own = [pair for pair in cell.axes if pair[0] != "precision" or pair[1] not in IN_MODEL]
    return Failure(
        record=record,
        cell=cell,
        again=again,
        signature=signature_of(record, policy, _names(subjects)),
        policy=policy,
        axes=tuple(sorted((*own, *usage_axes(plan, cell)))),
        subjects=subjects,
        generation=_generation(plan, cell, case),
    )


def _generation(plan: Plan, cell: Cell, case: Case | None) -> GenerationSupport | None:
    if case is None or cell.axis("scenario") != GENERATE:
        return None
    made = generation_of(case, plan.matrix.scenarios.generate.text)
    return made if isinstance(made, GenerationSupport) else None


def _subjects(case: Case) -> Iterator[Subject]:
    external = case.model_path.parent if case.external else None
    model = case.model_path.read_bytes()
    for data_set in case.data_sets:
        yield Subject(model=model, inputs=data_set.inputs, external=external)


def _names(subjects: Collection[Subject]) -> Collection[str]:
    return next((names_of(subject) for subject in subjects), ())


def _for_triage(matrix: Matrix, name: str) -> Matrix:
    """Return the matrix with one target that retries nothing and reports where it dies.

    Its latency stays, although nothing is measured: the sizes of a grid are those that a cell runs.
    """
    targets = (
        msgspec.structs.replace(
            target, retries=0, alone=False, required=False, workers=1, env=target.env | SWITCHED_ON
        )
        for target in matrix.targets
        if target.name == name
    )
    return msgspec.structs.replace(matrix, targets=tuple(targets))
