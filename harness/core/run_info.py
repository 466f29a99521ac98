"""A run as a whole: the public JSON contract, ``run.json``."""

import msgspec


class ShardInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The share of a plan that a run is; it shows what is missing if another share is lost.

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


class PlaceInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place of a target in a run.

    Attributes:
        environment: The fingerprint from its agent; empty if none came so far.
        differs: In what it is not equal to the first place; empty if it is equal.
        set_aside: Why it was not used for a while, each time.
    """

    environment: dict[str, object] = {}
    differs: str = ""
    set_aside: tuple[str, ...] = ()


class RunInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``run.json``: plan, matrix and environments of a run.

    Attributes:
        plan: Digest over the sorted ids of the planned cells.
        cells: Planned cells.
        matrix: The matrix with its defaults.
        targets: Target name -> environment fingerprint from the agent.
        complete: Whether every planned cell has its record.
        shard: Set if the plan is a share of a larger one.
        places: Target name -> its places by name.
    """

    schema: int
    plan: str
    cells: int
    matrix: dict[str, object]
    targets: dict[str, dict[str, object]]
    complete: bool
    shard: ShardInfo | None = None
    places: dict[str, dict[str, PlaceInfo]] = {}

    def environment_of(self, target: str, place: str) -> dict[str, object]:
        """Return the fingerprint of a target at one of its places; that of the target if it has none."""
        there = self.places.get(target, {}).get(place)
        return there.environment if there is not None else self.targets.get(target, {})
