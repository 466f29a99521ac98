"""The language that selects cells: a table of ``key = glob``, every key of which must match."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.records.cell import Cell
from harness.core.text.globs import Globs, glob_matcher

SelectorText = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[SelectorText], Meta(min_length=1)]
OneOrMore = SelectorText | Texts
"""A value of a file that is a text or a list of texts; ``one_or_more`` reads it."""

SelectorValue = str | int | float | bool

TRUE_FALSE = ("1", "0")
"""Spelling of booleans for everything except options of catalogued providers."""

_MODELS = 1 << 12
"""Models whose matches are kept: a plan asks about one after the other, and fuzzing has no end."""


class SelectorTable(msgspec.Struct, kw_only=True):
    """Selects cells: every key must match, by one of its globs."""

    option_type: ClassVar[Any] = OneOrMore

    suite: Annotated[OneOrMore | UnsetType, Meta(description="Glob on the suite.")] = UNSET
    model: Annotated[
        OneOrMore | UnsetType,
        Meta(description="Glob on suite/model; without a slash also on the model alone."),
    ] = UNSET
    target: Annotated[OneOrMore | UnsetType, Meta(description="Glob on the target's name.")] = UNSET
    provider: Annotated[
        OneOrMore | UnsetType, Meta(description="Glob on the first provider of the target's chain.")
    ] = UNSET
    precision: Annotated[OneOrMore | UnsetType, Meta(description="Glob on this axis.")] = UNSET
    graph_optimization: Annotated[OneOrMore | UnsetType, Meta(description="Glob on this axis.")] = UNSET
    execution_mode: Annotated[OneOrMore | UnsetType, Meta(description="Glob on this axis.")] = UNSET
    scenario: Annotated[OneOrMore | UnsetType, Meta(description="Glob on this axis.")] = UNSET


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on a cell, as in ``SelectorTable``: for every key that is set, one of the globs matches.

    Globs are those of ``harness.core.text.globs``. A cell without one of the ``axes`` does not match.
    """

    suite: Globs = ()
    model: Globs = ()
    target: Globs = ()
    provider: Globs = ()
    axes: tuple[tuple[str, Globs], ...] = ()


class HasSelector(Protocol):
    """An entry of a list that selects cells."""

    @property
    def selector(self) -> Selector:
        """Which cells the entry is for."""


_Entry = TypeVar("_Entry", bound=HasSelector)


def one_or_more(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return a single text, or each text of a list."""
    return (value,) if isinstance(value, str) else tuple(value)


def text(value: SelectorValue, booleans: tuple[str, str] = TRUE_FALSE) -> str:
    """Return a TOML value as the text that an option or variable receives.

    ``booleans`` spells ``true`` and ``false``; for options ``Provider.true_false``: TensorRT reads ``True``,
    DirectML ``true``.
    """
    return booleans[not value] if isinstance(value, bool) else str(value)


def selector_from(table: Mapping[str, str | Sequence[str]], *, not_keys: Iterable[str] = ()) -> Selector:
    """Return the selector of ``key = glob`` or ``key = [glob, ...]``; all but four keys are axes.

    ``not_keys`` are not part of the selector, such as ``rtol``.
    """
    globs = {key: one_or_more(value) for key, value in table.items() if key not in set(not_keys)}
    named = {key: globs.pop(key, ()) for key in ("suite", "model", "target", "provider")}
    return Selector(**named, axes=tuple(sorted(globs.items())))


def model_matcher(globs: Sequence[str]) -> Callable[[str, str], bool]:
    """Return a predicate on (suite, model). A glob without a slash is also tried on the model alone."""
    if not globs:
        return lambda _suite, _model: True
    on_path = glob_matcher(globs)
    bare = tuple(glob for glob in globs if "/" not in glob)
    on_name = glob_matcher(bare) if bare else None
    return lambda suite, model: on_path(f"{suite}/{model}") or (on_name is not None and on_name(model))


class SelectorIndex:
    """Many selectors, matched with one cell at once.

    A match is a bit mask, bit ``i`` for selector ``i``. The conditions on suite, model, target and axes are
    independent, so each is computed once per distinct value and cached. A cell then costs three lookups
    (about 1 us), however many selectors there are.
    """

    def __init__(self, selectors: Sequence[Selector], providers: Mapping[str, str]) -> None:
        """Compile the selectors; ``providers``: name of a target -> first provider of its chain."""
        suites = [glob_matcher(selector.suite) for selector in selectors]
        models = [model_matcher(selector.model) for selector in selectors]
        targets = [glob_matcher(selector.target) for selector in selectors]
        of_target = [glob_matcher(selector.provider) for selector in selectors]
        axes = [[(axis, glob_matcher(globs)) for axis, globs in selector.axes] for selector in selectors]

        @cache
        def by_suite(suite: str) -> int:
            return _mask(match(suite) for match in suites)

        @lru_cache(_MODELS)
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
        self._count = len(selectors)

    def matching(self, cell: Cell) -> int:
        """Return the selectors that match a cell, as a bit mask."""
        if not self._count:
            return 0
        return (
            self._by_target(cell.target) & self._by_axes(cell.axes) & self._by_model(cell.suite, cell.model)
        )

    def idle(self, cells: Iterable[Cell]) -> list[int]:
        """Return the bits of the selectors that match none of the cells."""
        left = (1 << self._count) - 1
        for cell in cells:
            left &= ~self.matching(cell)
            if not left:
                break
        return [bit for bit in range(self._count) if left >> bit & 1]


class LastMatch(Generic[_Entry]):
    """Finds the last entry that matches a cell; ``providers`` as for ``SelectorIndex``."""

    def __init__(self, entries: Sequence[_Entry], providers: Mapping[str, str]) -> None:
        self._entries = entries
        self.index = SelectorIndex([entry.selector for entry in entries], providers)

    def find(self, cell: Cell) -> _Entry | None:
        """Return the last entry that matches a cell, or None."""
        last = self.index.matching(cell).bit_length()
        return self._entries[last - 1] if last else None

    def all(self, cell: Cell) -> Iterator[_Entry]:
        """Yield every entry that matches a cell, the last one first."""
        mask = self.index.matching(cell)
        while last := mask.bit_length():
            yield self._entries[last - 1]
            mask ^= 1 << (last - 1)


def _mask(answers: Iterable[bool]) -> int:
    return sum(1 << bit for bit, answer in enumerate(answers) if answer)
