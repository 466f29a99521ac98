"""Run folders, read back: description, plan, records, captured output, and the faults that triage found."""

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from harness.core.files.reading import (
    MOST_FILE,
    MOST_LINE,
    MOST_RECORDS,
    open_regular,
    read_regular,
    size_text,
)
from harness.core.records.fault import FAULTS_FILE, TRIAGE_FOLDER, Fault, decode_faults
from harness.core.records.record import SCHEMA, Record, decode_record
from harness.core.records.run_info import RunInfo
from harness.core.records.selection_study import POLICIES_FILE, SelectionStudy, decode_selection
from harness.core.records.trace import TRACE_FILE, TRACE_FOLDER, Trace, decode_traces
from harness.core.text.errors import Problem, UsageError, one_line
from harness.core.text.later_words import what_is_wrong
from harness.report.runs.record_claims import Derived, is_plan_of

_PLAN = "plan.txt"

EDGE_BYTES = 2048
"""Size of the shown beginning, and of the shown end, of captured output, in bytes."""

_SHOWN_PROBLEMS = 5

_MOST_DAMAGED = 10_000
"""Number of lines without a record beyond which a file is no list of records."""

_MOST_PLANNED = 5_000_000
"""Lines of a plan: the cells of a run."""

_Part = TypeVar("_Part")


class RunData(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of one run folder.

    Attributes:
        records: One record per cell, in the order in which they were written.
        torn: True if the last line of ``records.jsonl`` was cut off while it was written.
        planned: Ids of the planned cells; None if an older version wrote no ``plan.txt``.
        damaged: Lines of ``records.jsonl`` without a record, by number; a user of the run reports them.
        faults: The faults that triage found; empty if the run was not triaged.
        damaged_faults: Lines of ``triage/faults.jsonl`` without a fault, by number.
        traces: The traces of its cells; empty if none was traced.
        policies: What selection policies choose there; empty if nobody tried.
        foreign: Number of records of cells outside the plan; they are left out.
        told: Differences between claims of the records and derived facts; a user of the run reports them.
        known: Cell -> why the matrix expects its failure.
        simulated: Target -> the program that stands for its accelerator, for targets with one.
    """

    folder: Path
    info: RunInfo
    records: tuple[Record, ...]
    torn: bool
    planned: tuple[str, ...] | None = None
    damaged: tuple[Problem, ...] = ()
    faults: tuple[Fault, ...] = ()
    damaged_faults: tuple[Problem, ...] = ()
    traces: tuple[Trace, ...] = ()
    policies: tuple[SelectionStudy, ...] = ()
    foreign: int = 0
    told: tuple[str, ...] = ()
    known: Mapping[str, str] = {}
    simulated: dict[str, str] = {}


def run_folders(path: Path) -> tuple[Path, ...]:
    """Return the folder itself if it is a run, else the runs directly below it, sorted by name.

    So one path names all shards of a night in one folder.

    Raises:
        UsageError: The folder does not exist, or has no run in it.
    """
    hint = "give the --out of a run, or a folder of runs"
    if not path.is_dir():
        raise UsageError.at(path, "there is no such run folder", hint)
    if (path / "run.json").exists() or (path / "records.jsonl").exists():
        return (path,)
    found = tuple(sorted(each.parent for each in path.glob("*/run.json")))
    if not found:
        what = "no run: neither run.json nor folders with one"
        raise UsageError.at(path, what, hint)
    return found


def read_run(folder: Path | str, *, compact: bool = False) -> RunData:
    """Read a run folder; a line without a record is left out and listed in ``damaged``.

    ``harness.report.runs.record_claims`` derives verdict, family, expectation and provider of each record.

    Args:
        folder: The run folder.
        compact: Leave out frontiers, which only a second judgement needs, and share equal parts: 100,000
            records then take a third of the memory.

    Raises:
        UsageError: A file is missing, unreadable, of another schema or without any record, or one cell has
            two different records.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError.at(folder, "there is no such run folder", "give the --out of a run")
    info = _read_info(folder / "run.json")
    planned = _read_plan(folder / _PLAN, info.plan)
    derived = Derived(info, planned)
    records, torn, damaged = _read_records(folder / "records.jsonl", derived, _Compact() if compact else None)
    foreign, told = derived.foreign, [*derived.told()]
    if planned is None and info.complete and not is_plan_of(info, records):
        info = msgspec.structs.replace(info, complete=False)
        foreign = max(1, foreign)
        told.append(
            f"there is no {_PLAN}, and the cells of the records are not those of the plan of run.json"
        )
    faults, damaged_faults = _read_faults(folder)
    traces = _read_part(folder / TRACE_FOLDER / TRACE_FILE, decode_traces, told)
    policies = _read_part(folder / POLICIES_FILE, decode_selection, told)
    return RunData(
        folder=folder,
        info=msgspec.structs.replace(info, exits=derived.exits()),
        simulated=derived.simulated(),
        records=records,
        torn=torn,
        planned=planned,
        damaged=tuple(damaged),
        faults=faults,
        damaged_faults=damaged_faults,
        traces=traces,
        policies=policies,
        foreign=foreign,
        told=tuple(told),
        known=derived.known,
    )


def captured_output(run_folder: Path, record: Record) -> str:
    """Return an excerpt of ``artifacts/<digest>/output.txt``; empty if there is none.

    The path comes from a record, so a path out of the run folder (``..``, absolute, a symbolic link) is not
    followed.
    """
    if not record.artifacts:
        return ""
    try:
        root = run_folder.resolve()
        path = (root / record.artifacts / "output.txt").resolve()
        if not (path.is_relative_to(root) and path.is_file()):
            return ""
        size = path.stat().st_size
        with open_regular(path, sys.maxsize) as file:
            if size <= 2 * EDGE_BYTES:
                return _text(file.read(2 * EDGE_BYTES))
            head = file.read(EDGE_BYTES)
            file.seek(size - EDGE_BYTES)
            tail = file.read(EDGE_BYTES)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return ""
    return f"{_text(head)}\n… {size - 2 * EDGE_BYTES:,} bytes left out …\n{_text(tail)}"


def _read_info(path: Path) -> RunInfo:
    with _reading(path):
        raw = read_regular(path, MOST_FILE)
    try:
        info = msgspec.json.decode(raw, type=RunInfo)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError.at(path, f"not the description of a run: {error}") from error
    if info.schema != SCHEMA:
        raise UsageError(_other_schema(str(path), info.schema))
    return info


def _read_plan(path: Path, digest: str) -> tuple[str, ...] | None:
    if not path.exists():
        return None
    with _reading(path):
        raw = read_regular(path, MOST_FILE)
    if hashlib.sha256(raw).hexdigest() != digest:
        hint = "restore it, or remove it: planned cells without a result are then counted, but not named"
        raise UsageError.at(path, "not the plan that run.json names", hint)
    if raw.count(b"\n") > _MOST_PLANNED:
        raise UsageError.at(path, f"more than {_MOST_PLANNED:,} lines, the bound of a plan")
    return tuple(raw.decode("utf-8", errors="replace").splitlines())


def _read_records(
    path: Path, derived: Derived, compact: "_Compact | None"
) -> tuple[tuple[Record, ...], bool, list[Problem]]:
    """Return the derived records, whether the last line is torn, and the lines without a record."""
    records: dict[str, Record] = {}
    problems: list[Problem] = []
    damaged: list[Problem] = []
    torn = False
    with _reading(path), open_regular(path, MOST_RECORDS) as lines:
        for number, line in _filled(lines, path):
            if len(damaged) > _MOST_DAMAGED:
                raise UsageError(damaged[0], _more(path, len(damaged) - 1))
            where = f"{path}: line {number}"
            try:
                record = decode_record(line)
            except msgspec.ValidationError as error:
                damaged.append(Problem(where=where, what=f"not a record: {what_is_wrong(error)}"))
                continue
            except msgspec.DecodeError as error:
                # Only text after the last newline can be a write that was cut off.
                if line.endswith(b"\n"):
                    damaged.append(Problem(where=where, what=f"not JSON: {error}"))
                else:
                    torn = True
                continue
            if record.schema != SCHEMA:
                problems.append(_other_schema(where, record.schema))
                continue
            if (own := derived.of(record)) is None:
                continue
            record = own if compact is None else compact.of(own)
            if records.setdefault(record.cell, record) != record:
                problems.append(Problem(where=where, what=f"a second, different record of {record.cell!r}"))
    if problems or (damaged and not records):
        problems = problems or damaged
        more = len(problems) - _SHOWN_PROBLEMS
        rest = [_more(path, more)] if more > 0 else []
        raise UsageError(*problems[:_SHOWN_PROBLEMS], *rest)
    return tuple(records.values()), torn, damaged


def _filled(lines: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with more than blanks, and their numbers; each only if it is no longer than the bound.

    Raises:
        UsageError: One is longer.
    """
    number = 0
    while line := lines.readline(MOST_LINE + 1):
        number += 1
        if len(line) > MOST_LINE:
            what = f"longer than {size_text(MOST_LINE)}, the bound of a record"
            raise UsageError.at(f"{path}: line {number}", what)
        if line.strip():
            yield number, line


def _more(path: Path, count: int) -> Problem:
    return Problem(where=str(path), what=f"{count} more lines are damaged")


def _read_faults(run_folder: Path) -> tuple[tuple[Fault, ...], tuple[Problem, ...]]:
    """Return the faults of a run, and the lines without one; both empty if it was not triaged.

    Of two faults with one representative the later one counts: its cell was triaged again. A file that cannot
    be read costs the faults, never the report.
    """
    path = run_folder / TRIAGE_FOLDER / FAULTS_FILE
    try:
        content = read_regular(path, MOST_FILE)
    except FileNotFoundError:
        return (), ()
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or error}"
        return (), (Problem(where=str(path), what=what),)
    found: dict[str, Fault] = {}
    damaged: list[Problem] = []
    for number, fault in decode_faults(content):
        if isinstance(fault, str):
            damaged.append(Problem(where=f"{path}: line {number}", what=fault))
        else:
            found[fault.representative] = fault
    return tuple(found.values()), tuple(damaged)


def _read_part(
    path: Path, decode: Callable[[bytes], tuple[_Part, ...]], told: list[str]
) -> tuple[_Part, ...]:
    """Return what a file beside the records has; one that cannot be read costs that, and never the report."""
    try:
        return decode(read_regular(path, MOST_FILE))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        told.append(f"{path}: not shown: {one_line(error, 200)}")
        return ()


class _Compact:
    """Makes records smaller."""

    def __init__(self) -> None:
        self._seen: dict[bytes, Any] = {}
        self._encoder = msgspec.json.Encoder()

    def of(self, record: Record) -> Record:
        """Return the record without frontiers; larger parts are shared with equal ones of other records."""
        return msgspec.structs.replace(
            record,
            suite=sys.intern(record.suite),
            target=sys.intern(record.target),
            provider=sys.intern(record.provider),
            fed=sys.intern(record.fed),
            axes=self._shared(b"a", record.axes),
            placement=self._shared(b"p", record.placement),
            content=self._shared(b"c", record.content),
            policy=self._shared(b"m", record.policy),
            outputs=tuple(msgspec.structs.replace(output, frontier=()) for output in record.outputs),
        )

    def _shared(self, kind: bytes, part: _Part) -> _Part:
        if part is None:
            return part
        shared: _Part = self._seen.setdefault(kind + self._encoder.encode(part), part)
        return shared


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn the system's errors about a file into a message for users."""
    try:
        yield
    except FileNotFoundError as error:
        hint = "the folder is not a run, or the run ended before its first result"
        raise UsageError.at(path, "the file is missing", hint) from error
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or error}"
        raise UsageError.at(path, what) from error


def _other_schema(where: str, schema: int) -> Problem:
    return Problem(
        where=where,
        what=f"schema {schema}, but this version reads schema {SCHEMA}",
        hint="render it with the version of ep-harness that ran it",
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace").replace("\r\n", "\n").strip("\n")
