"""Whether two places are equal: compares environments value by value, except names of one machine."""

import re
from collections.abc import Iterator
from typing import Any

from harness.core.text.errors import one_line

_MOST_TOLD = 5
"""Largest number of reported differences of a place; the record of the run has its whole environment."""

_OF_ONE_MACHINE = re.compile(r"pci|bus|luid|uuid|serial|address|path|library$|number", re.IGNORECASE)
"""Keys whose values distinguish one device from another of its kind, or name an installation folder."""

_SAME = ("options", "providers")
"""Settings made by the harness itself."""


def environment_differences(first: dict[str, Any], other: dict[str, Any]) -> tuple[str, ...]:
    """Return where another environment differs from the first, as ``key: that, not this``."""
    ours, theirs = dict(_flat("", first)), dict(_flat("", other))
    keys = sorted(ours.keys() | theirs.keys())
    return tuple(
        f"{one_line(key, 60)}: {theirs.get(key, 'none')}, not {ours.get(key, 'none')}"
        for key in keys
        if ours.get(key) != theirs.get(key)
    )


def differences_line(found: tuple[str, ...]) -> str:
    """Return differences in one line."""
    rest = len(found) - _MOST_TOLD
    return "; ".join(found[:_MOST_TOLD]) + (f"; and {rest} more" if rest > 0 else "")


def _flat(key: str, value: object) -> Iterator[tuple[str, str]]:
    name = key.rpartition(".")[2]
    if key in _SAME or _OF_ONE_MACHINE.search(name):
        return
    if isinstance(value, dict):
        for below, one in value.items():
            yield from _flat(f"{key}.{below}" if key else str(below), one)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, one in enumerate(value, 1):
            yield from _flat(f"{key}[{number}]", one)
    else:
        yield key, one_line(", ".join(map(str, value)) if isinstance(value, list) else value, 100)
