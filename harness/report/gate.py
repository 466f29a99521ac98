"""The gate: whether a run passes, compared with an older one, under a policy."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from harness.core.verdict import Family
from harness.report.diff import Change, Diff, Kind

Flake = Callable[[Change], str]
"""Returns the reason why a change is a known flake; empty if it is none."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many cells may become worse. Cells that became better never make up for them.

    Attributes:
        regressed: Cells with a worse result.
        gone: Cells that had a result and have none: not planned, not run, unavailable, excluded.
        other_measure: Cells with another verdict under another tolerance, golden or model.
        not_run: Planned cells without a result in the new run, whatever the old one had.
        required_unavailable: Required targets that are unavailable in the new run, likewise.
        enter: Family -> cells that may enter it, from another family or as new cells; a family that is not
            named has no limit of its own.
        slower: Cells whose latency grew by more than noise explains.
        expected_failures: Whether cells that fail as the new matrix expects count as well.
    """

    regressed: int = 0
    gone: int = 0
    other_measure: int = 0
    not_run: int = 0
    required_unavailable: int = 0
    enter: dict[Family, int] = msgspec.field(default_factory=lambda: {Family.FAILED: 0})
    slower: int = 0
    expected_failures: bool = True


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that is exceeded.

    Attributes:
        limit: Its key, such as ``regressed`` or ``enter.failed``.
        count: Number of cells; of targets for ``required_unavailable``.
        changes: These cells; empty for ``not_run`` and ``required_unavailable``.
    """

    limit: str
    count: int
    allowed: int
    changes: tuple[Change, ...]
    what: str = "cell"


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the gate.

    Attributes:
        excused: ``(change, reason)`` of the known flakes, which do not count.
    """

    passed: bool
    breaches: tuple[Breach, ...]
    excused: tuple[tuple[Change, str], ...]


def judge(diff: Diff, limits: Limits, flake: Flake) -> Judgement:
    """Compare a difference with the limits; changes for which ``flake`` returns a reason do not count."""
    counting: list[Change] = []
    excused: list[tuple[Change, str]] = []
    for change in diff.changes:
        reason = flake(change)
        if reason:
            excused.append((change, reason))
        elif limits.expected_failures or not _declared(change):
            counting.append(change)
    breaches = tuple(breach for breach in _all(diff, counting, limits) if breach.count > breach.allowed)
    return Judgement(passed=not breaches, breaches=breaches, excused=tuple(excused))


def _declared(change: Change) -> bool:
    """Return whether a cell fails as the new matrix expects."""
    return change.expected and change.after is not None and change.after.family is Family.FAILED


def _all(diff: Diff, changes: Sequence[Change], limits: Limits) -> Iterator[Breach]:
    for kind, allowed in (
        (Kind.REGRESSED, limits.regressed),
        (Kind.GONE, limits.gone),
        (Kind.OTHER_MEASURE, limits.other_measure),
    ):
        yield _breach(kind.value, allowed, [change for change in changes if change.kind is kind])
    yield _breach("slower", limits.slower, [change for change in changes if change.slower])
    yield Breach(limit="not_run", count=diff.new_not_run, allowed=limits.not_run, changes=())
    yield Breach(
        limit="required_unavailable",
        count=len(diff.required_unavailable),
        allowed=limits.required_unavailable,
        changes=(),
        what="target",
    )
    for family, allowed in limits.enter.items():
        entered = [change for change in changes if _enters(change, family)]
        yield _breach(f"enter.{family.value}", allowed, entered)


def _enters(change: Change, family: Family) -> bool:
    before = change.before.family if change.before else None
    after = change.after.family if change.after else None
    return after is family and before is not family


def _breach(limit: str, allowed: int, changes: Sequence[Change]) -> Breach:
    return Breach(limit=limit, count=len(changes), allowed=allowed, changes=tuple(changes))
