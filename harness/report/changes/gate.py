"""The gate: whether a run passes, compared with an older one, under a policy."""

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.agreement.agreement import agreements_words
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.core.text.errors import one_line
from harness.report.changes.run_diff import CellChange, CellChangeKind, Diff

FlakeReason = Callable[[CellChange], str]
"""Returns the reason why a change is a known flake; empty if it is not."""


CellCount = Annotated[int, Meta(ge=0)]
ShareLimit = Annotated[float, Meta(ge=0, le=1)]

_WORDS_CHARS = 300


class Enter(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on cells that enter a family, including new cells.

    A missing family has no limit, except ``failed``.
    """

    failed: Annotated[CellCount, Meta(description="The EP's failures.")] = 0
    unsupported: Annotated[CellCount | UnsetType, Meta(description="Clean refusals.")] = UNSET
    untested: Annotated[CellCount | UnsetType, Meta(description="Right answers without the EP.")] = UNSET
    excluded: Annotated[CellCount | UnsetType, Meta(description="Cells that say nothing about the EP.")] = (
        UNSET
    )
    skipped: Annotated[CellCount | UnsetType, Meta(description="Cells of targets that cannot be used.")] = (
        UNSET
    )


class GateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on cells that get worse; cells that get better do not offset them."""

    regressed: Annotated[CellCount, Meta(description="Cells with a worse result than before.")] = 0
    gone: Annotated[
        CellCount,
        Meta(description="Cells with a result only before: not planned, not run, unavailable, excluded."),
    ] = 0
    other_measure: Annotated[
        CellCount, Meta(description="Cells with another verdict under another policy: another tolerance.")
    ] = 0
    golden_moved: Annotated[
        CellCount | UnsetType,
        Meta(description="Cells with another verdict against another golden; by default as `other_measure`."),
    ] = UNSET
    other_model: Annotated[
        CellCount | UnsetType,
        Meta(description="Cells with another verdict of another model; by default as `other_measure`."),
    ] = UNSET
    not_run: Annotated[CellCount, Meta(description="Planned cells of the new run without a result.")] = 0
    not_planned: Annotated[
        CellCount, Meta(description="Records of the new run of cells that its plan does not have.")
    ] = 0
    judged: Annotated[
        ShareLimit,
        Meta(
            description="The least share of the cells of each target judged in the old run that the new run "
            "judges. All targets together need at least one cell; 0 requires none."
        ),
    ] = 0.9
    required_unavailable: Annotated[
        CellCount, Meta(description="Required targets that are unavailable in the new run.")
    ] = 0
    unclean_exit: Annotated[
        CellCount,
        Meta(
            description="Targets with a process that dies or hangs after a request to exit, if none did in "
            "the old run; not those whose matrix expects it."
        ),
    ] = 0
    slower: Annotated[
        CellCount, Meta(description="Cells whose latency grew by more than noise explains, on like machines.")
    ] = 0
    unclear: Annotated[
        CellCount,
        Meta(
            description="Cells that look slower, while noise, a disturbance or another way of measuring "
            "hides whether they are."
        ),
    ] = 0
    manners: Annotated[
        CellCount,
        Meta(
            description="Cells that change something around them, such as the rounding mode, and did not "
            "before."
        ),
    ] = 0
    leaks: Annotated[
        CellCount,
        Meta(description="Targets, and cells of the scenario `sessions`, that leak and did not before."),
    ] = 0
    min_agreement: Annotated[
        ShareLimit | UnsetType,
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


class TargetLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one target; ``owner`` is the person to ask when one is exceeded, and may be empty."""

    limits: GateLimits
    owner: str = ""


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that is exceeded.

    Attributes:
        target: The target with this limit; empty for a limit on all other targets together.
        owner: Owner of this target; empty if the policy names none.
        limit: Its key, such as ``regressed`` or ``enter.failed``.
        count: Number of cells; of targets for ``required_unavailable`` and ``unclean_exit``.
        changes: The cells; empty for limits on targets, ``not_run``, ``not_planned``, and where ``cells`` has
            them.
        cells: For ``manners`` and ``leaks``, the cells or targets with a description. For ``min_agreement``,
            the cells with their disagreement: ``cell: top-1 the same in 39 of 40``. For ``judged``, the
            targets with their numbers: ``npu: 0 of 23 cells``. For ``required_unavailable`` and
            ``unclean_exit``, the targets.
        least: The limit, for ``min_agreement`` and ``judged``.
    """

    limit: str
    count: int
    allowed: int
    changes: tuple[CellChange, ...]
    what: str = "cell"
    cells: tuple[str, ...] = ()
    least: float | None = None
    target: str = ""
    owner: str = ""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the gate.

    Attributes:
        excused: ``(change, reason)`` of the known flakes, which do not count.
    """

    passed: bool
    breaches: tuple[Breach, ...]
    excused: tuple[tuple[CellChange, str], ...]


def judge_changes(
    diff: Diff,
    limits: GateLimits,
    flake: FlakeReason,
    records: Iterable[Record] = (),
    apart: Mapping[str, TargetLimits] = types.MappingProxyType({}),
) -> Judgement:
    """Compare a difference with the limits; changes for which ``flake`` returns a reason do not count.

    ``records`` are those of the new run, for ``min_agreement``. Targets in ``apart`` have their own limits;
    their cells do not count among those of the others.
    """
    excused = tuple((change, reason) for change in diff.changes if (reason := flake(change)))
    known = {change.cell for change, _ in excused}
    counting = [change for change in diff.changes if change.cell not in known]
    tested = list(records)
    found = [*_of_run(diff, limits)]
    for target in ("", *apart):
        its = apart[target] if target else TargetLimits(limits=limits)

        def is_its(name: str, target: str = target) -> bool:
            return name == target if target else name not in apart

        breaches = [
            *_of_changes([change for change in counting if is_its(change.target)], its.limits),
            _unavailable([name for name in diff.required_unavailable if is_its(name)], its.limits),
            _unclean({name: why for name, why in diff.unclean_exits.items() if is_its(name)}, its.limits),
            _ill_mannered("manners", "cell", _of(diff.manners, is_its), its.limits.manners),
            _ill_mannered("leaks", "leak", _of(diff.leaks, is_its), its.limits.leaks),
            _too_few({name: both for name, both in diff.judged.items() if is_its(name)}, its.limits),
            *_disagreements([record for record in tested if is_its(record.target)], its.limits),
        ]
        found += [msgspec.structs.replace(one, target=target, owner=its.owner) for one in breaches]
    exceeded = tuple(breach for breach in found if breach.count > breach.allowed)
    if not any(breach.limit == "judged" for breach in exceeded):
        exceeded += tuple(_nothing(diff, limits))
    return Judgement(passed=not exceeded, breaches=exceeded, excused=excused)


def has_answers(records: Iterable[Record]) -> bool:
    """Return whether any cell has answers to a task, or should have them."""
    return any(record.agreement for record in records)


def _of(by_target: Mapping[str, Sequence[str]], is_its: Callable[[str], bool]) -> list[str]:
    return [one for name, found in by_target.items() if is_its(name) for one in found]


def _of_run(diff: Diff, limits: GateLimits) -> Iterator[Breach]:
    """Yield breaches that concern the run, not a single target."""
    yield Breach(limit="not_run", count=diff.new_not_run, allowed=limits.not_run, changes=())
    yield Breach(
        limit="not_planned", count=diff.new_not_planned, allowed=limits.not_planned, changes=(), what="record"
    )


def _unavailable(targets: Sequence[str], limits: GateLimits) -> Breach:
    return Breach(
        limit="required_unavailable",
        count=len(targets),
        allowed=limits.required_unavailable,
        changes=(),
        what="target",
        cells=tuple(targets),
    )


def _unclean(targets: Mapping[str, str], limits: GateLimits) -> Breach:
    return Breach(
        limit="unclean_exit",
        count=len(targets),
        allowed=limits.unclean_exit,
        changes=(),
        what="target",
        cells=tuple(f"{name}: {why}" for name, why in targets.items()),
    )


def _ill_mannered(name: str, what: str, found: Sequence[str], allowed: int) -> Breach:
    """Return the breach of ``manners`` or ``leaks``."""
    return Breach(limit=name, count=len(found), allowed=allowed, changes=(), what=what, cells=tuple(found))


def _too_few(judged: Mapping[str, tuple[int, int]], limits: GateLimits) -> Breach:
    """Return the targets with too few judged cells for the rest to prove anything."""
    least = limits.judged
    return _silent(
        [f"{one}: {new:,} of {old:,} cells" for one, (old, new) in judged.items() if new < least * old], least
    )


def _nothing(diff: Diff, limits: GateLimits) -> Iterator[Breach]:
    """Yield all targets if none has a judged cell."""
    if limits.judged and not any(new for _, new in diff.judged.values()):
        yield _silent([f"{one}: no cell in either run" for one in diff.judged] or ["no cell"], limits.judged)


def _silent(targets: Sequence[str], least: float) -> Breach:
    return Breach(
        limit="judged",
        count=len(targets),
        allowed=0,
        changes=(),
        what="target",
        cells=tuple(targets),
        least=least,
    )


def _disagreements(records: Iterable[Record], limits: GateLimits) -> Iterator[Breach]:
    """Yield the cells below the least agreement. A failed figure counts as missing, so its cell is below."""
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


def _declared(change: CellChange) -> bool:
    """Return whether a cell fails as the new matrix expects."""
    return change.expected and change.after is not None and change.after.family is Family.FAILED


def _of_changes(among: Sequence[CellChange], limits: GateLimits) -> Iterator[Breach]:
    changes = [change for change in among if limits.expected_failures or not _declared(change)]
    for kind, allowed in (
        (CellChangeKind.REGRESSED, limits.regressed),
        (CellChangeKind.GONE, limits.gone),
        (CellChangeKind.GOLDEN_MOVED, limits.golden_moved),
        (CellChangeKind.OTHER_MODEL, limits.other_model),
    ):
        if allowed is not UNSET:
            yield _breach(kind.value, allowed, [change for change in changes if change.kind is kind])
    # An older policy file has one limit for everything that was judged by another measure.
    apart = (
        (CellChangeKind.GOLDEN_MOVED, limits.golden_moved),
        (CellChangeKind.OTHER_MODEL, limits.other_model),
    )
    others = {CellChangeKind.OTHER_MEASURE, *(kind for kind, allowed in apart if allowed is UNSET)}
    unlike = [change for change in changes if change.kind in others]
    yield _breach(CellChangeKind.OTHER_MEASURE.value, limits.other_measure, unlike)
    yield _breach("slower", limits.slower, [change for change in changes if change.slower])
    yield _breach("unclear", limits.unclear, [change for change in changes if change.unclear])
    for family, allowed in msgspec.structs.asdict(limits.enter).items():
        if allowed is not UNSET:
            entered = [change for change in changes if _enters(change, Family(family))]
            yield _breach(f"enter.{family}", allowed, entered)


def _enters(change: CellChange, family: Family) -> bool:
    before = change.before.family if change.before else None
    after = change.after.family if change.after else None
    return after is family and before is not family


def _breach(limit: str, allowed: int, changes: Sequence[CellChange]) -> Breach:
    return Breach(limit=limit, count=len(changes), allowed=allowed, changes=tuple(changes))
