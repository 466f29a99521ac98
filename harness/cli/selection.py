"""The part of a matrix that a command is about: its globs, its shard, and its baselines."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

import msgspec

from harness.cli.output import notify
from harness.core.text.errors import UsageError
from harness.doors import SCHEDULERS, behind, load_registered
from harness.engine.prepare import RunnablePlan, make_plan
from harness.plan.auto_shard import COUNTERS, Counter, auto_shard
from harness.plan.matrix import read_matrix
from harness.plan.shard import parse_shard

AUTO = "auto"
"""The share given by environment variables."""


class Selected(TypedDict, total=False):
    """The fields of a selection, as arguments of a function."""

    target: Sequence[str]
    model: Sequence[str]
    shard: str | None
    durations: Path | None
    baseline: Sequence[Path]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The selecting arguments of a command; None or empty where not given.

    Attributes:
        target: Globs on the target's name.
        model: Globs on ``suite/model``, or on the model alone.
        shard: ``I/N``: the I-th of N shares; ``auto``: from the variables of a scheduler or CI system.
        durations: A run folder whose timings make the shares equally long; all shards need the same.
        baseline: Files or folders of known failures that the verdicts are compared with.
    """

    target: Sequence[str] = ()
    model: Sequence[str] = ()
    shard: str | None = None
    durations: Path | None = None
    baseline: Sequence[Path] = ()

    def plan(self, matrix: Path) -> RunnablePlan:
        """Return the plan of the selected part of a matrix file.

        Raises:
            UsageError: As ``make_plan``; or the matrix or the run of ``durations`` cannot be read.
        """
        if self.shard is None and self.durations is not None:
            raise UsageError.at("--durations", "has no effect without --shard", "add --shard I/N")
        return make_plan(
            read_matrix(matrix),
            targets=self.target,
            models=self.model,
            shard="" if self.shard is None else self._share(self.shard),
            durations_ms={} if self.durations is None else _durations_ms(self.durations),
            baselines=self.baseline,
        )

    def arguments(self) -> Iterator[str]:
        """Yield the selection as arguments of a command that mean the same on every machine."""
        yield from (word for glob in self.target for word in ("--target", glob))
        yield from (word for glob in self.model for word in ("--model", glob))
        if self.shard is not None:
            yield from ("--shard", self._share(self.shard))
        if self.durations is not None:
            yield from ("--durations", str(self.durations))
        yield from (word for path in self.baseline for word in ("--baseline", str(path)))

    @staticmethod
    def _share(text: str) -> str:
        counted = text == AUTO
        share = auto_shard(os.environ, (*COUNTERS, *_counters())) if counted else parse_shard(text)
        return "/".join(map(str, share))


def _durations_ms(run: Path) -> dict[str, float]:
    from harness.report.runs.read import read_run  # all that judges a record; few commands need it

    return {record.cell: record.took_ms for record in read_run(run).records}


def _counters() -> Iterator[Counter]:
    """Yield the schedulers that other distributions add; one that is broken is told and left out."""
    for name in behind(SCHEDULERS):
        try:
            yield load_registered(SCHEDULERS, name, Counter)
        except UsageError as error:
            notify(str(error))
