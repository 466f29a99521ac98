"""What cells took the last time: so that the longest are begun first, and none is left to the end."""

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from harness.core.record import Record
from harness.core.verdict import Verdict
from harness.corpus.cache import cache_root

KEPT = 64
"""Matrices that are remembered."""

RESTART_MS = 1000.0
"""What a cell costs beyond its own time that ends its process: another one has to start, 0.3 s to 2 s."""


class Durations:
    """Durations of the cells of one matrix, kept in the cache from run to run.

    Nothing depends on them but the order of the work, so a file that is missing, damaged or cannot be
    written is no error.

    Args:
        matrix: The matrix file.
    """

    def __init__(self, matrix: Path) -> None:
        name = hashlib.sha256(str(matrix.absolute()).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._file = cache_root() / "durations" / f"{name}.json"
        self._fresh: dict[str, float] = {}
        self._waited: dict[str, float] = {}
        """What cells took in processes that gave way."""

    def known_ms(self) -> Mapping[str, float]:
        """Id of a cell -> milliseconds that it took the last time."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, float])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}

    def note(self, records: Iterable[Record]) -> None:
        """Take what cells took this time; those that never ran took nothing.

        What ran in a process that gave way took longer for that. It counts only where nothing else is known,
        or else the lane would be the longest the next time, and another one would give way to it.
        """
        for record in records:
            deadly = record.verdict in (Verdict.CRASH, Verdict.HANG)
            if record.timings_ms or deadly:
                gave_way = record.process is not None and record.process.niceness
                took = self._waited if gave_way else self._fresh
                took[record.cell] = sum(record.timings_ms.values()) + RESTART_MS * deadly

    def save(self) -> None:
        """Remember what was noted."""
        if not (self._fresh or self._waited):
            return
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._file.with_suffix(".new")
            fresh.write_bytes(msgspec.json.encode({**self._waited, **self.known_ms(), **self._fresh}))
            fresh.replace(self._file)
            by_age = sorted(self._file.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for file in by_age[:-KEPT]:
                file.unlink(missing_ok=True)
