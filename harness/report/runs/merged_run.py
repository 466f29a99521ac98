"""Several runs as one: what is shown, and what each run has of its own."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.core.records.fault import Fault
from harness.core.records.record import Record
from harness.core.records.run_info import TargetExit
from harness.core.records.selection_study import SelectionStudy
from harness.core.records.trace import Trace
from harness.core.records.verdict import Verdict
from harness.core.timing.latency import Latency
from harness.report.runs.compiled_grid import CompiledBy, CompiledCell


class RunEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment in which a target ran, with the name of the run it comes from."""

    target: str
    run: str
    fingerprint: dict[str, object]


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """A cell with different results in several runs.

    Attributes:
        cell: Its id.
        target: The target's own name.
        verdicts: ``(run, verdict)`` of each run with a result; equal if only figures or placements differ.
    """

    cell: str
    target: str
    verdicts: tuple[tuple[str, Verdict], ...]

    @property
    def is_open(self) -> bool:
        """Return whether the runs differ in the verdict."""
        return len({verdict for _, verdict in self.verdicts}) > 1


class RunFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that triage found in one run."""

    folder: Path
    run: str
    fault: Fault


class MergedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One or several runs with their cells side by side.

    If runs differ in a cell of a target, this target appears once for each of these runs, named
    ``target @ run`` in ``Record.target`` and ``RunEnvironment.target``; ``Record.cell`` stays the id.

    Attributes:
        matrix: The matrix of the first run, as it was read.
        records: ``(run folder, record)`` pairs, in the order of the runs; planned cells without a record
            follow those of their run, as ``not_run``.
        planned: Cells planned in all runs together, each counted once for each shown target.
        complete: True if all runs are complete and every planned cell has a result.
        environments: One entry per target; several if runs differ in it.
        required: Required targets, by their shown names.
        notices: Problems in the data, one sentence each.
        faults: The faults that triage found in each run, in the order of the runs.
        traces: The traces of cells, likewise.
        policies: What selection policies choose, with the name of the run.
        foreign: Number of records of cells outside every plan; they are left out.
        known: Run folder -> cell -> why the matrix expects its failure.
        told: The ``notices`` about differences between claims of records and derived facts.
        exits: Shown target -> how its processes ended that were asked to; of several runs the worst.
        simulated: Shown target -> the program that stands for its accelerator, for targets with one.
        repeated_latencies: Cell -> its further latencies, from results that occurred again in another run.
        contradictions: The ``notices`` about conflicts.
    """

    matrix: dict[str, object]
    folders: tuple[Path, ...]
    names: tuple[str, ...]
    records: tuple[tuple[Path, Record], ...]
    planned: int
    complete: bool
    environments: tuple[RunEnvironment, ...]
    required: frozenset[str]
    conflicts: tuple[Conflict, ...]
    notices: tuple[str, ...]
    faults: tuple[RunFault, ...] = ()
    traces: tuple[Trace, ...] = ()
    policies: tuple[tuple[str, SelectionStudy], ...] = ()
    compiled: Mapping[CompiledBy, CompiledCell] = {}
    foreign: int = 0
    told: tuple[str, ...] = ()
    known: Mapping[Path, Mapping[str, str]] = {}
    exits: dict[str, TargetExit] = {}
    simulated: dict[str, str] = {}
    repeated_latencies: dict[str, tuple[Latency, ...]] = {}
    contradictions: tuple[str, ...] = ()

    @property
    def matrix_path(self) -> str:
        """The path of the matrix file that the run was given; empty if unknown."""
        path = self.matrix.get("path")
        return path if isinstance(path, str) else ""

    @property
    def matrix_file(self) -> str:
        """The last part of this path, on either kind of system."""
        return re.split(r"[/\\]", self.matrix_path)[-1]


def target_settings(matrix: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return target -> its settings in the matrix; empty for a matrix in another format."""
    listed = matrix.get("targets")
    targets = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {str(each.get("name")): each for each in targets}
