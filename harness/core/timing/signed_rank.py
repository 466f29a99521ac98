"""Wilcoxon's signed-rank test of paired differences, exactly, and the estimate and bounds that belong to it.

If both sides of a pair are alike and their order was drawn by chance, each sign of a difference is as likely
as the other, however the machine disturbs them. So the distribution of the ranks' sum needs no assumption
about noise: all signs are counted (Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 2014,
sections 3.1 to 3.3). The estimate is that of Hodges and Lehmann (Annals of Mathematical Statistics 34, 1963).
"""

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.core.values.value import Floats

MOST_PAIRS = 400
"""Largest number of pairs: counting all signs takes time with the third power of it, here 0.6 s."""


def signed_rank_p(differences: Sequence[float]) -> float:
    """Return the probability of ranks at least as positive as these, if each sign is a coin's.

    Differences of 0 keep their ranks and add nothing (Pratt, 1959); equal ones share their ranks.

    Args:
        differences: At most ``MOST_PAIRS``; without any, 1.
    """
    values = np.asarray(differences, np.float64)
    doubled = _doubled_ranks(np.abs(values))
    doubled[values == 0] = 0
    observed = int(doubled[values > 0].sum())
    return float(_tail(tuple(sorted(doubled.tolist())))[observed])


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Return the estimate of the difference; at least one is needed."""
    return float(np.median(_means(differences)))


def lower_bound(differences: Sequence[float], level: float) -> float:
    """Return a bound that is above the true difference with a probability of at most ``level``.

    Minus infinity if there are too few pairs.
    """
    count = len(differences)
    if not count:
        return -math.inf
    tail = _tail(tuple(range(2, 2 * count + 1, 2)))
    # Sums from the largest on, as long as they are rare enough together; they are even.
    rare = int(np.count_nonzero(tail[::-2][:-1] <= level))
    return float(np.sort(_means(differences))[rare - 1]) if rare else -math.inf


def upper_bound(differences: Sequence[float], level: float) -> float:
    """Return a bound that is below the true difference with a probability of at most ``level``."""
    return -lower_bound([-each for each in differences], level)


def least_pairs(level: float) -> int:
    """Return how many pairs it takes until all signs alike are as rare as ``level``."""
    return math.ceil(-math.log2(level))


def holm(p_values: Mapping[str, float], level: float) -> frozenset[str]:
    """Return the names whose hypotheses are rejected.

    With a probability of at most ``level`` a true one is among them. Holm, "A simple sequentially rejective
    multiple test procedure", Scandinavian Journal of Statistics 6, 1979. It holds for
    tests that depend on one another in any way.
    """
    ordered = sorted(p_values, key=p_values.__getitem__)
    for rank, name in enumerate(ordered):
        if p_values[name] > level / (len(ordered) - rank):
            return frozenset(ordered[:rank])
    return frozenset(ordered)


def _means(differences: Sequence[float]) -> Floats:
    """Return the means of all pairs of differences, each with itself included."""
    values = np.asarray(differences, np.float64)
    first, second = np.triu_indices(len(values))
    found: Floats = (values[first] + values[second]) / 2
    return found


def _doubled_ranks(sizes: Floats) -> NDArray[np.int64]:
    """Return twice the rank of each size: an integer, as equal ones share the mean of their ranks."""
    _, inverse, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    found: NDArray[np.int64] = (2 * last - counts + 1)[inverse]
    return found


@functools.lru_cache(maxsize=64)
def _tail(doubled: tuple[int, ...]) -> Floats:
    """Return for each sum of doubled ranks the probability that a random part of them has at least it."""
    chances = np.zeros(sum(doubled) + 1)
    chances[0] = 1.0
    reached = 0
    for rank in doubled:
        chances[: reached + rank + 1] *= 0.5
        # The old values, halved, once more behind the rank.
        chances[rank : reached + rank + 1] += (
            chances[: reached + 1].copy() if rank else chances[: reached + 1]
        )
        reached += rank
    found: Floats = np.minimum(np.cumsum(chances[::-1])[::-1], 1.0)
    return found
