"""Entries of a matrix that match nothing, with the nearest names: an outdated entry must not remain."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.core.files.structure import OPTION, FilePlace
from harness.core.records.cell import Cell
from harness.core.records.scenario import PLAIN, SCENARIOS, SHAPED
from harness.core.text.errors import Problem, valid_names
from harness.core.text.globs import Globs
from harness.plan.matrix import Matrix
from harness.plan.selector import Selector, SelectorIndex, model_matcher, selector_from

_SHOWN = 200
"""Number of characters of a glob that are compared with names."""


def unmatched_entries(
    matrix: Matrix, section: str, selectors: Sequence[Selector], planned: Sequence[Cell]
) -> Iterator[Problem]:
    """Yield a problem for each selector of a section that matches none of the cells."""
    for bit in SelectorIndex(selectors, matrix.first_providers).idle(planned) if selectors else ():
        place = FilePlace(matrix.path).key(section).item(bit)
        yield _unmatched(place, selectors[bit], planned, matrix.first_providers)


def idle_timing(matrix: Matrix, planned: Sequence[Cell]) -> Iterator[Problem]:
    """Yield a problem for each ``[[latency]]`` entry whose grid or nodes no selected cell could time."""
    kinds: tuple[tuple[str, Callable[[Cell], bool], str], ...] = (
        ("grid", lambda cell: cell.axis("scenario") == SHAPED, SHAPED),
        ("nodes", lambda cell: SCENARIOS[cell.axis("scenario")].swaps_inputs, PLAIN),
    )
    index = SelectorIndex([entry.selector for entry in matrix.latency], matrix.first_providers)
    for key, is_able, scenario in kinds:
        if not any(getattr(entry.settings, key) for entry in matrix.latency):
            continue
        for bit in index.idle([cell for cell in planned if is_able(cell)]):
            if getattr(matrix.latency[bit].settings, key):
                what = f"none of the selected cells has the scenario {scenario}, which it needs"
                place = FilePlace(matrix.path).key("latency").item(bit).key(key)
                yield place.problem(what, f'add it: [axes] scenario = ["{scenario}"]')


def unmatched_model_globs(
    matrix: Matrix, models: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Yield a problem for each glob of ``models.exclude`` and of ``[[model]]`` that matches no model.

    ``wanted`` has the models of each suite that ``models.exclude`` leaves.
    """
    excluding = FilePlace(matrix.path).key("models").key("exclude")
    for index, glob in enumerate(matrix.models.exclude):
        yield from _unmatched_glob(excluding.item(index), (glob,), models)
    for index, entry in enumerate(matrix.model):
        place = FilePlace(matrix.path).key("model").item(index).key("model")
        yield from _unmatched_glob(place, entry.models, wanted)


def _unmatched_glob(place: FilePlace, globs: Globs, models: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    matches = model_matcher(globs)
    if not any(matches(suite, model) for suite, names in models.items() for model in names):
        known = dict.fromkeys(
            f"{suite}/{name}" if "/" in globs[0] else name for suite in models for name in models[suite]
        )
        spelled = " or ".join(repr(glob) for glob in globs)
        yield place.problem(f"no model matches {spelled}", valid_names(_literal(globs[0]), known))


def nearest_names(key: str, globs: Globs, planned: Sequence[Cell], providers: Mapping[str, str]) -> str:
    """Return names near a glob that matches nothing: ``did you mean ...? valid: ...``."""
    bare = key == "model" and not any("/" in glob for glob in globs)
    known = dict.fromkeys(cell.model if bare else _value(key, cell, providers) for cell in planned)
    return valid_names(_literal(globs[0]), [name for name in known if name is not None])


def _unmatched(
    place: FilePlace, selector: Selector, planned: Sequence[Cell], providers: Mapping[str, str]
) -> Problem:
    if not planned:
        what = "matches no cell: the scenarios of this plan are neither repeated nor measured in this way"
        return place.problem(what, "remove the entry")
    parts = {"suite": selector.suite, "model": selector.model, "target": selector.target}
    parts |= {"provider": selector.provider, **dict(selector.axes)}
    for key, globs in parts.items():
        one_key = SelectorIndex([selector_from({key: globs})], providers)
        if any(map(one_key.matching, planned)):
            continue
        axes = {axis: None for cell in planned for axis, _ in cell.axes}
        if key.startswith(OPTION) and key not in axes:
            what = f"matches no cell: no target varies {key.removeprefix(OPTION)!r}"
            return place.key(key).problem(what, valid_names(key, axes))
        spelled = " or ".join(repr(glob) for glob in globs)
        what = f"matches no cell: no {key} matches {spelled}"
        return place.key(key).problem(what, nearest_names(key, globs, planned, providers))
    hint = "excluded cells do not count; remove the entry or one of its keys"
    return place.problem("matches no cell: each key matches some cells, but no cell matches all keys", hint)


def _value(key: str, cell: Cell, providers: Mapping[str, str]) -> str | None:
    """Return the value that the globs of a key are matched with; None if the cell has no such axis."""
    match key:
        case "suite":
            return cell.suite
        case "model":
            return f"{cell.suite}/{cell.model}"
        case "target":
            return cell.target
        case "provider":
            return providers[cell.target]
    return dict(cell.axes).get(key)


def _literal(glob: str) -> str:
    """Return a glob without its wildcards, to compare with names."""
    return re.sub(r"[*?]|\[.*?\]", "", glob[:_SHOWN])
