"""What is known of a run as a whole: the public JSON contract, ``run.json``."""

import msgspec


class ShardInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which share of a plan a run is; it tells what is missing where another share does not come back.

    Attributes:
        index: From 1.
        count: Shares of the plan.
        plan: Digest of the whole plan.
        cells: Cells of the whole plan.
    """

    index: int
    count: int
    plan: str
    cells: int


class RunInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``run.json``: what was planned, by which matrix, in which environments.

    Attributes:
        plan: Digest over the sorted ids of the planned cells.
        cells: How many cells were planned.
        matrix: The matrix as it was read, defaults filled in.
        targets: Target name -> environment fingerprint, as the agent reported it.
        complete: True once every planned cell has its record.
        shard: Where the plan is a share of a larger one.
    """

    schema: int
    plan: str
    cells: int
    matrix: dict[str, object]
    targets: dict[str, dict[str, object]]
    complete: bool
    shard: ShardInfo | None = None
