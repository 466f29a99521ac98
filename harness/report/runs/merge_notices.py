"""What a reader of several runs as one has to know about their data."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from harness.core.text.counted import plural
from harness.core.text.errors import Problem, one_line
from harness.report.runs.merged_run import Conflict
from harness.report.runs.read import RunData

NamedRuns = Sequence[tuple[str, RunData]]


def claims_told(named: NamedRuns) -> Iterator[str]:
    """Yield the differences between claims of records and derived facts."""
    yield from (f"{name}: {line}." for name, run in named for line in run.told)


def merge_notices(named: NamedRuns, repeated: int, unnamed: int) -> Iterator[str]:
    """Yield problems in the data, one sentence each.

    ``repeated`` is the number of results that occurred again, ``unnamed`` that of planned cells without a
    result that no run folder names.
    """
    yield from claims_told(named)
    for name, run in named:
        if run.torn:
            yield (
                f"{name}: the last line of records.jsonl is torn: the run was cut off while writing it; "
                f"that cell counts as not run."
            )
        if run.damaged:
            yield (
                f"{name}: {plural(len(run.damaged), 'line')} of records.jsonl without a record "
                f"(first: {_which(run.damaged[0])}); a cell that has no other record counts as not run."
            )
        if run.damaged_faults:
            yield (
                f"{name}: {plural(len(run.damaged_faults), 'line')} of triage/faults.jsonl without a fault "
                f"(first: {_which(run.damaged_faults[0])}); what it said is not shown."
            )
        if len(run.records) > run.info.cells:
            planned = f"{run.info.cells:,} that were planned"
            yield f"{name}: records.jsonl has {len(run.records):,} cells, more than the {planned}."
    if repeated:
        yield (
            f"{plural(repeated, 'result')} of an earlier run occurred again in a later one: such results "
            f"count once, with the times of the earlier run."
        )
    if unnamed:
        yield (
            f"{unnamed:,} planned cells have no result; their run folder does not name them, so they are "
            f"missing in the rows of the targets."
        )


def _which(problem: Problem) -> str:
    """Return the number of a problem's line, and what is wrong with it."""
    return f"{problem.where.rpartition(': ')[2]}, {one_line(problem.what, 160)}"


def conflict_notices(conflicts: Iterable[Conflict], *, as_one: bool) -> Iterator[str]:
    """Yield a sentence for each target whose runs differ; for ``as_one`` see ``merge``."""
    by_target: dict[str, list[Conflict]] = defaultdict(list)
    for conflict in conflicts:
        by_target[conflict.target].append(conflict)
    for target, its in by_target.items():
        verdicts = sum(conflict.is_open for conflict in its)
        what_then = (
            f"these count as not run, such as {next(one.cell for one in its if one.is_open)}"
            if as_one and verdicts
            else "the earlier result counts"
            if as_one
            else "the target is shown once for each run, and no result was preferred"
        )
        yield (
            f"CONFLICT: the runs differ in {plural(len(its), 'cell')} of target {target}, {verdicts:,} of "
            f"them in the verdict; {what_then}."
        )
