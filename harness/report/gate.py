"""The gate: whether a run passes, compared with an older one, under a policy."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.agreement import agreements_words
from harness.core.errors import one_line
from harness.core.record import Record
from harness.core.verdict import Family
from harness.report.diff import Change, Diff, Kind

Flake = Callable[[Change], str]
"""Returns the reason why a change is a known flake; empty if it is none."""


Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]

_WORDS_CHARS = 300


class Enter(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that may enter a family, also as new cells. A family left out has no limit, except ``failed``."""

    failed: Annotated[Count, Meta(description="The EP's failures.")] = 0
    unsupported: Annotated[Count | UnsetType, Meta(description="Clean refusals.")] = UNSET
    untested: Annotated[Count | UnsetType, Meta(description="Right answers without the EP.")] = UNSET
    excluded: Annotated[Count | UnsetType, Meta(description="Cells that say nothing about the EP.")] = UNSET
    skipped: Annotated[Count | UnsetType, Meta(description="Cells of targets that cannot be used.")] = UNSET


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many cells may get worse; cells that got better do not make up for them."""

    regressed: Annotated[Count, Meta(description="Cells with a worse result than before.")] = 0
    gone: Annotated[
        Count,
        Meta(
            description="Cells that had a result and have none: not planned, not run, unavailable, excluded."
        ),
    ] = 0
    other_measure: Annotated[
        Count, Meta(description="Cells with another verdict under another policy: another tolerance.")
    ] = 0
    golden_moved: Annotated[
        Count | UnsetType,
        Meta(description="Cells with another verdict against another golden; by default as `other_measure`."),
    ] = UNSET
    other_model: Annotated[
        Count | UnsetType,
        Meta(description="Cells with another verdict of another model; by default as `other_measure`."),
    ] = UNSET
    not_run: Annotated[Count, Meta(description="Planned cells of the new run without a result.")] = 0
    not_planned: Annotated[
        Count, Meta(description="Records of the new run of cells that its plan does not have.")
    ] = 0
    judged: Annotated[
        Share,
        Meta(
            description="Of each target: cells judged in the new run, as a part of those judged in the old "
            "one, at least. Of all targets together at least one cell; 0 asks for none."
        ),
    ] = 0.9
    required_unavailable: Annotated[
        Count, Meta(description="Required targets that are unavailable in the new run.")
    ] = 0
    slower: Annotated[
        Count, Meta(description="Cells whose latency grew by more than noise explains, on like machines.")
    ] = 0
    manners: Annotated[
        Count,
        Meta(
            description="Cells that change something around them, such as the rounding mode, and did not "
            "before."
        ),
    ] = 0
    leaks: Annotated[
        Count,
        Meta(description="Targets, and cells of the scenario `sessions`, that leak and did not before."),
    ] = 0
    min_agreement: Annotated[
        Share | UnsetType,
        Meta(
            description="The least share of a task's answers that must not disagree with the golden's, in "
            "every cell of the new run that has some."
        ),
    ] = UNSET
    expected_failures: Annotated[
        bool, Meta(description="Whether cells that fail as the new matrix expects count as well.")
    ] = True
    enter: Annotated[Enter, Meta(description="Family -> cells that may enter it.")] = msgspec.field(
        default_factory=Enter
    )


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that is exceeded.

    Attributes:
        limit: Its key, such as ``regressed`` or ``enter.failed``.
        count: Number of cells; of targets for ``required_unavailable``.
        changes: These cells; empty for ``not_run``, ``not_planned``, ``required_unavailable``, and where
            ``cells`` has them.
        cells: Of ``manners`` and ``leaks``, the cells or targets with what they do. Of ``min_agreement``, the
            cells with what disagrees: ``cell: top-1 the same in 39 of 40``. Of ``judged``, the targets with
            how many: ``npu: 0 of 23 cells``.
        least: Of the last two, the limit.
    """

    limit: str
    count: int
    allowed: int
    changes: tuple[Change, ...]
    what: str = "cell"
    cells: tuple[str, ...] = ()
    least: float | None = None


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the gate.

    Attributes:
        excused: ``(change, reason)`` of the known flakes, which do not count.
    """

    passed: bool
    breaches: tuple[Breach, ...]
    excused: tuple[tuple[Change, str], ...]


def judge(diff: Diff, limits: Limits, flake: Flake, records: Iterable[Record] = ()) -> Judgement:
    """Compare a difference with the limits; changes for which ``flake`` returns a reason do not count.

    ``records`` are those of the new run, for ``min_agreement``.
    """
    counting: list[Change] = []
    excused: list[tuple[Change, str]] = []
    for change in diff.changes:
        reason = flake(change)
        if reason:
            excused.append((change, reason))
        elif limits.expected_failures or not _declared(change):
            counting.append(change)
    found = [*_all(diff, counting, limits), *_silent(diff, limits), *_disagreements(records, limits)]
    breaches = tuple(breach for breach in found if breach.count > breach.allowed)
    return Judgement(passed=not breaches, breaches=breaches, excused=tuple(excused))


def has_answers(records: Iterable[Record]) -> bool:
    """Return whether any cell has answers of a task, or should have."""
    return any(record.agreement for record in records)


def _silent(diff: Diff, limits: Limits) -> Iterator[Breach]:
    """Yield the targets of which too few cells were judged for the rest to prove anything."""
    least = limits.judged
    found = [
        f"{one}: {new:,} of {old:,} cells" for one, (old, new) in diff.judged.items() if new < least * old
    ]
    if least and not found and not any(new for _, new in diff.judged.values()):
        found = [f"{one}: no cell in either run" for one in diff.judged]
    yield Breach(
        limit="judged",
        count=len(found),
        allowed=0,
        changes=(),
        what="target",
        cells=tuple(found),
        least=least,
    )


def _disagreements(records: Iterable[Record], limits: Limits) -> Iterator[Breach]:
    """Yield the cells below the least agreement. A figure that failed is none, so its cell is below."""
    least = limits.min_agreement
    if least is UNSET:
        return
    cells = []
    for record in records:
        if record.expected and record.verdict.family is Family.FAILED and not limits.expected_failures:
            continue
        below = [
            one for one in record.agreement if one.failed or (one.share is not None and one.share < least)
        ]
        if below:
            cells.append(f"{record.cell}: {one_line(agreements_words(below), _WORDS_CHARS)}")
    yield Breach(
        limit="min_agreement", count=len(cells), allowed=0, changes=(), cells=tuple(cells), least=least
    )


def _declared(change: Change) -> bool:
    """Return whether a cell fails as the new matrix expects."""
    return change.expected and change.after is not None and change.after.family is Family.FAILED


def _all(diff: Diff, changes: Sequence[Change], limits: Limits) -> Iterator[Breach]:
    for kind, allowed in (
        (Kind.REGRESSED, limits.regressed),
        (Kind.GONE, limits.gone),
        (Kind.GOLDEN_MOVED, limits.golden_moved),
        (Kind.OTHER_MODEL, limits.other_model),
    ):
        if allowed is not UNSET:
            yield _breach(kind.value, allowed, [change for change in changes if change.kind is kind])
    # An older policy file has one limit for whatever was judged by another measure.
    apart = ((Kind.GOLDEN_MOVED, limits.golden_moved), (Kind.OTHER_MODEL, limits.other_model))
    others = {Kind.OTHER_MEASURE, *(kind for kind, allowed in apart if allowed is UNSET)}
    unlike = [change for change in changes if change.kind in others]
    yield _breach(Kind.OTHER_MEASURE.value, limits.other_measure, unlike)
    yield _breach("slower", limits.slower, [change for change in changes if change.slower])
    yield Breach(limit="not_run", count=diff.new_not_run, allowed=limits.not_run, changes=())
    yield Breach(
        limit="not_planned", count=diff.new_not_planned, allowed=limits.not_planned, changes=(), what="record"
    )
    yield Breach(
        limit="required_unavailable",
        count=len(diff.required_unavailable),
        allowed=limits.required_unavailable,
        changes=(),
        what="target",
    )
    for name, what in (("manners", "cell"), ("leaks", "leak")):
        cells = getattr(diff, name)
        yield Breach(
            limit=name,
            count=len(cells),
            allowed=getattr(limits, name),
            changes=(),
            what=what,
            cells=cells,
        )
    for family, allowed in msgspec.structs.asdict(limits.enter).items():
        if allowed is not UNSET:
            entered = [change for change in changes if _enters(change, Family(family))]
            yield _breach(f"enter.{family}", allowed, entered)


def _enters(change: Change, family: Family) -> bool:
    before = change.before.family if change.before else None
    after = change.after.family if change.after else None
    return after is family and before is not family


def _breach(limit: str, allowed: int, changes: Sequence[Change]) -> Breach:
    return Breach(limit=limit, count=len(changes), allowed=allowed, changes=tuple(changes))
