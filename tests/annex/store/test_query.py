"""Queries of users: what they may read, and how each format shows it."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from harness.annex.store.store import Store, open_store
from harness.annex.store.user_query import ask, partial_file, write_parquet
from harness.cli.main import main
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from tests.annex.store.store_nights import record, write_folder
from tests.kit import Capture

WriteRun = Callable[..., Path]

HOSTILE = "\x1b[31mred\x07 \u202eevil\n##[error]x"


@pytest.fixture
def query(runs: Path, place: Path, night: WriteRun) -> Callable[..., int]:
    """`ep-harness query` on a run of three cells, one of them with a hostile reason."""
    night(
        1,
        record("abs"),
        record("neg", Verdict.MISMATCH, reason=HOSTILE),
        record("relu", Verdict.CRASH, reason="=1+1", cause="SIGSEGV"),
    )
    return lambda sql, *arguments: main(["query", str(runs), sql, "--store", str(place), *arguments])


READS = [
    "SELECT * FROM '{file}'",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM parquet_metadata('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM query('FROM read_text(''{file}'')')",
    "SELECT * FROM query_table('{file}')",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "WITH x AS (FROM read_text('{file}')) SELECT * FROM x",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM enable_logging(storage = 'file', storage_config = {{'path': '{folder}/log'}})",
    "FROM secret",
    "FROM sys",
]
OTHERS = [
    "COPY records TO '{folder}/out.csv'",
    "COPY run FROM '{file}'",
    "ATTACH '{folder}/other.duckdb'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "PRAGMA enable_external_access = true",
    "RESET lock_configuration",
    "DELETE FROM result",
    "DROP VIEW records",
    "CREATE TABLE x AS SELECT 1",
    "CREATE MACRO f() AS 1",
    "EXPORT DATABASE '{folder}/export'",
    "CALL pragma_version()",
    "EXPLAIN ANALYZE SELECT 1",
    "SELECT 1; DROP VIEW records",
    "BEGIN; SELECT 1",
    "",
    "-- nothing",
]


@pytest.fixture(scope="module")
def closed_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Path]]:
    """A store that may write one file, and a folder with a secret."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "secret.txt").write_text("a,b\nhunter2,1\n", encoding="utf-8")
    write_folder(folder / "runs" / "night", [record("abs")])
    runs = folder / "runs"
    with open_store(runs, folder / "store", print, allowed=partial_file(folder / "out")) as store:
        yield store, folder


@pytest.mark.parametrize("sql", [*READS, *OTHERS])
def test_sql_reads_and_writes_nothing_else(closed_in: tuple[Store, Path], sql: str) -> None:
    store, folder = closed_in
    before = sorted(folder.rglob("*"))
    statement = sql.format(file=(folder / "secret.txt").as_posix(), folder=folder.as_posix())
    for act in (
        lambda: list(ask(store, statement).rows),
        lambda: write_parquet(store, statement, folder / "out"),
    ):
        with pytest.raises(UsageError, match="views: records, runs, targets, environments") as caught:
            act()
        assert "hunter2" not in str(caught.value)
        assert len(str(caught.value).splitlines()) == 2
    assert sorted(folder.rglob("*")) == before
    assert list(ask(store, "SELECT count(*) FROM records").rows) == [(1,)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT verdit FROM records", '"verdict"'),
        ("FROM record", 'Did you mean "records"?'),
        ("SELECT 'a'::INT", "Could not convert string 'a'"),
        ("SELECT '\x1b[31m\u202e' || x FROM records", "x"),
        ("SELECT " + "(" * 200, "syntax error"),
    ],
)
def test_wrong_sql_takes_two_lines(
    query: Callable[..., int], capsys: Capture, sql: str, message: str
) -> None:
    assert query(sql) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert "\x1b" not in shown.err
    assert len(shown.err.splitlines()) == 2


def test_a_table(query: Callable[..., int], capsys: Capture) -> None:
    assert query("SELECT model, verdict, headroom, 1234567 AS n FROM records ORDER BY model") == 0
    assert capsys.readouterr().out.splitlines() == [
        "model  verdict   headroom        n",
        "-----  --------  --------  -------",
        "abs    pass          0.25  1234567",
        "neg    mismatch         –  1234567",  # noqa: RUF001 - as in every table
        "relu   crash            –  1234567",  # noqa: RUF001
        "3 rows",
    ]


@pytest.mark.parametrize(
    "sql", ["FROM records", "SELECT reason, repeat('x', 300) AS long, cell FROM records"]
)
def test_a_table_fits_the_terminal_and_hides_nothing(
    query: Callable[..., int], capsys: Capture, sql: str
) -> None:
    assert query(sql) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert out.splitlines()[-1] == "3 rows"
    assert not set(out) & set("\x1b\x07\u202e")
    assert "##[" not in out


def test_a_long_table_is_cut(query: Callable[..., int], capsys: Capture) -> None:
    assert query("SELECT range AS n FROM range(1001)") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["999", "1,000 rows shown, there are more; --format csv prints all"]


def test_no_row_at_all(query: Callable[..., int], capsys: Capture) -> None:
    for style, shown in (("table", "model\n-----\n0 rows\n"), ("csv", "model\n"), ("json", "[]\n")):
        assert query("SELECT model FROM records WHERE false", "--format", style) == 0
        assert capsys.readouterr().out == shown


def test_csv_holds_no_formula_and_no_control_character(query: Callable[..., int], capsys: Capture) -> None:
    assert query("SELECT model, reason, headroom, axes FROM records ORDER BY model", "--format", "csv") == 0
    out = capsys.readouterr().out
    found = list(csv.reader(io.StringIO(out)))
    assert found[0] == ["model", "reason", "headroom", "axes"]
    assert [row[1] for row in found[1:]] == ["", r"red\x07 \u202eevil ##[error]x", "'=1+1"]
    assert [row[2] for row in found[1:]] == ["0.25", "", ""]
    assert json.loads(found[1][3])["precision"] == "fp32"


def test_json_keeps_every_value(query: Callable[..., int], capsys: Capture) -> None:
    sql = (
        "SELECT model, reason, 9223372036854775807 AS i, 'nan'::DOUBLE AS f, started, 1 AS model, [1] AS l "
        "FROM records ORDER BY records.model"
    )
    assert query(sql, "--format", "json") == 0
    out = capsys.readouterr().out
    assert out.isascii()
    found = json.loads(out)
    assert [row["reason"] for row in found] == [None, HOSTILE, "=1+1"]
    assert found[0]["i"] == 2**63 - 1
    assert (found[0]["f"], found[0]["model"], found[0]["model_2"], found[0]["l"]) == (None, "abs", 1, [1])
    assert found[0]["started"] == "2026-11-01T02:00:00"


def test_integers_of_any_size(query: Callable[..., int], capsys: Capture) -> None:
    assert query(f"SELECT {2**100}::HUGEINT AS h", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == [{"h": str(2**100)}]


def test_parquet_is_read_by_others(query: Callable[..., int], capsys: Capture, tmp_path: Path) -> None:
    out = tmp_path / "it's.parquet"
    assert query("FROM records -- all\n;", "--format", "parquet", "--out", str(out)) == 0
    assert capsys.readouterr().out == f"{out}\n"
    path = str(out).replace("'", "''")
    sql = f"SELECT model, verdict, axes['precision'] FROM '{path}' ORDER BY 1"  # noqa: S608 - our own path
    with duckdb.connect() as database:
        found = database.execute(sql).fetchall()
    assert found == [("abs", "pass", "fp32"), ("neg", "mismatch", "fp32"), ("relu", "crash", "fp32")]
    assert [path.name for path in tmp_path.glob("*.new")] == []


@pytest.mark.parametrize("style", ["table", "csv", "json"])
def test_a_file_has_what_is_printed(
    query: Callable[..., int], capsys: Capture, tmp_path: Path, style: str
) -> None:
    sql = "SELECT model, reason FROM records"
    assert query(sql, "--format", style) == 0
    printed = capsys.readouterr().out
    assert query(sql, "--format", style, "--out", str(tmp_path / "file")) == 0
    assert (tmp_path / "file").read_text("utf-8") == printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "parquet"), "name it: --out FILE"),
        (("--format", "parquet", "--out", "none/x"), "none/x"),
        (("--format", "csv", "--out", "none/x"), "the file cannot be written"),
    ],
)
def test_files_that_cannot_be_written(
    query: Callable[..., int], capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    assert query("FROM records", *arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err.replace("\\", "/")
    assert len(shown.err.splitlines()) <= 2


def test_runs_that_cannot_be_read_are_named(
    query: Callable[..., int], capsys: Capture, night: WriteRun
) -> None:
    for number in (2, 3):
        (night(number, record("abs")) / "run.json").write_bytes(b"\x1b[31m")
    assert query("SELECT count(*) AS n FROM records", "--format", "csv") == 0
    shown = capsys.readouterr()
    assert shown.out == "n\n3\n"
    (line,) = shown.err.splitlines()
    assert line.startswith("night-02: left out (and 1 other run): ")
    assert "\x1b" not in line


@pytest.mark.parametrize(("folder", "message"), [("none", "there is no such folder"), ("empty", "no run")])
def test_folders_without_runs(tmp_path: Path, capsys: Capture, folder: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["query", str(tmp_path / folder), "SELECT 1"]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert len(shown.err.splitlines()) == 2


def test_memory_is_bounded(store: Store) -> None:
    with pytest.raises(UsageError, match=r"(?i)memory"):
        for _ in ask(store, "SELECT list(range) FROM range(500_000_000)").rows:
            pass


def test_answers_come_while_they_are_computed(store: Store) -> None:
    answer = ask(store, "SELECT range AS n FROM range(10_000_000_000)")
    assert (answer.names, answer.kinds) == (("n",), ("BIGINT",))
    assert next(answer.rows) == (0,)


@pytest.mark.skipif(sys.platform == "win32", reason="paths are shown otherwise")
def test_by_default_the_store_is_in_the_cache(
    runs: Path, night: WriteRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))
    night(1, record("abs"))
    before = sorted(runs.rglob("*"))
    with open_store(runs, None, print) as store:
        assert store.place.is_relative_to(tmp_path / "cache" / "store")
    assert sorted(runs.rglob("*")) == before
