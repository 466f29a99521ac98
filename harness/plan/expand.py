"""From a matrix to its plan: the ordered product of targets, models and axes, without excluded cells."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from harness.core.cell import AXIS_DEFAULTS, Cell
from harness.core.errors import Problem, UsageError
from harness.core.structure import FilePlace
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.runs_entry import has_latency, has_repeat
from harness.plan.selector import HasSelector, SelectorIndex, model_matcher
from harness.plan.target import Target, is_fixed
from harness.plan.unmatched import unmatched_entries, unmatched_model_globs

_MOST_CELLS = 1_000_000
"""A larger plan is a mistake in the axes: real runs have up to some hundred thousand cells."""


def expand(matrix: Matrix, models: Mapping[str, Sequence[str]]) -> Plan:
    """Return the plan of a checked matrix for the models of each suite: at least one cell, with unique ids.

    Raises:
        UsageError: The plan has more than ``_MOST_CELLS`` before exclusion; an id occurs twice; an entry of
            an exclude, tolerance, expect, latency or repeat list matches no cell; or no cell is left. The
            error has all problems.
    """
    place = FilePlace(matrix.path)
    if not any(models.values()):
        raise UsageError.at(place.key("models"), "the suites hold no models")
    excluded = model_matcher(matrix.models.exclude) if matrix.models.exclude else None
    wanted = {
        suite: [name for name in names if excluded is None or not excluded(suite, name)]
        for suite, names in models.items()
    }
    count = sum(map(len, wanted.values())) * sum(
        math.prod(map(len, _axes(matrix, target).values())) for target in matrix.targets
    )
    if count > _MOST_CELLS:
        what = f"the axes make {count:,} cells; a plan has at most {_MOST_CELLS:,}"
        raise UsageError.at(place, what, "remove axes, or values of them")
    every = tuple(cells(matrix, wanted))
    index = SelectorIndex(matrix.exclude, matrix.first_providers)
    left = tuple(cell for cell in every if not index.matching(cell)) if matrix.exclude else every

    problems = [*_duplicates(every, place), *unmatched_model_globs(matrix, models, wanted)]
    problems += unmatched_entries(matrix, "exclude", matrix.exclude, every)
    if left:
        measurable = [cell for cell in left if has_latency(cell)] if matrix.latency else ()
        repeatable = [cell for cell in left if has_repeat(cell)] if matrix.repeat else ()
        sections: tuple[tuple[str, Sequence[HasSelector], Sequence[Cell]], ...] = (
            ("tolerance", matrix.tolerance, left),
            ("expect", matrix.expect, left),
            ("latency", matrix.latency, measurable),
            ("repeat", matrix.repeat, repeatable),
        )
        for section, entries, among in sections:
            problems += unmatched_entries(matrix, section, [entry.selector for entry in entries], among)
    else:
        problems.append(place.problem("the plan has no cells: the exclude lists match all of them"))
    if problems:
        raise UsageError(*problems)
    return Plan(matrix=matrix, cells=left)


def cells(matrix: Matrix, models: Mapping[str, Sequence[str]]) -> Iterator[Cell]:
    """Yield the whole product lazily, in the order of target, option axes, model, other axes.

    One process serves a target with one precision mode and one set of provider options. These vary slowest,
    so that the cells of a process are consecutive. The other axes vary fastest, so that the inputs and golden
    results of a model are read once.
    """
    for target in matrix.targets:
        axes = _axes(matrix, target)
        fixed = {axis: values for axis, values in axes.items() if is_fixed(axis)}
        others = {axis: values for axis, values in axes.items() if axis not in fixed}
        for chosen in product(*fixed.values()):
            configuration = tuple(zip(fixed, chosen, strict=True))
            points = [
                tuple(sorted((*configuration, *zip(others, values, strict=True))))
                for values in product(*others.values())
            ]
            for suite, names in models.items():
                for model, point in product(names, points):
                    yield Cell(suite=suite, model=model, target=target.name, axes=point)


def _axes(matrix: Matrix, target: Target) -> dict[str, tuple[str, ...]]:
    return {axis: (default,) for axis, default in AXIS_DEFAULTS.items()} | matrix.axes | target.axes


def _duplicates(planned: Sequence[Cell], place: FilePlace) -> Iterator[Problem]:
    # Every cell has all its axes, so equal ids mean equal cells, and ids are cheaper to compare.
    if len(set(planned)) == len(planned):
        return
    for cell, count in islice(((cell, n) for cell, n in Counter(planned).items() if n > 1), 10):
        hint = "a suite names a model, or an axis a value, more than once"
        yield place.problem(f"{count} cells have the id {cell.id}", hint)
