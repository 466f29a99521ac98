"""What cells took is remembered from run to run, and no trouble with that is anybody's trouble."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records.record import ProcessState, Record
from harness.core.records.verdict import Verdict
from harness.corpus.caches.cache import ENVIRONMENT
from harness.engine.workers.queues import RESTART_MS
from harness.run import durations
from harness.run.durations import MOST_MATRICES, Durations
from tests.kit import cpu_record


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    return tmp_path / "cache"


def timed(cell: str, took_ms: float = 0.0, processor_ms: float = 0.0) -> Record:
    """Makes the record of a cell whose process was busy for so many milliseconds."""
    state = ProcessState(pid=1, session=1, took_ms=took_ms, processor_ms=processor_ms)
    return cpu_record(cell, cell=cell, process=state)


def remember(matrix: Path, *records: Record) -> None:
    noted = Durations(matrix)
    noted.note(records)
    noted.save()


def files(cache: Path) -> list[Path]:
    return sorted((cache / "durations").iterdir())


def test_a_cell_takes_what_its_process_was_at_it_failed_or_not() -> None:
    remember(
        Path("m.toml"), timed("a", 4.0), msgspec.structs.replace(timed("b", 0.25), verdict=Verdict.ERROR)
    )
    assert Durations(Path("m.toml")).known_ms() == {"a": 4.0, "b": 0.25}


def test_where_a_process_is_gone_its_phases_count() -> None:
    gone = msgspec.structs.replace(timed("a"), process=None, timings_ms={"create": 1.5, "first_run": 2.0})
    remember(Path("m.toml"), gone)
    assert Durations(Path("m.toml")).known_ms() == {"a": 3.5}


@pytest.mark.parametrize("verdict", [Verdict.CRASH, Verdict.HANG])
def test_the_next_process_counts_for_what_ended_the_last_one(verdict: Verdict) -> None:
    ended = [msgspec.structs.replace(one, verdict=verdict) for one in (timed("a"), timed("b", 2.0))]
    remember(Path("m.toml"), *ended, timed("c", 2.0))
    assert Durations(Path("m.toml")).known_ms() == {"a": RESTART_MS, "b": RESTART_MS + 2, "c": 2.0}


def test_a_later_run_adds_and_replaces(tmp_path: Path) -> None:
    remember(tmp_path / "m.toml", timed("a", 1.0), timed("b", 2.0))
    # Of an unavailable target, say, nothing is learnt.
    remember(tmp_path / "m.toml", timed("b", 3.0), timed("c", 4.0), timed("a"))
    assert Durations(tmp_path / "m.toml").known_ms() == {"a": 1.0, "b": 3.0, "c": 4.0}


def test_matrices_are_told_apart_by_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(tmp_path / "one.toml", timed("a", 1.0))
    assert Durations(tmp_path / "two.toml").known_ms() == {}
    monkeypatch.chdir(tmp_path)
    assert Durations(Path("one.toml")).known_ms() == {"a": 1.0}


def test_nothing_noted_is_nothing_written(cache: Path) -> None:
    remember(Path("m.toml"))
    remember(Path("m.toml"), timed("a"))
    assert not cache.exists()


@given(st.dictionaries(st.text(), st.floats(min_value=0, max_value=1e9, exclude_min=True), max_size=5))
def test_every_cell_comes_back(took: dict[str, float]) -> None:
    matrix = Path(f"{len(took)}-{hash(tuple(took.items()))}.toml")
    remember(matrix, *(timed(cell, ms) for cell, ms in took.items()))
    assert Durations(matrix).known_ms() == took


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[1]", b'{"a": "x"}', b'{"\xff": 1.0}', b"\x00" * 100, b'{"a": null}', b"1e999"]
)
def test_a_damaged_file_is_forgotten_and_replaced(cache: Path, damage: bytes) -> None:
    remember(Path("m.toml"), timed("a", 1.0))
    (file,) = files(cache)
    file.write_bytes(damage)
    assert Durations(Path("m.toml")).known_ms() == {}
    remember(Path("m.toml"), timed("b", 2.0))
    assert Durations(Path("m.toml")).known_ms() == {"b": 2.0}


def test_a_cache_that_cannot_be_written_is_no_error(cache: Path) -> None:
    cache.touch()
    remember(Path("m.toml"), timed("a", 1.0))
    assert Durations(Path("m.toml")).known_ms() == {}


def test_a_cache_that_may_only_be_read_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    remember(Path("m.toml"), timed("a", 1.0))

    def refuse(path: Path, data: bytes) -> int:
        raise PermissionError(f"{path}: {len(data)} bytes")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    remember(Path("m.toml"), timed("a", 2.0))
    assert Durations(Path("m.toml")).known_ms() == {"a": 1.0}


def test_the_latest_matrices_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_MATRICES == 64
    monkeypatch.setattr(durations, "MOST_MATRICES", 3)
    for number in range(5):
        remember(Path(f"{number}.toml"), timed("a", number + 1.0))
        for age, file in enumerate(sorted(files(cache), key=lambda file: file.stat().st_mtime)):
            os.utime(file, (1000 + age, 1000 + age))  # far enough apart for any file system
    assert len(files(cache)) == 3
    assert [bool(Durations(Path(f"{number}.toml")).known_ms()) for number in range(5)] == [False] * 2 + [
        True
    ] * 3
