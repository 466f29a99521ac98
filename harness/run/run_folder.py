"""The run folder: `run.json` with its `run.mac`, `plan.txt`, `records.jsonl`; one process writes it."""

import contextlib
import datetime as dt
import os
import shlex
from collections.abc import Collection
from pathlib import Path, PurePath
from typing import Any

import filelock
import msgspec

from harness.core.files.reading import MOST_RECORDS, open_regular
from harness.core.files.writing import aside, write_aside, writing
from harness.core.records.record import SCHEMA, Record, decode_record, encode_record
from harness.core.records.run_info import PlaceInfo, RunInfo, TargetExit
from harness.core.text.errors import UsageError
from harness.engine.tasks.events import PlaceChanged, ProcessEnded, TargetReady
from harness.plan.plan import Plan
from harness.run.artifacts import keep_exit, record_without_verdict
from harness.run.durable import DurableFile
from harness.run.exits import with_end
from harness.run.own_runs import write_info
from harness.run.resume import check_same_environment, check_same_plan

RECORDS = "records.jsonl"
PLAN = "plan.txt"
"""Ids of the planned cells; a report needs them to name cells without a record."""

_MOST_TOLD = 20
"""Number of times that a place was set aside that are kept, the latest ones."""

_CONTINUE = "records written so far are kept; free some space, then continue with --resume"
_AGAIN = "nothing has been recorded; free some space, or choose another --out, and start again"


def default_folder(matrix: PurePath) -> Path:
    """Return the run folder of a run that names none: with the time in UTC, so that names sort."""
    now = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{matrix.stem}-{now}"


class RunFolder:
    """An open run folder. When ``add`` returns, the records survive the end of this process, even if killed.

    The folder exists, and has ``added`` records; ``targets``, ``places`` and ``exits`` are their known facts.

    Raises:
        UsageError: The folder cannot be written, or another process writes it.
    """

    def __init__(
        self,
        path: Path,
        plan: Plan,
        targets: dict[str, dict[str, Any]] | None = None,
        added: int = 0,
        places: dict[str, dict[str, PlaceInfo]] | None = None,
        exits: dict[str, TargetExit] | None = None,
    ) -> None:
        self.path = path
        self._plan = plan
        self._targets = dict(targets or {})
        self._places = {target: dict(named) for target, named in (places or {}).items()}
        self._exits = dict(exits or {})
        self._added = added
        self._lock = filelock.FileLock(path / "run.lock", timeout=0)
        with _writing(path):
            try:
                self._lock.acquire()
            except filelock.Timeout as error:
                raise UsageError.at(path, "another process is writing this run") from error
            try:
                self.replan(plan)
                self._records = DurableFile(path / RECORDS)
            except BaseException:
                self._lock.release()
                raise

    @classmethod
    def create(cls, path: Path, plan: Plan) -> "RunFolder":
        """Create the folder of a new run.

        Raises:
            UsageError: It already has a run, or cannot be written.
        """
        if (path / "run.json").exists():
            hint = "choose another folder, or continue: --resume"
            raise UsageError.at(path, "there is a run in this folder already", hint)
        with writing(path, "the run folder", "choose another folder"):
            path.mkdir(parents=True, exist_ok=True)
        return cls(path, plan)

    @classmethod
    def reopen(
        cls, path: Path, plan: Plan, info: RunInfo, recorded: int, again: Collection[str] = ()
    ) -> "RunFolder":
        """Open the folder of an interrupted run, to add the missing records.

        ``recorded`` whole records stay; those of the cells to run ``again`` are removed.

        Raises:
            UsageError: The matrix or the models have changed, or the folder cannot be written.
        """
        check_same_plan(info, plan, str(path))
        folder = cls(path, plan, info.targets, recorded, info.places, info.exits)
        with _writing(path):
            _mend(path / RECORDS)
            if again:
                folder._records.close()
                _remove(path / RECORDS, again)
                folder._records = DurableFile(path / RECORDS)
        return folder

    def ready(self, event: TargetReady) -> None:
        """Record a target's environment.

        Raises:
            UsageError: The run began in another environment.
        """
        problem = {"unavailable": event.problem} if event.problem else {}
        environment = {**event.fingerprint, **problem}
        if event.target in self._targets:
            if self._plan.target(event.target).places is not None:
                return  # another place may have been the first: each is compared with itself
            check_same_environment(event.target, self._targets[event.target], environment, str(self.path))
            return
        self._targets[event.target] = environment
        self._describe()

    def place(self, event: PlaceChanged) -> None:
        """Record a place, and its environment.

        Raises:
            UsageError: The run began in another environment of this place.
        """
        of_target = self._places.setdefault(event.target, {})
        known = of_target.get(event.place, PlaceInfo())
        environment = dict(event.fingerprint or known.environment)
        if known.environment:
            where = f"{event.target} at place {event.place}"
            check_same_environment(where, known.environment, environment, str(self.path))
        of_target[event.place] = PlaceInfo(
            environment=environment,
            differs=event.reason if event.state == "differs" else known.differs,
            set_aside=(*known.set_aside, event.reason)[-_MOST_TOLD:]
            if event.state == "set aside"
            else known.set_aside,
        )
        self._describe()

    def ended(self, event: ProcessEnded) -> None:
        """Record how a process ended that was asked to."""
        before = self._exits.get(event.target, TargetExit())
        found = with_end(before, event)
        if found.unclean and not before.unclean:
            found = msgspec.structs.replace(found, artifacts=keep_exit(self.path, event))
        self._exits[event.target] = found

    def add(self, *records: Record) -> tuple[Record, ...]:
        """Append records.

        Returns them as written: one that cannot be encoded has lost its verdict.
        """
        if not records:
            return ()
        lines = [self._line(record) for record in records]
        with writing(self.path, "the run folder", _CONTINUE):
            self._records.add(b"".join(line for _, line in lines))
        self._added += len(records)
        return tuple(record for record, _ in lines)

    def _line(self, record: Record) -> tuple[Record, bytes]:
        try:
            return record, encode_record(record) + b"\n"
        except Exception as error:  # noqa: BLE001 - affects this cell alone
            without = record_without_verdict(self.path, record, error)
            return without, encode_record(without) + b"\n"

    def replan(self, plan: Plan) -> None:
        """Continue with another plan, which has all recorded cells.

        A run that decides its next cells as it goes needs this.
        """
        self._plan = plan
        with _writing(self.path):
            write_aside(self.path / PLAN, plan.listing())
        self._describe()

    def finish(self) -> bool:
        """Close the files, and return whether every planned cell has its record."""
        with _writing(self.path):
            self._records.close()
        self._describe()
        self._lock.release()
        with contextlib.suppress(OSError):
            (self.path / "run.lock").unlink()
        return self._complete

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
            places=self._places,
            exits=self._exits,
        )
        with _writing(self.path):
            write_info(self.path, msgspec.json.format(msgspec.json.encode(info)) + b"\n")


def resume_command(plan: Plan, folder: Path, *selection: str) -> str:
    """Return the command that continues a run; ``selection`` has its selecting arguments."""
    words = ["ep-harness", "run", plan.matrix.path, "--resume", str(folder), *selection]
    return shlex.join(words)


def _writing(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Turn errors of the system into a message: only a folder that describes its run can be resumed."""
    return writing(folder, "the run folder", _CONTINUE if (folder / "run.json").exists() else _AGAIN)


def _mend(records: Path) -> None:
    """Make the file end with a complete line: remove a partial record, or add a missing newline."""
    if not records.exists():
        return
    with records.open("r+b") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole == len(data):
            return
        try:
            decode_record(data[whole:])
        except ValueError:  # not JSON, or not UTF-8
            file.truncate(whole)
        else:
            file.write(b"\n")


def _remove(records: Path, cells: Collection[str]) -> None:
    # The new file replaces the old one last, when both are closed: Windows replaces no open file.
    with aside(records) as fresh, open_regular(records, MOST_RECORDS) as lines, fresh.open("wb") as file:
        file.writelines(line for line in lines if decode_record(line).cell not in cells)
        file.flush()
        os.fsync(file.fileno())
