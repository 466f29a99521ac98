"""The run folder: `run.json` and `records.jsonl`, written by the one process that owns the run."""

import os
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import Problem, UsageError, one_line
from harness.core.record import SCHEMA, Record, RunInfo, encode_record
from harness.engine.events import TargetReady
from harness.plan.plan import Plan


class RunFolder:
    """An open run folder. Records are on their way to the disk when ``add`` returns.

    Args:
        path: The folder; exists.
        plan: What the run is going to do.

    Raises:
        UsageError: The folder cannot be written.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self._plan = plan
        self._targets: dict[str, dict[str, Any]] = {}
        self._added = 0
        self._describe()
        with _writing(path):
            self._records = (path / "records.jsonl").open("ab")

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
                    hint="choose another folder",
                )
            )
        with _writing(path):
            path.mkdir(parents=True, exist_ok=True)
        return cls(path, plan)

    def ready(self, event: TargetReady) -> None:
        """Note a target's environment."""
        problem = {"unavailable": event.problem} if event.problem else {}
        self._targets[event.target] = {**event.fingerprint, **problem}
        self._describe()

    def add(self, record: Record) -> None:
        """Append a record."""
        with _writing(self.path):
            self._records.write(encode_record(record) + b"\n")
            self._records.flush()
        self._added += 1

    def finish(self) -> bool:
        """Close the files; whether every planned cell has its record."""
        with _writing(self.path):
            self._records.close()
        self._describe()
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
        )
        with _writing(self.path):
            # Beside it, then renamed: whoever reads meanwhile sees a whole file.
            fresh = self.path / "run.json.new"
            fresh.write_bytes(msgspec.json.format(msgspec.json.encode(info)) + b"\n")
            os.replace(fresh, self.path / "run.json")  # noqa: PTH105 - replaces on Windows too


class _writing:  # noqa: N801 - reads as a statement: with _writing(path)
    """Turns what the system says about a folder into one line for people."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise UsageError(
                Problem(
                    where=str(self._path),
                    what=f"the run folder cannot be written: {one_line(error.strerror or error)}",
                    hint="records written so far are kept; free some space or choose another folder",
                )
            ) from error
