import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from harness.annex.store.store import Store, open_store
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from tests.annex.store.store_nights import record, write_folder

WriteRun = Callable[..., Path]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def night(runs: Path) -> WriteRun:
    """Write the run of one night; its number is the day of the month."""

    def write(number: int, *records: Record, **fields: object) -> Path:
        started = f"2026-11-{number:02}T02:00:00Z"
        dated = [msgspec.structs.replace(each, started=started) for each in records]
        return write_folder(runs / f"night-{number:02}", dated, **fields)  # type: ignore[arg-type]

    return write


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the clock be an hour later, as for files that were written long ago."""

    def later() -> None:
        now_ns = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 3_600_000_000_000)

    return later


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def rows(runs: Path, place: Path, told: list[str]) -> Callable[[str], list[tuple[object, ...]]]:
    """Bring the store up to date, and return the rows of a query."""

    def asked(sql: str) -> list[tuple[object, ...]]:
        with open_store(runs, place, told.append) as store:
            return list(store.rows(sql))

    return asked


@pytest.fixture
def store(runs: Path, place: Path, told: list[str], night: WriteRun) -> Iterator[Store]:
    """The store of one run of two cells."""
    night(1, record("abs"), record("neg", Verdict.MISMATCH, reason="differs"))
    with open_store(runs, place, told.append) as opened:
        yield opened
