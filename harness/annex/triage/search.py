"""How a transformation searches for the smallest set of things that must stay: delta debugging in batches."""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from harness.annex.triage.net import Net

_T = TypeVar("_T")

NetCandidate = Net | None
"""A net to try, or None if something cannot be done."""

Search = Generator[Iterable[NetCandidate], int | None, None]
"""Yields alternatives to the current net, each made on demand.

It receives the index of the first interesting one, which then becomes the current net, or None.
"""


def minimise(items: Sequence[_T], build: Callable[[tuple[_T, ...]], NetCandidate]) -> Search:
    """Search for a smallest set of things that must stay: without any single one the failure is gone.

    First without all of them, then without each half, then without each quarter of the rest, and so on. A
    sweep continues behind what it removed, so that K things out of N take about ``2 K log2(N / K)`` trials.
    Things at the end are removed first; ``build`` makes the net in which only some stay.
    """
    kept = tuple(items)
    if not kept:
        return
    if (yield [build(())]) is not None:
        return
    size = len(kept)
    while size > 1:
        size = -(-size // 2)
        kept = yield from _sweep(kept, size, build)
        size = min(size, len(kept))


def descend(net: Net, alternatives: Callable[[Net], Iterable[tuple[Hashable, NetCandidate]]]) -> Search:
    """Take the first interesting alternative, then search for one to it, until none is interesting.

    Each alternative has a key. A failed one is not tried again under the same key, although its surroundings
    may have changed since.
    """
    failed: set[Hashable] = set()
    while True:
        made: list[tuple[Hashable, NetCandidate]] = []
        taken = yield _remembered(alternatives(net), failed, made)
        failed.update(key for key, _ in made[:taken])
        smaller = None if taken is None else made[taken][1]
        if smaller is None:
            return
        net = smaller


def _remembered(
    alternatives: Iterable[tuple[Hashable, NetCandidate]],
    failed: set[Hashable],
    made: list[tuple[Hashable, NetCandidate]],
) -> Iterator[NetCandidate]:
    for key, candidate in alternatives:
        if key not in failed:
            made.append((key, candidate))
            yield candidate


def _sweep(
    kept: tuple[_T, ...], size: int, build: Callable[[tuple[_T, ...]], NetCandidate]
) -> Generator[Iterable[NetCandidate], int | None, tuple[_T, ...]]:
    """Remove each run of so many things, from the end to the start, if possible."""
    end = len(kept)
    while end > 0:
        taken = yield _without_runs(kept, end, size, build)
        if taken is None:
            break
        # Runs behind the removed one were tried with it in place; they come again when the size is halved.
        end -= taken * size
        start = max(0, end - size)
        kept = kept[:start] + kept[end:]
        end = start
    return kept


def _without_runs(
    kept: tuple[_T, ...], end: int, size: int, build: Callable[[tuple[_T, ...]], NetCandidate]
) -> Iterator[NetCandidate]:
    while end > 0:
        start = max(0, end - size)
        rest = kept[:start] + kept[end:]
        yield build(rest) if rest else None  # an empty rest was tried before
        end = start
