"""The row cache: contents come back whole or not at all; damage costs only time."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.corpus.caches.row_cache import (
    BUSY_S,
    FILE_NAME,
    LARGEST_CONTENT,
    MOST_FAILURES,
    RowCache,
    open_row_cache,
)

WRITER = """
import sys
from pathlib import Path
from harness.corpus.caches.row_cache import RowCache

row_cache = RowCache(Path(sys.argv[1]))
for turn in range(300):
    name = f"row {turn}"
    content = row_cache.get(name, "state")
    assert content in {None, name.encode() * 500}
    row_cache.put(name, "state", name.encode() * 500)
print(sum(row_cache.get(f"row {turn}", "state") is not None for turn in range(300)))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / FILE_NAME


@pytest.fixture
def row_cache(path: Path) -> RowCache:
    return RowCache(path)


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def test_a_content_comes_back_in_the_next_process(row_cache: RowCache, path: Path) -> None:
    assert row_cache.get("name", "state") is None
    row_cache.put("name", "state", b"content")
    assert row_cache.get("name", "state") == RowCache(path).get("name", "state") == b"content"
    row_cache.put("name", "state", b"another")
    assert row_cache.get("name", "state") == b"another"


@given(
    rows=st.dictionaries(st.text(st.characters(), max_size=5), st.tuples(st.text(max_size=3), st.binary())),
    other=st.text(max_size=3),
)
def test_only_the_same_name_in_the_same_state_finds_it(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[str, tuple[str, bytes]], other: str
) -> None:
    row_cache = open_row_cache(tmp_path_factory.getbasetemp() / "any")
    for name, (state, content) in rows.items():
        row_cache.put(name, state, content)
    for name, (state, content) in rows.items():
        assert row_cache.get(name, state) == content
        assert row_cache.get(name, other) == (content if other == state else None)


def test_file_names_that_are_not_text_are_welcome(row_cache: RowCache) -> None:
    row_cache.put("\udcfe", "\udcff.pb", b"content")
    assert row_cache.get("\udcfe", "\udcff.pb") == b"content"


def test_what_other_code_made_does_not_count(row_cache: RowCache, path: Path) -> None:
    row_cache.put("name", "state", b"content")
    newer = RowCache(path, "another release")
    assert newer.get("name", "state") is None
    newer.put("name", "state", b"newer")
    assert newer.get("name", "state") == b"newer"


def test_large_contents_are_not_kept(row_cache: RowCache) -> None:
    row_cache.put("fits", "", bytes(LARGEST_CONTENT))
    row_cache.put("large", "", bytes(LARGEST_CONTENT + 1))
    assert row_cache.get("fits", "") == bytes(LARGEST_CONTENT)
    assert row_cache.get("large", "") is None


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE shelf SET content = x'0102'",
        "UPDATE shelf SET content = content || x'00'",
        "UPDATE shelf SET mark = x'00'",
        "UPDATE shelf SET mark = NULL, content = NULL",
        "UPDATE shelf SET content = 7",
        "UPDATE shelf SET content = 'text'",
        "UPDATE shelf SET content = CAST(x'ff' AS TEXT)",
        "UPDATE shelf SET (mark, content) = (SELECT mark, content FROM shelf ORDER BY id LIMIT 1)",
    ],
)
def test_a_row_that_is_not_what_was_put_there_does_not_count(
    row_cache: RowCache, path: Path, damage: str
) -> None:
    names = ("first", "second")
    for name in names:
        row_cache.put(name, "state", name.encode())
    with database(path) as connection:
        connection.execute(damage)
    for name in names:
        assert row_cache.get(name, "state") in {None, name.encode()}
    assert sum(row_cache.get(name, "state") is None for name in names) >= 1
    row_cache.put("first", "state", b"anew")
    assert row_cache.get("first", "state") == b"anew"


@pytest.mark.parametrize("damage", ["text", "cut", "empty", "pages", "schema", "name"])
def test_a_damaged_database_is_a_miss_and_made_anew(path: Path, damage: str) -> None:
    chance = random.Random(damage)  # noqa: S311 - nobody is to be fooled
    contents = {f"name {number}": chance.randbytes(3000) for number in range(50)}
    before = RowCache(path)
    for name, content in contents.items():
        before.put(name, "state", content)
    del before
    data = path.read_bytes()
    assert len(data) > 50 * 3000, "the log was not written back"
    path.write_bytes(
        {
            "text": b"this is no database, but a text of some length" * 100,
            "cut": data[: len(data) // 2],
            "empty": b"",
            "pages": data[:8192] + chance.randbytes(len(data) - 8192),
            "schema": data[:100] + chance.randbytes(3996) + data[4096:],
            # What SQLite then says about it is no text.
            "name": data.replace(b"CREATE TABLE", b"CREATE \x9a\x9a\x9aLE"),
        }[damage]
    )
    row_cache = RowCache(path)
    for name, content in contents.items():
        assert row_cache.get(name, "state") in {None, content}
    for later in (row_cache, RowCache(path)):
        later.put("name 1", "state", contents["name 1"])
        assert later.get("name 1", "state") == contents["name 1"]


def test_a_row_cache_that_goes_bad_in_use_is_a_miss(row_cache: RowCache, path: Path) -> None:
    for number in range(20):
        row_cache.put(f"name {number}", "", bytes(5000))
    with database(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))  # noqa: S311 - likewise
    assert {row_cache.get(f"name {number}", "") for number in range(20)} <= {None, bytes(5000)}
    shutil.rmtree(path.parent, ignore_errors=True)
    row_cache.get("name 1", "")
    row_cache.put("name 1", "", b"")


@pytest.mark.parametrize("obstacle", ["file for folder", "folder for file"])
def test_a_place_that_cannot_be_used_is_a_miss(path: Path, obstacle: str) -> None:
    if obstacle == "file for folder":
        path.parent.write_text("in the way")
    else:
        path.mkdir(parents=True)
    row_cache = RowCache(path)
    for _ in range(2 * MOST_FAILURES):
        row_cache.put("name", "state", b"content")
        assert row_cache.get("name", "state") is None


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root may write anywhere")
def test_a_read_only_cache_is_no_error(row_cache: RowCache, path: Path) -> None:
    row_cache.put("name", "state", b"content")
    path.parent.chmod(0o500)
    path.chmod(0o400)
    try:
        reader = RowCache(path)
        assert reader.get("name", "state") in {None, b"content"}
        reader.put("name", "state", b"other")
        assert reader.get("name", "state") in {None, b"content"}
    finally:
        path.parent.chmod(0o700)


def test_whoever_holds_the_database_does_not_hold_up_a_run(row_cache: RowCache, path: Path) -> None:
    row_cache.put("name", "state", b"content")
    with database(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        for number in range(100):
            row_cache.put(f"name {number}", "state", b"content")
            assert row_cache.get("name", "state") == b"content"
        assert time.monotonic() - began < 80 * BUSY_S  # each of a hundred would wait
        connection.execute("ROLLBACK")
    assert RowCache(path).get("name", "state") == b"content"


def test_a_full_row_cache_is_begun_anew_and_never_grows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.corpus.caches.row_cache.MOST_DATABASE_BYTES", 1 << 20)
    for _ in range(2):
        row_cache = RowCache(path)
        for number in range(1000):
            row_cache.put(f"name {number}", "state", bytes(10_000))
        kept = [number for number in range(1000) if row_cache.get(f"name {number}", "state") == bytes(10_000)]
        assert 50 < len(kept) < 200
        del row_cache
        assert path.stat().st_size <= 1 << 20
    later = RowCache(path)
    later.put("name 999", "state", b"content")
    assert later.get("name 999", "state") == b"content"


def test_processes_that_begin_at_once_share_it(path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-c", WRITER, str(path)]
    racing = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8") for _ in range(3)
    ]
    found = [one.communicate(timeout=60)[0] for one in racing]
    assert [one.returncode for one in racing] == [0, 0, 0]
    assert max(map(int, found)) == 300
    with database(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_writer_that_is_killed_damages_nothing(path: Path) -> None:
    # The same rows again and again, or one could go with a cache that is full; and never out of patience.
    endless = WRITER.replace("range(300)", "(turn % 100 for turn in range(10**9))", 1)
    endless = "from harness.corpus.caches import row_cache\nrow_cache.PATIENCE = 10**9\n" + endless
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen([sys.executable, "-c", endless, str(path)], env=environment) as writer:
        try:
            row_cache = RowCache(path)
            deadline = time.monotonic() + 30
            while row_cache.get("row 50", "state") is None:
                assert time.monotonic() < deadline
                time.sleep(0.02)
                row_cache = RowCache(path)
        finally:
            writer.kill()
    assert RowCache(path).get("row 50", "state") == b"row 50" * 500
    with database(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_threads_may_share_one(row_cache: RowCache) -> None:
    wrong = []

    def work(number: int) -> None:
        for turn in range(100):
            name, content = f"{turn}", b"%d" % turn
            row_cache.put(name, "state", content)
            if row_cache.get(name, "state") != content:
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_no_connection_outlives_its_row_cache(path: Path) -> None:
    row_cache = RowCache(path)
    row_cache.put("name", "state", b"content")
    assert path.with_name(f"{FILE_NAME}-wal").exists()
    del row_cache
    assert [one.name for one in path.parent.iterdir()] == [FILE_NAME]


def test_one_folder_has_one_row_cache(tmp_path: Path) -> None:
    assert open_row_cache(tmp_path) is open_row_cache(tmp_path)
    assert open_row_cache(tmp_path) is not open_row_cache(tmp_path / "other")
