"""Which part of a plan a command is about: its globs and its shard."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.core.errors import Problem, UsageError
from harness.plan.plan import Plan
from harness.plan.shard import parse_shard, shard
from harness.report.read import read_run


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What was given on the command line; None where it was not.

    Attributes:
        target: Glob on the target's name.
        model: Glob on ``suite/model``, or on the model alone.
        shard: ``I/N``: the I-th of N shares.
        durations: A run folder whose timings make the shares equally long; all shards need the same.
    """

    target: str | None = None
    model: str | None = None
    shard: str | None = None
    durations: Path | None = None

    def of(self, plan: Plan) -> Plan:
        """The selected part of a plan.

        Raises:
            UsageError: A glob matches nothing, the shard is none or empty, or the run cannot be read.
        """
        selected = plan.only(self.target, self.model)
        if self.shard is None:
            if self.durations is not None:
                raise UsageError(Problem(where="--durations", what="means nothing without --shard I/N"))
            return selected
        records = () if self.durations is None else read_run(self.durations).records
        durations_ms = {record.cell: record.took_ms for record in records}
        return shard(selected, *parse_shard(self.shard), durations_ms)

    def arguments(self) -> Iterator[str]:
        """The same as arguments of a command."""
        for flag, value in msgspec.structs.asdict(self).items():
            if value is not None:
                yield from (f"--{flag}", str(value))
