"""Manners and leaks of a run that an older one did not have."""

from collections.abc import Iterable

from harness.core.errors import one_line
from harness.core.leak import Lives, cell_leaks
from harness.core.record import Record

_WORDS_CHARS = 300


def new_manners(old: Iterable[Record], new: Iterable[Record]) -> tuple[str, ...]:
    """Return the cells with a manner of a kind that they had not before, each as ``cell: words``."""
    known = {key for record in old for key, _ in _manners(record)}
    found: dict[str, list[str]] = {}
    for record in new:
        for key, words in _manners(record):
            if key not in known:
                found.setdefault(record.cell, []).append(words)
    return tuple(f"{cell}: {one_line('; '.join(words), _WORDS_CHARS)}" for cell, words in found.items())


def new_leaks(old: Iterable[Record], new: Iterable[Record]) -> tuple[str, ...]:
    """Return the targets, and the cells of the scenario ``sessions``, that leak and did not before."""
    before, after = _leaks(old), _leaks(new)
    return tuple(f"{where}: {'; '.join(what)}" for where, what in after.items() if where not in before)


def _manners(record: Record) -> list[tuple[tuple[str, str], str]]:
    # What a library does while it is loaded goes to the first cell of each process, whichever that is.
    return [
        ((record.target if one.phase == "register" else record.cell, one.kind), one.words)
        for one in record.manners
    ]


def _leaks(records: Iterable[Record]) -> dict[str, tuple[str, ...]]:
    lives: dict[str, Lives] = {}
    found: dict[str, tuple[str, ...]] = {}
    for record in records:
        lives.setdefault(record.target, Lives()).add(record.process)
        if leaks := cell_leaks(record):
            found[record.cell] = leaks
    for target, life in lives.items():
        if leaks := life.memory().leaked:
            found[target] = leaks
    return found
