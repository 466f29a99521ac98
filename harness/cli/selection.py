"""The part of a plan that a command is about: its globs, its shard, and its baselines."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

import msgspec

from harness.cli.entry_points import entry_points_of, load
from harness.cli.output import notify
from harness.core.errors import UsageError
from harness.plan.auto_shard import COUNTERS, Counter, auto_shard
from harness.plan.baseline_file import with_baselines
from harness.plan.plan import Plan
from harness.plan.shard import parse_shard, shard
from harness.report.read import read_run

AUTO = "auto"
"""The share that variables name."""

SCHEDULERS = "ep_harness.schedulers"
"""Group of entry points: each is a ``Counter``."""


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
        shard: ``I/N``: the I-th of N shares; ``auto``: as the variables of a scheduler or CI system say.
        durations: A run folder whose timings make the shares equally long; all shards need the same.
        baseline: Files or folders of known failures that the verdicts are compared with.
    """

    target: Sequence[str] = ()
    model: Sequence[str] = ()
    shard: str | None = None
    durations: Path | None = None
    baseline: Sequence[Path] = ()

    def of(self, plan: Plan) -> Plan:
        """Return the selected part of a plan, with its baselines.

        Raises:
            UsageError: A glob matches nothing, the shard is not ``I/N`` or is empty, or the run of
                ``durations`` or a baseline cannot be read.
        """
        selected = with_baselines(plan.only(self.target, self.model), self.baseline)
        if self.shard is None:
            if self.durations is not None:
                raise UsageError.at("--durations", "has no effect without --shard", "add --shard I/N")
            return selected
        records = () if self.durations is None else read_run(self.durations).records
        durations_ms = {record.cell: record.took_ms for record in records}
        return shard(selected, *self._share(self.shard), durations_ms)

    def arguments(self) -> Iterator[str]:
        """Yield the selection as arguments of a command, which mean the same on every machine."""
        yield from (word for glob in self.target for word in ("--target", glob))
        yield from (word for glob in self.model for word in ("--model", glob))
        if self.shard is not None:
            yield from ("--shard", "/".join(map(str, self._share(self.shard))))
        if self.durations is not None:
            yield from ("--durations", str(self.durations))
        yield from (word for path in self.baseline for word in ("--baseline", str(path)))

    @staticmethod
    def _share(text: str) -> tuple[int, int]:
        return auto_shard(os.environ, (*COUNTERS, *_counters())) if text == AUTO else parse_shard(text)


def _counters() -> Iterator[Counter]:
    """Yield the schedulers that other distributions add; one that is broken is told and left out."""
    for entry in entry_points_of(SCHEDULERS):
        try:
            yield load(entry, Counter, "scheduler")
        except UsageError as error:
            notify(str(error))
