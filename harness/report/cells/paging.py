"""How a page of the report is split into files, each of which stays below 300 kB of HTML."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

FILE_BYTES = 300_000
"""Largest file of a page, which a phone opens at once too. A single model or fault may need more."""

PART_CHARS = 225_000
"""Characters in one file, beside its head, style and scripts: at most some 75 kB."""

SHOWN_LINKS = 24
"""Largest number of links from one file to the others."""

_Item = TypeVar("_Item")


def split(
    items: Iterable[_Item], chars: Callable[[_Item], int], limit: int | None = None, used: int = 0
) -> Iterator[list[_Item]]:
    """Yield the items of each file, in their order; an item is never split.

    Args:
        items: Rows, models or tables.
        chars: Returns the approximate size of one item in the page.
        limit: Largest size of one file; ``PART_CHARS`` by default.
        used: Characters of the first file that are not its own.
    """
    part: list[_Item] = []
    total, limit = used, PART_CHARS if limit is None else limit
    for item in items:
        size = chars(item)
        if part and total + size > limit:
            yield part
            part, total = [], 0
        part.append(item)
        total += size
    if part:
        yield part


def around(files: Sequence[tuple[str, str]], file: str) -> list[tuple[int, str, str]]:
    """Return ``(number, file, label)`` of the files to which one of them links.

    These are all if they are few. Else they are the first and the last file, the neighbours, and some between
    them at even distances, so that every file is a few links away.
    """
    here = [name for name, _ in files].index(file)
    last = len(files) - 1
    step = max(1, -(-len(files) // (SHOWN_LINKS - 7)))
    near = range(max(0, here - 2), min(last, here + 2) + 1)
    shown = (
        range(len(files)) if len(files) <= SHOWN_LINKS else sorted({0, last, *near, *range(0, last, step)})
    )
    return [(index + 1, *files[index]) for index in shown]
