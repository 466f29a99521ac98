"""The one language that selects cells: a table of ``key = glob``, every key of which must match."""

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

import msgspec

from harness.core.cell import Cell

Globs = tuple[str, ...]
"""Alternatives: one of them has to match."""


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell must be like: for every key that is set, one of the globs matches.

    Globs are those of ``fnmatch``, case-sensitive: ``*`` matches any text, slashes included, ``?`` one
    character, ``[abc]`` one of these.

    Attributes:
        suite: On the suite's name.
        model: On ``suite/model``; a glob without a slash also on the model's name alone.
        target: On the target's name.
        provider: On the first provider of the target's chain.
        axes: ``(axis, globs)`` pairs; a cell without that axis does not match.
    """

    suite: Globs = ()
    model: Globs = ()
    target: Globs = ()
    provider: Globs = ()
    axes: tuple[tuple[str, Globs], ...] = ()


def selector_from(table: Mapping[str, str | Sequence[str]], *, not_keys: Iterable[str] = ()) -> Selector:
    """A selector from ``key = glob`` or ``key = [glob, ...]``; all but four keys are axes.

    Args:
        table: As in the matrix file.
        not_keys: Keys of the table that are no part of the selector, such as ``rtol``.
    """
    globs = {
        key: (value,) if isinstance(value, str) else tuple(value)
        for key, value in table.items()
        if key not in set(not_keys)
    }
    return Selector(
        suite=globs.pop("suite", ()),
        model=globs.pop("model", ()),
        target=globs.pop("target", ()),
        provider=globs.pop("provider", ()),
        axes=tuple(sorted(globs.items())),
    )


def glob_matcher(globs: Globs) -> Callable[[str], bool]:
    """A predicate: does any of the globs match the whole of a text? Without globs every text does."""
    if not globs:
        return lambda _: True
    match = re.compile("|".join(fnmatch.translate(glob) for glob in globs)).match
    return lambda text: match(text) is not None


def model_matcher(globs: Globs) -> Callable[[str, str], bool]:
    """A predicate on (suite, model): each glob on ``suite/model``, one without a slash also on the model."""
    if not globs:
        return lambda _suite, _model: True
    on_path = glob_matcher(globs)
    bare = tuple(glob for glob in globs if "/" not in glob)
    on_name = glob_matcher(bare) if bare else None
    return lambda suite, model: on_path(f"{suite}/{model}") or (on_name is not None and on_name(model))


class SelectorIndex:
    """Many selectors, asked at once about one cell.

    A match is a bit mask, bit ``i`` for selector ``i``. What a selector says about a suite, a model, a target
    and a point of the axes is independent, so each is answered once per distinct value and remembered; a cell
    then costs three lookups (about 1 us), however many selectors there are.
    """

    def __init__(self, selectors: Sequence[Selector], providers: Mapping[str, str]) -> None:
        """Compile the selectors.

        Args:
            selectors: In the order of their bits.
            providers: Name of a target -> first provider of its chain.
        """
        suites = [glob_matcher(selector.suite) for selector in selectors]
        models = [model_matcher(selector.model) for selector in selectors]
        targets = [glob_matcher(selector.target) for selector in selectors]
        of_target = [glob_matcher(selector.provider) for selector in selectors]
        axes = [[(axis, glob_matcher(globs)) for axis, globs in selector.axes] for selector in selectors]

        @cache
        def by_suite(suite: str) -> int:
            return _mask(match(suite) for match in suites)

        @cache
        def by_model(suite: str, model: str) -> int:
            return by_suite(suite) & _mask(match(suite, model) for match in models)

        @cache
        def by_target(target: str) -> int:
            named = _mask(match(target) for match in targets)
            return named & _mask(match(providers[target]) for match in of_target)

        @cache
        def by_axes(pairs: tuple[tuple[str, str], ...]) -> int:
            point = dict(pairs)
            return _mask(
                all(axis in point and match(point[axis]) for axis, match in wanted) for wanted in axes
            )

        self._by_model, self._by_target, self._by_axes = by_model, by_target, by_axes

    def matching(self, cell: Cell) -> int:
        """The selectors that match a cell, as a bit mask."""
        return (
            self._by_target(cell.target) & self._by_axes(cell.axes) & self._by_model(cell.suite, cell.model)
        )


def _mask(answers: Iterable[bool]) -> int:
    return sum(1 << bit for bit, answer in enumerate(answers) if answer)
