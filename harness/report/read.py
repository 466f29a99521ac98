"""A run folder, read back: ``run.json`` and ``records.jsonl``."""

from pathlib import Path

import msgspec

from harness.core.errors import Problem, UsageError
from harness.core.record import SCHEMA, Record, RunInfo, decode_record

_SHOWN_PROBLEMS = 5


class RunData(msgspec.Struct, frozen=True, kw_only=True):
    """What one run folder holds.

    Attributes:
        folder: The run folder.
        info: Contents of ``run.json``.
        records: One record per cell, in the order in which they were written.
        torn: True where the last line of ``records.jsonl`` was cut off while it was being written.
    """

    folder: Path
    info: RunInfo
    records: tuple[Record, ...]
    torn: bool


def read_run(folder: Path) -> RunData:
    """Read a run folder; a torn last line is tolerated and told, every other damage is an error.

    Raises:
        UsageError: A file is missing or unreadable, is not of this schema, or one cell has two
            different records.
    """
    if not folder.is_dir():
        raise UsageError(
            Problem(where=str(folder), what="there is no such run folder", hint="give the --out of a run")
        )
    info = _read_info(folder / "run.json")
    records, torn = _read_records(folder / "records.jsonl")
    return RunData(folder=folder, info=info, records=records, torn=torn)


def _read_info(path: Path) -> RunInfo:
    raw = _read_bytes(path)
    try:
        info = msgspec.json.decode(raw, type=RunInfo)
    except msgspec.DecodeError as error:
        raise UsageError(Problem(where=str(path), what=f"not the description of a run: {error}")) from error
    if info.schema != SCHEMA:
        raise UsageError(_other_schema(str(path), info.schema))
    return info


def _read_records(path: Path) -> tuple[tuple[Record, ...], bool]:
    lines = _read_bytes(path).split(b"\n")
    records: dict[str, Record] = {}
    problems: list[Problem] = []
    torn = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        try:
            record = decode_record(line)
        except msgspec.ValidationError as error:
            problems.append(Problem(where=where, what=f"not a record: {error}"))
            continue
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            # Only what follows the last newline can be a write that was cut off.
            if number == len(lines):
                torn = True
            else:
                problems.append(Problem(where=where, what=f"not JSON: {error}"))
            continue
        if record.schema != SCHEMA:
            problems.append(_other_schema(where, record.schema))
        elif records.setdefault(record.cell, record) != record:
            problems.append(Problem(where=where, what=f"a second, different record of {record.cell!r}"))
    if problems:
        raise UsageError(*_bounded(problems, path))
    return tuple(records.values()), torn


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        hint = "the folder is not a run, or the run ended before its first result"
        raise UsageError(Problem(where=str(path), what="the file is missing", hint=hint)) from error
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or error}"
        raise UsageError(Problem(where=str(path), what=what)) from error


def _other_schema(where: str, schema: int) -> Problem:
    return Problem(
        where=where,
        what=f"schema {schema}, but this version reads schema {SCHEMA}",
        hint="render it with the version of ep-harness that ran it",
    )


def _bounded(problems: list[Problem], path: Path) -> list[Problem]:
    if len(problems) <= _SHOWN_PROBLEMS:
        return problems
    more = Problem(where=str(path), what=f"{len(problems) - _SHOWN_PROBLEMS} more lines are damaged")
    return [*problems[:_SHOWN_PROBLEMS], more]
