"""A run as a whole: the public JSON contract, ``run.json``."""

import msgspec

from harness.core.records.verdict import Phase, Verdict


class ShardInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The share of a plan that a run covers; it shows what is missing if another share is lost.

    Attributes:
        index: From 1.
        count: Number of shares of the plan.
        plan: Digest of the whole plan.
        cells: Number of cells of the whole plan.
    """

    index: int
    count: int
    plan: str
    cells: int


class PlaceInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place of a target in a run.

    Attributes:
        environment: The fingerprint from its agent; empty until one arrives.
        differs: How it differs from the first place; empty if it is equal.
        set_aside: Why it was not used for a while, one entry for each time.
    """

    environment: dict[str, object] = {}
    differs: str = ""
    set_aside: tuple[str, ...] = ()


class TargetExit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the processes of a target ended that were asked to end, and that nothing else killed.

    Attributes:
        ended: Number of these processes.
        unclean: How many of them died, or did not end within the limit of ``teardown``.
        verdict: ``unclean_exit`` if there is one.
        phase: Where the first of them died: ``teardown`` (sessions are released), ``unload`` (of the plugin
            library) or ``exit``.
        cause: Its signal or exit code; ``hang`` if it did not end.
        reason: One line for people.
        expected: Whether the matrix expects the result. If all ends are clean, false if it expects
            ``unclean_exit``.
        artifacts: Folder, in the run folder, with the printed output of this process; empty if it printed
            nothing.
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
        cells: Number of planned cells.
        matrix: The matrix with its defaults filled in.
        targets: Target name -> environment fingerprint from the agent.
        complete: Whether every planned cell has its record.
        shard: Set if the plan is a share of a larger one.
        places: Target name -> its places by name.
        exits: Target name -> how its processes ended; targets without a process that was asked to end are
            missing.
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
        """Return the fingerprint of a target at a place; the target's own if the place has none."""
        there = self.places.get(target, {}).get(place)
        return there.environment if there is not None else self.targets.get(target, {})
