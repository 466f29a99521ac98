"""Manners and leaks of a run that an older one did not have."""

from collections.abc import Iterable

from harness.core.findings.leak import Lives, cell_leaks
from harness.core.records.record import Record
from harness.core.text.errors import one_line

_WORDS_CHARS = 300


def new_manners(old: Iterable[Record], new: Iterable[Record]) -> dict[str, tuple[str, ...]]:
    """Return target -> cells with a manner of a new kind, each as ``cell: words``."""
    known = {key for record in old for key, _ in _manners(record)}
    found: dict[str, list[str]] = {}
    for record in new:
        words = "; ".join(words for key, words in _manners(record) if key not in known)
        if words:
            found.setdefault(record.target, []).append(f"{record.cell}: {one_line(words, _WORDS_CHARS)}")
    return {target: tuple(cells) for target, cells in found.items()}


def new_leaks(old: Iterable[Record], new: Iterable[Record]) -> dict[str, tuple[str, ...]]:
    """Return target -> what leaks and did not before: the target, its cells of the scenario ``sessions``."""
    before, after = _leaks(old), _leaks(new)
    found: dict[str, list[str]] = {}
    for (target, where), what in after.items():
        if (target, where) not in before:
            found.setdefault(target, []).append(f"{where}: {'; '.join(what)}")
    return {target: tuple(leaks) for target, leaks in found.items()}


def _manners(record: Record) -> list[tuple[tuple[str, str], str]]:
    # Effects of loading a library belong to the first cell of each process, whichever that is.
    return [
        ((record.target if one.phase == "register" else record.cell, one.kind), one.words)
        for one in record.manners
    ]


def _leaks(records: Iterable[Record]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return target, and target or cell -> what leaks."""
    lives: dict[str, Lives] = {}
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for record in records:
        lives.setdefault(record.target, Lives()).add(record.process)
        if leaks := cell_leaks(record):
            found[record.target, record.cell] = leaks
    for target, life in lives.items():
        if leaks := life.memory().leaked:
            found[target, target] = leaks
    return found
