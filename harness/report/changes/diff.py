"""The difference of two runs, cell by cell: regressed, fixed, changed, new and gone."""

import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.core.agreement.agreement import changed_agreement
from harness.core.findings.compute_share import share_on_ep
from harness.core.findings.lacking import lack_of, lacks_of
from harness.core.records.record import Record
from harness.core.records.shape_times import times_by_shape
from harness.core.records.verdict import Family, Verdict, is_result
from harness.core.text.errors import one_line
from harness.core.verdicts.ranks import is_less, is_worse, rank, why_gone, why_new
from harness.report.cells.failing_ways import generation_changes
from harness.report.cells.worst import HEADROOM_WARNING, least_bits, most_headroom
from harness.report.changes.latencies import compared_latencies
from harness.report.changes.latency_change import LatencyChange
from harness.report.changes.likeness import Likeness
from harness.report.changes.manners_change import new_leaks, new_manners
from harness.report.changes.node_time_change import node_time_changes
from harness.report.changes.run_diff import CellChange, CellChangeKind, Diff, Flow
from harness.report.changes.same_measure import PARTS, MeasureChange, MeasurePart, measure_change
from harness.report.changes.shape_time_change import shape_time_changes
from harness.report.runs.merged_run import MergedRun
from harness.report.words.figures import brief

_DIFF_SCHEMA = 1
_LOST_BITS = 3.0
"""Loss of delivered bits from which on it is reported for a passing cell.

Half the distance from float32 to float16 is 5 bits, from float16 to bfloat16 3; the same arithmetic in
another order changes about one.
"""

_REASON_CHARS = 300

_MOST_UNTRIED = 0.1


_EXPLAINED: dict[MeasurePart, CellChangeKind] = {
    "model": CellChangeKind.OTHER_MODEL,
    "golden": CellChangeKind.GOLDEN_MOVED,
    "policy": CellChangeKind.OTHER_MEASURE,
}


def compare_merged(
    old: MergedRun,
    new: MergedRun,
    *,
    names: tuple[str, str],
    earlier: Sequence[MergedRun] = (),
    speed: Mapping[str, LatencyChange] = types.MappingProxyType({}),
) -> Diff:
    """Compare two runs, each merged as one. ``names`` are those of the old and the new run.

    ``earlier`` are runs of earlier nights, which show how much latencies vary from night to night.
    ``speed`` has the cells whose latency was compared in another way: cell -> its change.
    """
    before = {record.cell: record for _, record in old.records}
    after = {record.cell: record for _, record in new.records}
    likeness = Likeness(old, new)
    order = list(CellChangeKind)
    measures = {cell: measure_change(record, after[cell]) for cell, record in before.items() if cell in after}
    latencies, latency = compared_latencies(old, new, earlier, likeness, speed)
    latencies |= speed
    parts = _changed_parts(before, after, measures, likeness)
    found = [
        change
        for cell in sorted(before.keys() | after.keys())
        if (
            change := _change(
                before.get(cell),
                after.get(cell),
                measures.get(cell),
                likeness,
                (latencies.get(cell), parts.get(cell, ())),
            )
        )
    ]
    others = Counter(part for measure in measures.values() for part in PARTS if getattr(measure, part))
    compared = sum(_have_results(record, after.get(cell)) for cell, record in before.items())
    changed = sum(_have_results(before.get(one.cell), after.get(one.cell)) for one in found)
    kinds = Counter(change.kind for change in found)
    unavailable = {record.target for _, record in new.records if record.lacks_target}
    return Diff(
        schema=_DIFF_SCHEMA,
        old=names[0],
        new=names[1],
        old_not_run=_not_run(old),
        new_not_run=_not_run(new),
        new_not_planned=new.foreign,
        required_unavailable=tuple(sorted(unavailable & new.required)),
        compared=compared,
        unchanged=compared - changed,
        kinds={kind: kinds[kind] for kind in order},
        flows=tuple(_flows(before, after)),
        changes=tuple(sorted(found, key=lambda change: order.index(change.kind))),
        unlike=likeness.unlike_targets(),
        measures={part: others[part] for part in PARTS if others[part]},
        judged=_judged(old, new),
        latency=latency,
        untried=dict(_untried(new)),
        unclean_exits=dict(_unclean_exits(old, new)),
        manners=new_manners(before.values(), after.values()),
        lacks=_lacks(old, new),
        leaks=new_leaks(*([record for _, record in run.records] for run in (old, new))),
    )


def _changed_parts(
    before: Mapping[str, Record],
    after: Mapping[str, Record],
    measures: Mapping[str, MeasureChange],
    likeness: Likeness,
) -> dict[str, tuple[str, ...]]:
    """Return which operators, and which sizes of a grid, became slower or faster: cell -> sentences."""
    pairs = {
        cell: (before[cell], after[cell])
        for cell, measure in measures.items()
        if not measure.model and likeness.comparable(before[cell].target)
    }
    operators = node_time_changes(
        {
            cell: (old.node_times, new.node_times)
            for cell, (old, new) in pairs.items()
            if old.node_times is not None and new.node_times is not None
        }
    )
    grids = {
        cell: (
            times_by_shape(old.scenario, old.shape_times),
            times_by_shape(new.scenario, new.shape_times),
        )
        for cell, (old, new) in pairs.items()
    }
    shapes = shape_time_changes({cell: both for cell, both in grids.items() if all(both)})
    return {
        cell: tuple(found[cell] for found in (operators, shapes) if cell in found)
        for cell in operators.keys() | shapes.keys()
    }


def _unclean_exits(old: MergedRun, new: MergedRun) -> Iterator[tuple[str, str]]:
    for target, exits in new.exits.items():
        before = old.exits.get(target)
        if exits.unclean and not exits.expected and before is not None and not before.unclean:
            yield target, one_line(exits.reason, _REASON_CHARS)


def _judged(old: MergedRun, new: MergedRun) -> dict[str, tuple[int, int]]:
    before, after = (
        Counter(record.target for _, record in run.records if is_result(record.verdict)) for run in (old, new)
    )
    targets = sorted({record.target for run in (old, new) for _, record in run.records})
    return {target: (before[target], after[target]) for target in targets}


def _lacks(old: MergedRun, new: MergedRun) -> dict[str, dict[str, tuple[int, int]]]:
    before, after = (lacks_of(record for _, record in run.records) for run in (old, new))
    known = {(one.target, one.feature): one.cells for one in before}
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for one in after:
        counts = known.get((one.target, one.feature), 0), one.cells
        found.setdefault(one.target, {})[one.feature] = counts
    return found


def _untried(run: MergedRun) -> Iterator[tuple[str, tuple[int, int]]]:
    cells = Counter(record.target for _, record in run.records)
    without = Counter(
        record.target
        for _, record in run.records
        if record.verdict.family in (Family.SKIPPED, Family.MISSING)
    )
    for target, count in sorted(cells.items()):
        if without[target] > _MOST_UNTRIED * count:
            yield target, (without[target], count)


def _change(
    old: Record | None,
    new: Record | None,
    measure: MeasureChange | None,
    likeness: Likeness,
    speed: tuple[LatencyChange | None, tuple[str, ...]],
) -> CellChange | None:
    """Return how one cell changed; None if it did not. ``speed`` is its latency, and its parts in words."""
    latency, parts = speed
    one = new or old
    if one is None:
        return None
    facts: tuple[str, ...] = ()
    if old and new and measure:
        facts = (*_facts(old, new, like=not measure.told), *_latency_facts(latency, parts))
        less = is_less(share_on_ep(old.placement), share_on_ep(new.placement))
        kind = kind_between(old.verdict, new.verdict, measure, has_facts=bool(facts), less=less)
        facts = (*_told(old, new, measure), *facts)
    elif not is_result(one.verdict):
        # Planned in one run, and not tried in the other: neither has a result.
        return None
    else:
        kind = CellChangeKind.NEW if new else CellChangeKind.GONE
    if kind is None:
        return None
    verdicts = old.verdict if old else None, new.verdict if new else None
    without = {CellChangeKind.GONE: why_gone(verdicts[1]), CellChangeKind.NEW: why_new(verdicts[0])}.get(
        kind, ()
    )
    return CellChange(
        kind=kind,
        cell=one.cell,
        suite=one.suite,
        model=one.model,
        target=one.target,
        before=verdicts[0],
        after=verdicts[1],
        expected=new is None or new.expected,
        flaky=any(record is not None and record.flaky for record in (old, new)),
        slower=latency is not None and latency.verdict == "slower",
        unclear=latency is not None and latency.may_be_slower,
        facts=(*without, *facts),
        reason=one_line(new.reason, _REASON_CHARS) if new else "",
        beside=likeness.words(one.target),
        lacks=lack_of(new) if new else "",
    )


def kind_between(
    before: Verdict, after: Verdict, measure: MeasureChange, *, has_facts: bool = False, less: bool = False
) -> CellChangeKind | None:
    """Return how a cell changed from one verdict to another.

    ``has_facts`` if other facts of note did, ``less`` if the EP has less of the compute.
    """
    if is_result(before) != is_result(after):
        return CellChangeKind.NEW if is_result(after) else CellChangeKind.GONE
    if before is after and not is_worse(before, after, less=less):
        # Another measure alone is no change of the cell.
        return CellChangeKind.CHANGED if has_facts else None
    if not is_result(after):
        return CellChangeKind.CHANGED
    if (part := measure.explains(before, after)) is not None:
        return _EXPLAINED[part]
    if is_worse(before, after, less=less):
        return CellChangeKind.REGRESSED
    better = rank(after) > rank(before)
    return CellChangeKind.FIXED if better and after.family is Family.PASSED else CellChangeKind.CHANGED


def _have_results(old: Record | None, new: Record | None) -> bool:
    return old is not None and new is not None and is_result(old.verdict) and is_result(new.verdict)


def _told(old: Record, new: Record, measure: MeasureChange) -> tuple[str, ...]:
    """Return how the measure differs; also that it is unknown, if that leaves a change open."""
    is_open = measure.is_open(old.verdict, new.verdict)
    return (*measure.told, *([measure.unknown] if is_open else []))


def _facts(old: Record, new: Record, *, like: bool) -> Iterator[str]:
    """Yield notable differences beside the verdict; ``like`` if both were judged by the same measure."""
    if old.expected != new.expected and old.verdict is new.verdict:
        yield "now as the matrix expects" if new.expected else "no longer as the matrix expects"
    if old.placement and new.placement and old.placement.ep_nodes != new.placement.ep_nodes:
        yield f"nodes on the EP {old.placement.ep_nodes:,} -> {new.placement.ep_nodes:,}"
    shares = share_on_ep(old.placement), share_on_ep(new.placement)
    if is_less(*shares) and old.verdict is new.verdict:
        yield f"compute on the EP {shares[0]:.0%} -> {shares[1]:.0%}"
    if old.effect and new.effect and old.effect.seen != new.effect.seen:
        yield "options have an effect again" if new.effect.seen else "options without effect"
    yield from generation_changes(old.generation, new.generation)
    if answers := changed_agreement(old.agreement, new.agreement):
        yield one_line(answers, _REASON_CHARS)
    if not old.verdict.family is new.verdict.family is Family.PASSED:
        return
    bits = least_bits(old), least_bits(new)
    if bits[1] is not None and (bits[0] is None or bits[0] - bits[1] >= _LOST_BITS):
        yield f"delivered bits {'exact' if bits[0] is None else brief(bits[0])} -> {brief(bits[1])}"
    used = most_headroom(old), most_headroom(new)
    if like and used[0] is not None and used[1] is not None and used[1] > max(used[0], HEADROOM_WARNING):
        yield f"error {brief(used[0])} -> {brief(used[1])} of the allowed"


def _latency_facts(change: LatencyChange | None, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield changes of latency, and of its parts in words, that noise does not explain or that may be one."""
    if change and (change.verdict in {"slower", "faster"} or change.may_be_slower):
        may_be = " whether it is slower" if change.may_be_slower else ""
        yield f"{change.verdict}{may_be}: {change.reason}"
    yield from (one_line(part, _REASON_CHARS) for part in parts)


def _not_run(run: MergedRun) -> int:
    return run.planned - sum(record.verdict is not Verdict.NOT_RUN for _, record in run.records)


def _flows(before: Mapping[str, Record], after: Mapping[str, Record]) -> Iterator[Flow]:
    families = {cell: record.verdict.family for cell, record in before.items()}
    now = {cell: record.verdict.family for cell, record in after.items()}
    entered = Counter(family for cell, family in now.items() if families.get(cell) is not family)
    left = Counter(family for cell, family in families.items() if now.get(cell) is not family)
    old, new = Counter(families.values()), Counter(now.values())
    for family in Family:
        if old[family] or new[family]:
            yield Flow(
                family=family,
                before=old[family],
                after=new[family],
                entered=entered[family],
                left=left[family],
            )
