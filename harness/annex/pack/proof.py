"""Run every configuration of a matrix with the models of a suite, timed: what a package may rest on."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import msgspec

from harness.annex.advise.fastest import simulated_of, timed
from harness.annex.pack.checking import MEASURED
from harness.core.records.cell import AXIS_DEFAULTS, Cell
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.record import Record
from harness.core.records.scenario import GENERATE, PLAIN
from harness.corpus.case import Case
from harness.corpus.suites.suite import Suite
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished, TargetReady
from harness.engine.tasks.task import CellTask
from harness.plan.expand import cells
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.target import Target
from harness.studies.ask import Notify, results

COMPILES = "ep_context"
"""The scenario by which a matrix asks for compiled variants."""

_SCENARIOS = frozenset({PLAIN, GENERATE, COMPILES})

_NOT_IN_A_PACKAGE = ("graph_optimization", "execution_mode")
"""Axes that a package cannot express: its session options are configuration entries only."""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What a run showed.

    Attributes:
        records: Cell -> its record.
        cases: Id of a cell -> its model with the data that it ran.
        targets: By name.
        fingerprints: The environment of each target that could be used.
        simulated: Target -> the program in place of its accelerator.
    """

    records: dict[Cell, Record]
    cases: dict[str, Case]
    targets: dict[str, Target]
    fingerprints: dict[str, Mapping[str, Any]]
    simulated: dict[str, str]


def prove(suite: Suite, matrix: Matrix, notify: Notify) -> Proof:
    """Run the models on the targets of a matrix, and on the CPU provider; tolerances are the matrix's.

    Raises:
        UsageError: A suite or the cache cannot be used.
    """
    matrix = _with_cpu(matrix)
    asked = msgspec.structs.replace(timed(matrix, matrix.targets, MEASURED), axes=_with_plain(matrix.axes))
    wanted = tuple(cell for cell in cells(asked, {suite.name: suite.models()}) if _fits_a_package(cell))
    records: dict[Cell, Record] = {}
    found: dict[str, Case] = {}
    fingerprints: dict[str, Mapping[str, Any]] = {}
    by_id = {cell.id: cell for cell in wanted}
    engine = Engine(Plan(matrix=asked, cells=wanted), {suite.name: suite})
    with closing(engine):
        engine.submit(wanted)
        engine.drain()
        for event in results(engine, notify):
            if isinstance(event, TargetReady):
                fingerprints[event.target] = event.fingerprint
            elif isinstance(event, Finished):
                cell = by_id[event.record.cell]
                records[cell] = event.record
        for cell in wanted:
            case = engine.case_of(CellTask(cell=cell))
            if isinstance(case, Case):
                found[cell.id] = case
    return Proof(
        records=records,
        cases=found,
        targets={target.name: target for target in asked.targets},
        fingerprints=fingerprints,
        simulated=simulated_of(asked.targets, fingerprints),
    )


def _with_cpu(matrix: Matrix) -> Matrix:
    """Return the matrix with a target of the CPU provider: every package has a variant for it."""
    if any(target.provider == (CPU_PROVIDER,) for target in matrix.targets):
        return matrix
    names = {target.name for target in matrix.targets}
    cpu = Target(name="cpu" if "cpu" not in names else "cpu-of-the-package", provider=(CPU_PROVIDER,))
    return msgspec.structs.replace(matrix, targets=(*matrix.targets, cpu))


def _with_plain(axes: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    scenarios = axes.get("scenario", ())
    return {**axes, "scenario": tuple(dict.fromkeys((PLAIN, *scenarios)))}


def _fits_a_package(cell: Cell) -> bool:
    changed = any(cell.axis(axis) != AXIS_DEFAULTS[axis] for axis in _NOT_IN_A_PACKAGE)
    return not changed and cell.axis("scenario") in _SCENARIOS
