"""A run as a whole: the public JSON contract, ``run.json``."""

import msgspec

from harness.core.verdict import Phase, Verdict


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


class TargetExit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How those processes of a target ended that were asked to, and that nothing else killed.

    Attributes:
        ended: Processes.
        unclean: Those of them that died, or did not end within the limit of ``teardown``.
        verdict: ``unclean_exit`` if there is one.
        phase: ``teardown`` (sessions are released), ``unload`` (of the plugin library) or ``exit``, where the
            first of them died.
        cause: Its signal or exit code; ``hang`` if it did not end.
        reason: One line for people.
        expected: Whether the matrix expects it; of clean ends false if it expects ``unclean_exit``.
        artifacts: Folder, in the run folder, of what this process printed; empty if it printed nothing.
    """

    ended: int = 0
    unclean: int = 0
    verdict: Verdict | None = None
    phase: Phase | None = None
    cause: str = ""
    reason: str = ""
    expected: bool = True
    artifacts: str = ""


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
        exits: Target name -> how its processes ended; none of a target without one that was asked to.
    """

    schema: int
    plan: str
    cells: int
    matrix: dict[str, object]
    targets: dict[str, dict[str, object]]
    complete: bool
    shard: ShardInfo | None = None
    places: dict[str, dict[str, PlaceInfo]] = {}
    exits: dict[str, TargetExit] = {}

    def environment_of(self, target: str, place: str) -> dict[str, object]:
        """Return the fingerprint of a target at one of its places; that of the target if it has none."""
        there = self.places.get(target, {}).get(place)
        return there.environment if there is not None else self.targets.get(target, {})
