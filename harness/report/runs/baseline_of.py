"""Baselines made of a run: the results of each target, with the class of machine that it ran on."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from harness.core.findings.compute_share import share_on_ep
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict, is_result
from harness.core.text.errors import UsageError
from harness.core.text.later_words import what_is_wrong
from harness.plan.baselines import Baseline
from harness.plan.device_class import class_of, class_words
from harness.plan.matrix import Matrix
from harness.plan.surroundings import surroundings_of
from harness.plan.where import Where
from harness.report.runs.merged_run import MergedRun


def baselines_of(run: MergedRun, wanted: Callable[[str], bool]) -> tuple[Baseline, ...]:
    """Return a baseline for each requested target that ran, sorted by name.

    Raises:
        UsageError: The matrix of the run cannot be read, none of these targets ran, or a target ran on
            several kinds of machines.
    """
    where = ", ".join(map(str, run.folders))
    try:
        matrix = msgspec.convert(run.matrix, Matrix)
    except msgspec.ValidationError as error:
        raise UsageError.at(where, f"its matrix is invalid: {what_is_wrong(error)}") from error
    by_target: dict[str, list[Record]] = defaultdict(list)
    for _, record in run.records:
        by_target[record.target].append(record)
    classes = _classes(run, matrix)
    found = tuple(
        Baseline(
            file="",
            target=target.name,
            provider=target.provider[0],
            where=_only(target.name, its, where),
            **_results(by_target[target.name]),
        )
        for target in sorted(matrix.targets, key=lambda one: one.name)
        if wanted(target.name) and (its := classes.get(target.name))
    )
    if not found:
        raise UsageError.at(where, "none of its targets could be used", "see: ep-harness doctor MATRIX")
    return found


def _results(records: list[Record]) -> dict[str, Any]:
    """Return what a baseline knows of the cells of a target, as its fields."""
    cells: dict[Verdict, list[str]] = defaultdict(list)
    for record in records:
        if is_result(record.verdict):
            cells[record.verdict].append(record.cell)
    known = {verdict: tuple(sorted(its)) for verdict, its in cells.items()}
    partly = [record for record in records if record.verdict is Verdict.PASS_PARTIAL]
    return {
        "failures": {verdict: its for verdict, its in known.items() if verdict.family is Family.FAILED},
        "results": {verdict: its for verdict, its in known.items() if verdict.family is not Family.FAILED},
        "shares": {
            record.cell: round(share, 3)
            for record in partly
            if (share := share_on_ep(record.placement)) is not None
        },
    }


def file_name(run: MergedRun, baselines: tuple[Baseline, ...]) -> str:
    """Return a name from matrix and class of machine, such as ``local-linux-x86_64-1f3a9c.toml``."""
    classes = msgspec.json.encode([(one.target, one.where) for one in baselines])
    stem = run.matrix_file.rpartition(".")[0] or "baseline"
    parts = [stem, *baselines[0].where.os, *baselines[0].where.architecture]
    return "-".join([*parts, hashlib.sha256(classes).hexdigest()[:6]]) + ".toml"


def _classes(run: MergedRun, matrix: Matrix) -> dict[str, list[Where]]:
    """Return target -> the classes of machine that it ran on."""
    found: dict[str, list[Where]] = {}
    targets = {target.name: target for target in matrix.targets}
    ran = {record.target for _, record in run.records if not record.lacks_target}
    for environment in run.environments:
        one = targets.get(environment.target)
        if one is not None and one.name in ran:
            here = class_of(surroundings_of(environment.fingerprint, one.provider, one.device))
            its = found.setdefault(one.name, [])
            its += [] if here in its else [here]
    return found


def _only(target: str, classes: list[Where], where: str) -> Where:
    if len(classes) > 1:
        told = " / ".join(map(class_words, classes[:2]))
        what = f"the target {target!r} ran on machines of several kinds: {told}"
        raise UsageError.at(where, what, "name the run of one of them")
    return classes[0]


def known_lines(baselines: tuple[Baseline, ...]) -> Iterator[str]:
    """Yield a line for each target: how many failures and other results are known, and where."""
    width = max(len(one.target) for one in baselines)
    for one in baselines:
        known = f"{len(one.by_cell):,} failures and {len(one.others):,} other results"
        yield f"{one.target:<{width}}  {known} on {class_words(one.where)}"
