"""A store that was interrupted, killed, filled up, damaged, or that two processes use at once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from harness.annex.store.database import DATABASE_FILE
from harness.annex.store.store import open_store
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from tests.annex.store.store_nights import record
from tests.kit import wait_for

WriteRun = Callable[..., Path]
Rows = Callable[[str], list[tuple[object, ...]]]
COUNT = "SELECT run, count(*) FROM records GROUP BY ALL ORDER BY ALL"
# Each run in a transaction of its own, so that there is something between two of them.
QUERY = (
    "import sys, harness.annex.store.store as s; s.BATCH_RECORDS = 1\n"
    "from harness.cli.main import main\nsys.exit(main(sys.argv[1:]))"
)
# It never comes to an end with the records of the third run.
STUCK = (
    "import time, harness.report.runs.read as read; usual = read.open_regular\n"
    "def stuck(path, *more):\n"
    "    if path.name == 'records.jsonl' and path.parent.name == 'night-03':\n"
    "        (path.parent / 'reached').touch(); time.sleep(1000)\n"
    "    return usual(path, *more)\n"
    "read.open_regular = stuck\n" + QUERY
)
HOLD = (
    "import sys, pathlib; from harness.annex.store.store import open_store\n"
    "with open_store(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), print):\n"
    "    print('open', flush=True); sys.stdin.read()"
)
LIMIT_S = 60

Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def started() -> Iterator[Started]:
    """Start a process that uses the store."""
    processes = []

    def start(*arguments: str, code: str = QUERY) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def asking(started: Started, runs: Path, place: Path) -> Callable[[], "subprocess.Popen[str]"]:
    return lambda: started("query", str(runs), COUNT, "--format", "csv", "--store", str(place))


@pytest.mark.parametrize("number", ["SIGINT", "SIGKILL"])
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_interrupted_or_killed_while_it_reads(
    number: str, runs: Path, rows: Rows, night: WriteRun, place: Path, started: Started
) -> None:
    for at in (1, 2, 3, 4):
        night(at, record("abs"), record("neg"))
    process = started("query", str(runs), COUNT, "--format", "csv", "--store", str(place), code=STUCK)
    wait_for((runs / "night-03" / "reached").exists)
    process.send_signal(getattr(signal, number))
    out, err = process.communicate(timeout=LIMIT_S)
    assert out == ""
    assert "Traceback" not in err
    assert process.returncode == (130 if number == "SIGINT" else -signal.SIGKILL)
    (runs / "night-03" / "records.jsonl").unlink()
    night(3, record("abs"))
    assert rows(COUNT) == [("night-01", 2), ("night-02", 2), ("night-03", 1), ("night-04", 2)]
    # What was read before the signal was kept: these runs were not read again.
    assert rows("SELECT min(id), max(id) FROM run WHERE name < 'night-03'") == [(1, 2)]


def test_two_processes_at_once(night: WriteRun, asking: Started) -> None:
    for number in range(1, 9):
        night(number, record("abs"), record("neg"))
    processes = [asking() for _ in range(3)]
    for process in processes:
        out, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, err
        assert out.splitlines() == ["run,count_star()", *(f"night-{number:02},2" for number in range(1, 9))]


def test_a_reader_holds_up_a_writer_until_it_is_done(
    runs: Path, place: Path, night: WriteRun, started: Started, asking: Started
) -> None:
    night(1, record("abs"))
    reader = started(str(runs), str(place), code=HOLD)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "open\n"
    night(2, record("abs"))
    writer = asking()
    assert writer.stderr is not None
    assert "waiting for another process" in writer.stderr.readline()
    reader.communicate("", timeout=LIMIT_S)
    out, _ = writer.communicate(timeout=LIMIT_S)
    assert out.splitlines()[1:] == ["night-01,1", "night-02,1"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_full_disk(runs: Path, rows: Rows, night: WriteRun, place: Path, started: Started) -> None:
    for number in range(1, 4):
        night(number, *(record(f"m{index}", reason=os.urandom(200).hex()) for index in range(500)))
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n{QUERY}"
    process = started("query", str(runs), COUNT, "--store", str(place), code=limited)
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (2, "")
    assert "the store cannot be used" in err
    assert "--store" in err
    assert len(err.splitlines()) == 2
    assert rows(COUNT) == [(f"night-{number:02}", 500) for number in range(1, 4)]


@pytest.mark.parametrize("content", [b"", b"no database" * 1000, b"SQLite format 3\x00" * 300])
def test_a_damaged_store_is_built_anew(
    content: bytes, rows: Rows, night: WriteRun, place: Path, told: list[str]
) -> None:
    night(1, record("abs"))
    place.mkdir()
    (place / DATABASE_FILE).write_bytes(content)
    assert rows(COUNT) == [("night-01", 1)]
    (line,) = told
    assert "the store is built anew" in line


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET schema = 99",
        "DROP TABLE meta",
        "DELETE FROM meta",
        "ALTER TABLE meta ADD COLUMN x INT",
    ],
)
def test_a_store_of_another_schema_is_built_anew(
    statement: str, rows: Rows, night: WriteRun, place: Path, told: list[str]
) -> None:
    night(1, record("abs"))
    assert rows(COUNT) == [("night-01", 1)]
    with duckdb.connect(place / DATABASE_FILE) as database:
        database.execute(statement)
        database.execute("DELETE FROM result")
    night(2, record("abs", Verdict.CRASH))
    kept = [] if "ALTER" in statement else [("night-01", 1)]
    assert rows(COUNT) == [*kept, ("night-02", 1)]
    assert len(told) == len(kept)


def test_a_store_can_be_removed(rows: Rows, night: WriteRun, place: Path) -> None:
    night(1, record("abs"))
    before = rows(COUNT)
    for file in place.iterdir():
        file.unlink()
    assert rows(COUNT) == before


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_place_that_cannot_be_written(runs: Path, tmp_path: Path, night: WriteRun) -> None:
    night(1, record("abs"))
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(UsageError, match="--store"), open_store(runs, locked / "store", print):
        pass


def test_a_place_that_is_a_file(runs: Path, tmp_path: Path, night: WriteRun) -> None:
    night(1, record("abs"))
    (tmp_path / "file").write_text("", encoding="utf-8")
    with (
        pytest.raises(UsageError, match="the store cannot be used"),
        open_store(runs, tmp_path / "file", print),
    ):
        pass


def test_without_duckdb(monkeypatch: pytest.MonkeyPatch, runs: Path, place: Path, night: WriteRun) -> None:
    night(1, record("abs"))
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with (
        pytest.raises(UsageError, match=r"pip install 'ort-ep-harness\[store\]'"),
        open_store(runs, place, print),
    ):
        pass
