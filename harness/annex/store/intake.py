"""From a run folder to the rows of the store."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from harness.annex.store.columns import RECORD_COLUMNS
from harness.annex.store.scan import FoundRun, content
from harness.core.records.record import Record
from harness.core.text.errors import UsageError, one_line
from harness.report.cells.column import column_of
from harness.report.changes.run_comparison import read_side
from harness.report.history.history_rows import TREND_COLUMNS, run_row, trend_rows
from harness.report.runs.merged_run import MergedRun

Columns = Mapping[str, Sequence[object]]
"""Name of a column -> its values."""


class RunRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one run, by table.

    Attributes:
        problem: Why it cannot be read; empty if it can. Then it has a row in ``run`` and nothing else.
        tables: Table -> columns; ``result`` has those of ``cell`` as well.
    """

    records: int
    problem: str
    tables: dict[str, Columns]


def read_rows(number: int, found: FoundRun, digest: str) -> RunRows:
    """Read a run, whose id in the store is ``number``; an error concerns only this run."""
    known = {"id": number, "name": found.name, "state": found.state, "content": digest}
    try:
        return _rows(known, read_side(found.path))
    except (UsageError, OSError) as error:
        return _unreadable(known, one_line(str(error).partition("\n")[0]))
    except Exception as error:  # noqa: BLE001 - affects this run alone
        return _unreadable(known, f"an exception of the harness: {type(error).__name__}: {one_line(error)}")


def content_or_nothing(found: FoundRun) -> str:
    """Return a digest of the run's files; empty if they cannot be read."""
    try:
        return content(found)
    except OSError:
        return ""


def _rows(known: Mapping[str, object], run: MergedRun) -> RunRows:
    records = [record for _, record in run.records]
    row = run_row(run, otherwise="")
    number = known["id"]
    own = {**known, **msgspec.structs.asdict(row), "records": len(records), "problem": None}
    environments = {
        (each.target, msgspec.json.encode(each.fingerprint, order="deterministic").decode())
        for each in run.environments
    }
    trend = list(trend_rows(records, complete=run.complete))
    return RunRows(
        records=len(records),
        problem="",
        tables={
            "run": {name: [value] for name, value in own.items()},
            "environment": _with(number, ("target", "fingerprint"), sorted(environments)),
            "trend": _with(number, tuple(TREND_COLUMNS), trend),
            "result": _results(number, row.matrix, records),
        },
    )


def _unreadable(known: Mapping[str, object], problem: str) -> RunRows:
    without = {"matrix": "", "first": "", "last": "", "planned": 0, "not_run": 0, "records": 0}
    own = {**known, **without, "complete": False, "problem": problem}
    return RunRows(records=0, problem=problem, tables={"run": {name: [value] for name, value in own.items()}})


def _with(number: object, names: Sequence[str], rows: Sequence[Iterable[object]]) -> Columns:
    columns = (
        dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {n: [] for n in names}
    )
    return {"run": [number] * len(rows), **columns}


def _results(number: object, matrix: str, records: Sequence[Record]) -> Columns:
    labels: dict[bytes, tuple[str, str]] = {}
    shown = [_label_and_axes(record, labels) for record in records]
    return {
        "run": [number] * len(records),
        "matrix": [matrix] * len(records),
        "cell": [record.cell for record in records],
        "suite": [record.suite for record in records],
        "model": [record.model for record in records],
        "target": [record.target for record in records],
        "label": [label for label, _ in shown],
        "axes": [axes for _, axes in shown],
        **{column.name: [column.value(record) for record in records] for column in RECORD_COLUMNS},
    }


def _label_and_axes(record: Record, known: dict[bytes, tuple[str, str]]) -> tuple[str, str]:
    """Return the column of a record in words, and its axes as JSON; equal ones are computed once."""
    axes = msgspec.json.encode(record.axes)
    key = record.target.encode() + b"\0" + axes
    if key not in known:
        known[key] = column_of(record).label, axes.decode()
    return known[key]
