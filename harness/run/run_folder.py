"""The run folder: `run.json`, `plan.txt`, `records.jsonl`, written by the one process that owns the run."""

import contextlib
import os
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any

import filelock
import msgspec

from harness.core.errors import Problem, UsageError, one_line
from harness.core.record import SCHEMA, Record, decode_record, encode_record
from harness.core.run_info import RunInfo
from harness.engine.events import TargetReady
from harness.plan.plan import Plan
from harness.run.artifacts import lost
from harness.run.resume import check_same_environment, check_same_plan

RECORDS = "records.jsonl"
PLAN = "plan.txt"
"""The ids of the planned cells, so that a report can name those without a record."""

_GO_ON = "records written so far are kept; free some space, then go on: --resume"


class RunFolder:
    """An open run folder. Records are on the disk when ``add`` returns, whatever dies then.

    Args:
        path: The folder; exists.
        plan: What the run is going to do.
        targets: Environments that are known already.
        added: Records that are there already.

    Raises:
        UsageError: The folder cannot be written, or another process writes it.
    """

    def __init__(
        self, path: Path, plan: Plan, targets: dict[str, dict[str, Any]] | None = None, added: int = 0
    ) -> None:
        self.path = path
        self._plan = plan
        self._targets = dict(targets or {})
        self._added = added
        self._lock = filelock.FileLock(path / "run.lock", timeout=0)
        with _writing(path):
            try:
                self._lock.acquire()
            except filelock.Timeout as error:
                what = "another process is writing this run"
                raise UsageError(Problem(where=str(path), what=what)) from error
        with _writing(path):
            (path / PLAN).write_text(plan.listing(), encoding="ascii", newline="\n")
        self._describe()
        with _writing(path):
            self._records = (path / RECORDS).open("ab")

    @classmethod
    def create(cls, path: Path, plan: Plan) -> "RunFolder":
        """Make the folder of a new run.

        Raises:
            UsageError: There is a run in it already, or it cannot be written.
        """
        if (path / "run.json").exists():
            raise UsageError(
                Problem(
                    where=str(path),
                    what="there is a run in this folder already",
                    hint="choose another folder, or go on with it: --resume",
                )
            )
        with _writing(path, hint="choose another folder"):
            path.mkdir(parents=True, exist_ok=True)
        return cls(path, plan)

    @classmethod
    def reopen(
        cls, path: Path, plan: Plan, info: RunInfo, recorded: int, again: Collection[str] = ()
    ) -> "RunFolder":
        """Open the folder of a run that was broken off, to add what is missing.

        Args:
            path: The folder.
            plan: The plan as it is now.
            info: What ``run.json`` says.
            recorded: Whole records in ``records.jsonl`` that stay there.
            again: Ids of cells that are tried again; their records go.

        Raises:
            UsageError: The matrix or the models have changed, or the folder cannot be written.
        """
        check_same_plan(info, plan, str(path))
        folder = cls(path, plan, info.targets, recorded)
        with _writing(path):
            _mend(path / RECORDS)
            if again:
                folder._records.close()
                _remove(path / RECORDS, again)
                folder._records = (path / RECORDS).open("ab")
        return folder

    def ready(self, event: TargetReady) -> None:
        """Note a target's environment.

        Raises:
            UsageError: It is not the environment in which the run began.
        """
        problem = {"unavailable": event.problem} if event.problem else {}
        environment = {**event.fingerprint, **problem}
        if event.target in self._targets:
            check_same_environment(event.target, self._targets[event.target], environment, str(self.path))
            return
        self._targets[event.target] = environment
        self._describe()

    def add(self, *records: Record) -> tuple[Record, ...]:
        """Append records; the disk is waited for once.

        Returns:
            The records as they were written: one that cannot be written has lost its verdict.
        """
        if not records:
            return ()
        lines = [self._line(record) for record in records]
        with _writing(self.path):
            self._records.write(b"".join(line for _, line in lines))
            self._records.flush()
            os.fsync(self._records.fileno())
        self._added += len(records)
        return tuple(record for record, _ in lines)

    def _line(self, record: Record) -> tuple[Record, bytes]:
        try:
            return record, encode_record(record) + b"\n"
        except Exception as error:  # noqa: BLE001 - it costs this cell alone
            without = lost(self.path, record, error)
            return without, encode_record(without) + b"\n"

    def finish(self) -> bool:
        """Close the files; whether every planned cell has its record."""
        with _writing(self.path):
            self._records.close()
        self._describe()
        self._lock.release()
        with contextlib.suppress(OSError):
            (self.path / "run.lock").unlink()
        return self._complete

    def resume_command(self, *selection: str) -> str:
        """What goes on with this run where it was broken off; ``selection`` is what chose its cells."""
        words = ["ep-harness", "run", self._plan.matrix.path, "--resume", str(self.path), *selection]
        return shlex.join(words)

    @property
    def _complete(self) -> bool:
        return self._added == len(self._plan.cells)

    def _describe(self) -> None:
        info = RunInfo(
            schema=SCHEMA,
            plan=self._plan.digest,
            cells=len(self._plan.cells),
            matrix=msgspec.to_builtins(self._plan.matrix),
            targets=self._targets,
            complete=self._complete,
            shard=self._plan.shard,
        )
        with _writing(self.path):
            # Beside it, then renamed: whoever reads meanwhile sees a whole file.
            fresh = self.path / "run.json.new"
            fresh.write_bytes(msgspec.json.format(msgspec.json.encode(info)) + b"\n")
            os.replace(fresh, self.path / "run.json")  # noqa: PTH105 - replaces on Windows too


def _mend(records: Path) -> None:
    """Make the file end with a whole line: a write that was cut off goes, a lost newline comes back."""
    if not records.exists():
        return
    with records.open("r+b") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole == len(data):
            return
        try:
            decode_record(data[whole:])
        except msgspec.DecodeError:
            file.truncate(whole)
        else:
            file.write(b"\n")


def _remove(records: Path, cells: Collection[str]) -> None:
    """Remove the records of cells that are tried again."""
    fresh = records.with_name("records.jsonl.new")
    with records.open("rb") as lines, fresh.open("wb") as file:
        file.writelines(line for line in lines if decode_record(line).cell not in cells)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, records)  # noqa: PTH105 - replaces on Windows too


class _writing:  # noqa: N801 - reads as a statement: with _writing(path)
    """Turns what the system says about a folder into one line for people."""

    def __init__(self, path: Path, hint: str = _GO_ON) -> None:
        self._path = path
        self._hint = hint

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise UsageError(
                Problem(
                    where=str(self._path),
                    what=f"the run folder cannot be written: {one_line(error.strerror or error)}",
                    hint=self._hint,
                )
            ) from error
