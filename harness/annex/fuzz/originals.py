"""Passing random graphs, until it is known whether a variant of them fails."""

from typing import TypeVar

from harness.annex.made.variants.source import is_random_graph, original_of
from harness.core.records.record import Record

_T = TypeVar("_T")

MOST_HELD = 300
"""Number of records that are held: a variant has the number after its original, so few are between them.

As many as two batches: more would only take longer to fill."""


class Originals:
    """Holds records that are kept only if a variant of their model is a finding on the same target."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], Record] = {}
        self._wanted: dict[tuple[str, str], None] = {}

    def of(self, finding: Record) -> tuple[Record, ...]:
        """Return the record of a finding's original, if it is held; if not, it is wanted from now on."""
        key = (finding.target, original_of(finding.model))
        if not key[1]:
            return ()
        held = self._held.pop(key, None)
        if held is not None:
            return (held,)
        _put(self._wanted, key, None)
        return ()

    def hold(self, record: Record) -> bool:
        """Hold a record that nothing else keeps; return whether it is wanted and so must be kept at once."""
        key = (record.target, record.model)
        if key in self._wanted:
            del self._wanted[key]
            return True
        if is_random_graph(record.model):
            _put(self._held, key, record)
        return False


def _put(entries: dict[tuple[str, str], _T], key: tuple[str, str], value: _T) -> None:
    """Add an entry; drop the oldest one if there are too many."""
    entries[key] = value
    if len(entries) > MOST_HELD:
        del entries[next(iter(entries))]
