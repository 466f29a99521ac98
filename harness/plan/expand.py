"""From a matrix to its plan: the ordered product of targets, models and axes, without excluded cells."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from harness.core.files.structure import OPTION, FilePlace
from harness.core.records.cell import AXIS_DEFAULTS, SESSION_ENTRY, Cell
from harness.core.records.scenario import PACKAGE_SCENARIO
from harness.core.records.variant_use import NO_USES, Uses, VariantUse
from harness.core.text.errors import Problem, UsageError
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.runs_entry import has_latency, has_repeat
from harness.plan.selector import HasSelector, SelectorIndex, model_matcher
from harness.plan.target import Target, is_fixed
from harness.plan.unmatched import idle_timing, unmatched_entries, unmatched_model_globs

_MOST_CELLS = 1_000_000
"""A larger plan is a mistake in the axes: real runs have up to some hundred thousand cells."""


def expand(matrix: Matrix, models: Mapping[str, Sequence[str]], uses: Uses = NO_USES) -> Plan:
    """Return the plan of a checked matrix for the models of each suite: at least one cell, with unique ids.

    ``uses`` are those of packages: a variant runs on the targets of its provider, with its own options.

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
    every = tuple(cells(matrix, wanted, uses))
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
        problems += idle_timing(matrix, left)
    else:
        problems.append(place.problem("the plan has no cells: the exclude lists match all of them"))
    if problems:
        raise UsageError(*problems)
    return Plan(matrix=matrix, cells=left)


def cells(matrix: Matrix, models: Mapping[str, Sequence[str]], uses: Uses = NO_USES) -> Iterator[Cell]:
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
                of_suite = uses.get(suite, {})
                for model, point in product(names, points):
                    use = of_suite.get(model)
                    if use is None:
                        yield Cell(suite=suite, model=model, target=target.name, axes=point)
                    elif (own := _used(use, target, point)) is not None:
                        yield Cell(suite=suite, model=model, target=target.name, axes=own)


def _used(
    use: VariantUse, target: Target, point: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...] | None:
    """Return the axes of a model of a package; None if it does not run there.

    Options that differ from the target's are axes of the cell, so that its id has them.
    """
    selects = dict(point)["scenario"] == PACKAGE_SCENARIO
    if selects or use.is_component:
        return point if selects and use.is_component else None
    if use.ep and use.ep not in target.provider:
        return None
    options = {
        f"{OPTION}{key}": value for key, value in use.options.items() if target.options.get(key) != value
    }
    entries = {f"{SESSION_ENTRY}{key}": value for key, value in use.entries.items()}
    return tuple(sorted(({**options, **entries} | dict(point)).items()))


def _axes(matrix: Matrix, target: Target) -> dict[str, tuple[str, ...]]:
    return {axis: (default,) for axis, default in AXIS_DEFAULTS.items()} | matrix.axes | target.axes


def _duplicates(planned: Sequence[Cell], place: FilePlace) -> Iterator[Problem]:
    # Every cell has all its axes, so equal ids mean equal cells, and ids are cheaper to compare.
    if len(set(planned)) == len(planned):
        return
    for cell, count in islice(((cell, n) for cell, n in Counter(planned).items() if n > 1), 10):
        hint = "a suite names a model, or an axis a value, more than once"
        yield place.problem(f"{count} cells have the id {cell.id}", hint)
