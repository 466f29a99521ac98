"""Durations of cells in the last run, so that the next run starts the longest ones first."""

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from harness.core.files.writing import write_aside
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.corpus.caches.cache import cache_root
from harness.engine.workers.queues import RESTART_MS

MOST_MATRICES = 64
"""Number of matrices whose durations are kept."""


class Durations:
    """Durations of the cells of one matrix, kept in the cache from run to run.

    Only the order of the work depends on them, so a missing, damaged or read-only file is no error.
    """

    def __init__(self, matrix: Path) -> None:
        name = hashlib.sha256(str(matrix.absolute()).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._file = cache_root() / "durations" / f"{name}.json"
        self._fresh: dict[str, float] = {}

    def known_ms(self) -> Mapping[str, float]:
        """Return milliseconds by id of a cell."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, float])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}

    def note(self, records: Iterable[Record]) -> None:
        """Record the durations of cells that were tried."""
        for record in records:
            deadly = record.verdict in (Verdict.CRASH, Verdict.HANG, Verdict.TIMEOUT)
            if took_ms := record.took_ms + RESTART_MS * deadly:
                self._fresh[record.cell] = took_ms

    def save(self) -> None:
        """Write the recorded durations, and delete the oldest files."""
        if not self._fresh:
            return
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_aside(self._file, msgspec.json.encode({**self.known_ms(), **self._fresh}))
            by_age = sorted(self._file.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for file in by_age[:-MOST_MATRICES]:
                file.unlink(missing_ok=True)
