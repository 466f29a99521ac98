"""Several runs merged into one: equal results once, different ones side by side, missing ones by name."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from harness.core.records.cell import AXIS_DEFAULTS, parse_cell_id
from harness.core.records.record import SCHEMA, Record
from harness.core.records.run_info import ShardInfo, TargetExit
from harness.core.records.verdict import Verdict
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.timing.latency import Latency
from harness.report.runs.compiled_grid import compiled_cells
from harness.report.runs.merge_notices import NamedRuns, claims_told, conflict_notices, merge_notices
from harness.report.runs.merged_run import Conflict, MergedRun, RunEnvironment, RunFault, target_settings
from harness.report.runs.read import RunData
from harness.report.words.figures import first_of

_SHOWN_SHARDS = 10
_RESULT = attrgetter("verdict", "expected", "cause", "phase", "placement", "outputs", "golden", "effect")
"""What a record says about the EP; messages do not count, because they may contain addresses and times."""
_NO_RESULT = "planned, but the run has no result for it"
_CONFLICT = "its runs hold different results"
_REASON_CHARS = 300


def merge(runs: Sequence[RunData], *, as_one: bool = False) -> MergedRun:
    """Put the cells of several runs side by side; cells with the same result count once.

    With ``as_one`` no target is shown twice: a cell with different verdicts counts as not run; for other
    differences the earlier result counts.
    """
    names = _names(runs)
    named = list(zip(names, runs, strict=True))
    conflicts = tuple(_conflicts(named))
    apart = set() if as_one else {conflict.target for conflict in conflicts}
    records, repeated = _side_by_side(named, apart)
    open_cells = {one.cell: one for one in conflicts if one.is_open} if as_one else {}
    records = [(folder, _open(record, open_cells.get(record.cell))) for folder, record in records]
    contradictions = tuple(conflict_notices(conflicts, as_one=as_one))
    missing = list(_named_missing(named, apart))
    away = dict(_missing_shards(runs))
    unnamed = _unnamed_missing(runs)
    known = [*records, *missing]
    return MergedRun(
        matrix=runs[0].info.matrix,
        folders=tuple(run.folder for run in runs),
        names=names,
        records=tuple(known),
        planned=len(known) + unnamed + sum(away.values()),
        # Not whether each run is complete: another one may have what a dead one lacks.
        complete=not (missing or unnamed or away or open_cells) and (len(runs) > 1 or _is_complete(runs[0])),
        environments=_environments(named, apart),
        required=frozenset(_required(named, apart)),
        conflicts=conflicts,
        notices=(
            *(f"{what}: {plural(cells, 'planned cell')} not run." for what, cells in away.items()),
            *merge_notices(named, repeated, unnamed),
            *contradictions,
        ),
        faults=tuple(
            RunFault(folder=run.folder, run=name, fault=fault) for name, run in named for fault in run.faults
        ),
        traces=tuple(trace for _, run in named for trace in run.traces),
        policies=tuple((name, study) for name, run in named for study in run.policies),
        compiled=compiled_cells(runs),
        foreign=sum(run.foreign for run in runs),
        told=tuple(claims_told(named)),
        known={run.folder: run.known for run in runs if run.known},
        exits=_exits(named, apart),
        simulated={
            _shown(target, name, apart): by for name, run in named for target, by in run.simulated.items()
        },
        contradictions=contradictions,
        repeated_latencies=_repeated_latencies(named) if len(named) > 1 else {},
    )


def _names(runs: Sequence[RunData]) -> tuple[str, ...]:
    """Return a name for each run: as many parts of its path, from the end, as make it unique."""
    parts = [run.folder.parts or (".",) for run in runs]
    names = [""] * len(runs)
    for length in range(1, max(map(len, parts)) + 1):
        tails = ["/".join(part[-length:]) for part in parts]
        counts = Counter(tails)
        names = [name or (tail if counts[tail] == 1 else "") for name, tail in zip(names, tails, strict=True)]
    # A run without a unique name is the same folder, given twice.
    return tuple(name or "/".join(part) for name, part in zip(names, parts, strict=True))


def _conflicts(named: NamedRuns) -> Iterator[Conflict]:
    first: dict[str, Record] = {}
    differ: dict[str, str] = {}
    for _, run in named:
        for record in run.records:
            if record.verdict is Verdict.NOT_RUN:
                continue
            other = first.setdefault(record.cell, record)
            if other != record and _RESULT(other) != _RESULT(record):
                differ[record.cell] = record.target
    if not differ:
        return
    found: dict[str, list[tuple[str, Verdict]]] = defaultdict(list)
    for name, run in named:
        for record in run.records:
            if record.cell in differ and record.verdict is not Verdict.NOT_RUN:
                found[record.cell].append((name, record.verdict))
    for cell, target in differ.items():
        yield Conflict(cell=cell, target=target, verdicts=tuple(found[cell]))


def _side_by_side(named: NamedRuns, apart: set[str]) -> tuple[list[tuple[Path, Record]], int]:
    """Return the records, and the number of equal ones that were left out."""
    kept: dict[tuple[str, str], tuple[Path, Record]] = {}
    repeated = 0
    for name, run in named:
        for record in run.records:
            shown = _shown(record.target, name, apart)
            key = (record.cell, shown)
            if key in kept and kept[key][1].verdict is not Verdict.NOT_RUN:
                repeated += record.verdict is not Verdict.NOT_RUN
            else:
                split = shown != record.target
                kept[key] = (run.folder, msgspec.structs.replace(record, target=shown) if split else record)
    return list(kept.values()), repeated


def _open(record: Record, conflict: Conflict | None) -> Record:
    """Return a record without a verdict, for a cell whose runs contradict each other."""
    if conflict is None:
        return record
    told = ", ".join(f"{verdict.value} in {run}" for run, verdict in conflict.verdicts)
    return Record(
        schema=SCHEMA,
        verdict=Verdict.NOT_RUN,
        family=Verdict.NOT_RUN.family,
        expected=True,
        reason=one_line(f"{_CONFLICT}: {told}", _REASON_CHARS),
        **{name: getattr(record, name) for name in ("cell", "suite", "model", "target", "provider", "axes")},
    )


def _is_complete(run: RunData) -> bool:
    return run.info.complete and not run.torn


def _repeated_latencies(named: NamedRuns) -> dict[str, tuple[Latency, ...]]:
    """Return the latencies of each cell except the first; a copy of a run has no further ones."""
    found: dict[str, dict[Latency, None]] = defaultdict(dict)
    for _, run in named:
        for record in run.records:
            if record.latency is not None:
                found[record.cell][record.latency] = None
    return {cell: tuple(its)[1:] for cell, its in found.items() if len(its) > 1}


def _shown(target: str, run: str, apart: set[str]) -> str:
    return f"{target} @ {run}" if target in apart else target


def _named_missing(named: NamedRuns, apart: set[str]) -> Iterator[tuple[Path, Record]]:
    """Yield a ``not_run`` record for each planned cell without a record, once for each shown target."""
    recorded = {
        (record.cell, _shown(record.target, name, apart)) for name, run in named for record in run.records
    }
    for name, run in named:
        own = {record.cell for record in run.records}
        seen = {record.target: record.provider for record in run.records}
        providers = seen | _providers(run.info.matrix)
        for cell in run.planned or ():
            if cell in own:
                continue
            suite, model, target, axes = parse_cell_id(cell)
            shown = _shown(target, name, apart)
            if (cell, shown) in recorded:
                continue
            recorded.add((cell, shown))
            yield (
                run.folder,
                Record(
                    schema=SCHEMA,
                    cell=cell,
                    suite=suite,
                    model=model,
                    target=shown,
                    provider=providers.get(target, ""),
                    verdict=Verdict.NOT_RUN,
                    family=Verdict.NOT_RUN.family,
                    expected=True,
                    axes={**AXIS_DEFAULTS, **axes},
                    reason=_NO_RESULT,
                ),
            )


def _providers(matrix: Mapping[str, object]) -> dict[str, str]:
    """Return target -> first provider of its chain."""
    chains = {name: settings.get("provider") for name, settings in target_settings(matrix).items()}
    return {name: str(chain[0]) for name, chain in chains.items() if isinstance(chain, list) and chain}


def _required(named: NamedRuns, apart: set[str]) -> Iterator[str]:
    for name, run in named:
        for target, settings in target_settings(run.info.matrix).items():
            if settings.get("required") is True:
                yield _shown(target, name, apart)


def _unnamed_missing(runs: Sequence[RunData]) -> int:
    """Count planned cells without a record, over all plans for which only the number of cells is known."""
    recorded: dict[str, set[str]] = {}
    planned: dict[str, int] = {}
    named = {run.info.plan for run in runs if run.planned is not None}
    for run in runs:
        recorded.setdefault(run.info.plan, set()).update(record.cell for record in run.records)
        planned[run.info.plan] = max(planned.get(run.info.plan, 0), run.info.cells)
    return sum(max(0, cells - len(recorded[plan])) for plan, cells in planned.items() if plan not in named)


def _missing_shards(runs: Sequence[RunData]) -> Iterator[tuple[str, int]]:
    """Yield ``(missing shards in words, their planned cells)`` for each plan in shards."""
    by_plan: dict[ShardInfo, dict[int, int]] = defaultdict(dict)
    for run in runs:
        if run.info.shard:
            whole = msgspec.structs.replace(run.info.shard, index=0)
            by_plan[whole][run.info.shard.index] = run.info.cells
    for whole, present in by_plan.items():
        away = [str(index) for index in range(1, whole.count + 1) if index not in present]
        if away:
            listed = ", ".join(first_of(away, _SHOWN_SHARDS))
            yield f"shard {listed} of {whole.count:,} is missing", whole.cells - sum(present.values())


def _environments(named: NamedRuns, apart: set[str]) -> tuple[RunEnvironment, ...]:
    found: list[RunEnvironment] = []
    for name, run in named:
        for target, fingerprint in run.info.targets.items():
            shown = _shown(target, name, apart)
            if not any(e.target == shown and e.fingerprint == fingerprint for e in found):
                found.append(RunEnvironment(target=shown, run=name, fingerprint=fingerprint))
            # Equal places share one column; each other one has its own.
            found += [
                RunEnvironment(target=f"{shown} at {place}", run=name, fingerprint=there.environment)
                for place, there in run.info.places.get(target, {}).items()
                if there.differs
            ]
    return tuple(found)


def _exits(named: NamedRuns, apart: set[str]) -> dict[str, TargetExit]:
    """Return how the processes of each shown target ended: summed counts, and the rest from the worst run."""
    found: dict[str, TargetExit] = {}
    for name, run in named:
        for target, one in run.info.exits.items():
            shown = _shown(target, name, apart)
            other = found.get(shown)
            if other is None:
                found[shown] = one
                continue
            worst = min((other, one), key=lambda each: (each.expected, not each.unclean))
            found[shown] = msgspec.structs.replace(
                worst, ended=other.ended + one.ended, unclean=other.unclean + one.unclean
            )
    return found
