"""The search for sizes that fit: each unmet demand leads back to the dimension that has to change.

Trials find this dimension: the graph is walked with another size, and the operator's input changes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from harness.corpus.inputs.fitting.demand_walk import DemandsByPlace, Walk
from harness.corpus.inputs.fitting.demands import Demand
from harness.corpus.inputs.fitting.known_tensors import KnownTensor

DimensionSizes = dict[str, int]
InputsAtSizes = Callable[[Mapping[str, int]], Mapping[str, KnownTensor]]
"""Sizes of dimensions -> the graph inputs."""

_MOST_SIZE = 1 << 17
"""Largest length that is tried for a dimension: four seconds of audio at 32 kHz."""

_MOST_VISITS = 60_000
"""Largest number of nodes that are walked for one model, in all walks together: a second or two."""

_OF_LEAST, _OF_DRAW, _OF_CHECK = 0.5, 0.15, 0.1
"""Shares of it: for the least sizes, for the sizes of each draw, and for a check."""

_MOST_ROUNDS = 64

_STEPS = (2, 4, 8, 16, 32, 64)
"""Usual products of strides: a network that halves and doubles needs multiples of one of them."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes that fit a graph.

    Attributes:
        least: Dimension -> the least size that meets every demand that can be met.
        draws: Sizes to use, for each draw.
        beyond: Windows that are larger than their data at the sizes of the first draw, in words.
        unmet: Number of unmet demands at these sizes.
    """

    least: DimensionSizes = {}
    draws: tuple[DimensionSizes, ...] = ()
    beyond: tuple[str, ...] = ()
    unmet: int = 0


NO_FIT = Fit()
"""Nothing is known about what a graph requires."""


class SizeSearch:
    """Searches for sizes of one graph."""

    def __init__(self, walk: Walk, inputs: InputsAtSizes, free: Iterable[str]) -> None:
        self._walk = walk
        self._inputs = inputs
        self._free = tuple(free)
        self._limit = 0
        self._moving: dict[tuple[str, str], bool] = {}
        self._known: dict[tuple[tuple[str, int], ...], DemandsByPlace] = {}

    def allow(self, share: float) -> None:
        """Allow a further share of the budget of nodes."""
        self._limit = self._walk.visited + int(share * _MOST_VISITS)

    @property
    def is_exhausted(self) -> bool:
        """Return whether this budget is used up: the search ends, and unknown demands count as met."""
        return self._walk.visited > self._limit

    def broken(self, sizes: DimensionSizes) -> dict[str, Demand]:
        """Return the demands that are not met, by their places."""
        return {place: one for place, one in self._demands(sizes).items() if not one.is_met}

    def fitted(self, start: DimensionSizes) -> DimensionSizes:
        """Return the nearest sizes that meet all demands that can be met."""
        sizes, hopeless = start, set[str]()
        for _ in range(_MOST_ROUNDS):
            place = next((one for one in self.broken(sizes) if one not in hopeless), None)
            if place is None:
                break
            found = self._mended(place, sizes)
            if found is None:
                hopeless.add(place)
            else:
                sizes = found
        return sizes

    def _demands(self, sizes: DimensionSizes) -> DemandsByPlace:
        key = tuple(sorted(sizes.items()))
        found = self._known.get(key)
        if found is None:
            if self.is_exhausted:
                return {}
            found = self._known[key] = self._walk.demands(self._inputs(sizes))
        return found

    def _mended(self, place: str, sizes: DimensionSizes) -> DimensionSizes | None:
        """Return sizes that meet one more demand and break none before it; None if there are none nearby."""
        moving = [name for name in reversed(self._free) if self._moves(place, sizes, name)]
        groups = [(name,) for name in moving] + ([tuple(moving)] if len(moving) > 1 else [])
        for names in groups:
            for size in self._candidates(place, sizes, names):
                tried = sizes | dict.fromkeys(names, size)
                if self._is_better(place, sizes, tried):
                    return tried
        return None

    def _moves(self, place: str, sizes: DimensionSizes, name: str) -> bool:
        """Return whether a dimension changes an operator's input."""
        found = self._moving.get((place, name))
        if found is None:
            now = self._value(place, sizes)
            others = [1, *(sizes[name] + more for more in (1, 64, 4096))]
            values = (self._value(place, sizes | {name: size}) for size in others)
            found = self._moving[place, name] = any(value not in (None, now) for value in values)
        return found

    def _candidates(self, place: str, sizes: DimensionSizes, names: tuple[str, ...]) -> Iterator[int]:
        """Yield sizes that may meet a demand; all given dimensions get the same size."""
        current = max(sizes[name] for name in names)
        demand = self._demands(sizes)[place]
        if not demand.exact and demand.multiple == 1:
            yield from self._crossing(place, sizes, names, current, _MOST_SIZE)
            return
        # Most extents are a dimension itself, plus or minus a fixed number.
        yield from (size for size in (current - demand.value, current + demand.value) if size > 0)
        yield from self._crossing(place, sizes, names, 1, current)
        yield from self._crossing(place, sizes, names, current, _MOST_SIZE)
        for step in dict.fromkeys((*range(2, 8), *_STEPS, min(demand.multiple, _MOST_SIZE))):
            yield -(-current // step) * step

    def _crossing(
        self, place: str, sizes: DimensionSizes, names: tuple[str, ...], low: int, high: int
    ) -> Iterator[int]:
        """Yield the least size in a range with which a value reaches 0, if it is on the other side before."""

        def value(size: int) -> int | None:
            return self._value(place, sizes | dict.fromkeys(names, size))

        first = value(low)
        if first is None or low >= high:
            return
        if first == 0:
            yield low
            return
        end = low
        while (at := value(min(end, high))) is not None and (at < 0) == (first < 0) and at:
            if end >= high:
                return
            low, end = end, end * 2
        end = min(end, high)
        while end - low > 1:
            middle = (low + end) // 2
            at = value(middle)
            if at is not None and at and (at < 0) == (first < 0):
                low = middle
            else:
                end = middle
        yield end

    def _value(self, place: str, sizes: DimensionSizes) -> int | None:
        demand = self._demands(sizes).get(place)
        return None if demand is None else demand.value

    def _is_better(self, place: str, before: DimensionSizes, after: DimensionSizes) -> bool:
        demands = self._demands(after)
        if place not in demands or not demands[place].is_met:
            return False
        broken = self.broken(before)
        for one, demand in demands.items():
            if one == place:
                return True
            if not demand.is_met and one not in broken:
                return False
        return False


def fit(
    search: SizeSearch, names: Iterable[str], starts: Callable[[DimensionSizes], tuple[DimensionSizes, ...]]
) -> Fit:
    """Return sizes for all draws.

    Args:
        search: The search for the graph.
        names: The dimensions whose sizes may change.
        starts: The least sizes -> the preferred sizes of each draw.
    """
    search.allow(_OF_LEAST)
    least = search.fitted(dict.fromkeys(names, 1))
    search.allow(_OF_CHECK)
    unavoidable = len(search.broken(least))
    draws = []
    for start in starts(least):
        search.allow(_OF_DRAW)
        fitted = search.fitted(start)
        if search.is_exhausted or len(search.broken(fitted)) > unavoidable:
            search.allow(_OF_CHECK)
            fitted = _one_by_one(search, least, start)
        draws.append(fitted)
    search.allow(_OF_CHECK)
    broken = search.broken(draws[0])
    beyond = tuple(one.window for one in broken.values() if one.window)
    return Fit(least=least, draws=tuple(draws), beyond=beyond, unmet=len(broken))


def _one_by_one(search: SizeSearch, least: DimensionSizes, start: DimensionSizes) -> DimensionSizes:
    """Return the least sizes, with as many preferred ones as the graph accepts together."""
    sizes, unavoidable = least, len(search.broken(least))
    for name, size in start.items():
        tried = sizes | {name: max(size, least[name])}
        if len(search.broken(tried)) <= unavoidable:
            sizes = tried
    return sizes
