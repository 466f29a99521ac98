"""What the store knows of runs that are new, changed, gone, resumed, broken or still being written."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.annex.store.store import open_store
from harness.core.records.record import encode_record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.report.history.history_file import History
from harness.report.history.trend import cell_points, trends
from tests.annex.store.store_nights import keep_times, record

WriteRun = Callable[..., Path]
Rows = Callable[[str], list[tuple[object, ...]]]
IDS = "SELECT name, id FROM run ORDER BY name"
VERDICTS = "SELECT run, model, verdict FROM records ORDER BY ALL"


def test_every_run_is_read_once(
    rows: Rows, night: WriteRun, settled: Callable[[], None], place: Path
) -> None:
    night(1, record("abs"), record("neg", Verdict.MISMATCH))
    night(2, record("abs"))
    settled()
    assert rows(VERDICTS) == [
        ("night-01", "abs", "pass"),
        ("night-01", "neg", "mismatch"),
        ("night-02", "abs", "pass"),
    ]
    files = {path: path.stat().st_mtime_ns for path in place.glob("results*")}
    assert rows(IDS) == [("night-01", 1), ("night-02", 2)]
    assert {path: path.stat().st_mtime_ns for path in place.glob("results*")} == files


def test_only_new_and_changed_runs_are_read_again(
    rows: Rows, night: WriteRun, settled: Callable[[], None]
) -> None:
    for number in (1, 2, 3):
        night(number, record("abs"))
    settled()
    assert rows(IDS) == [("night-01", 1), ("night-02", 2), ("night-03", 3)]
    night(2, record("abs", Verdict.CRASH))
    night(4, record("abs"))
    # A run that is read again is a new one to the store; the others keep their numbers.
    assert [number for _, number in rows(IDS)][::2] == [1, 3]
    assert rows(VERDICTS)[1] == ("night-02", "abs", "crash")
    assert len(rows(VERDICTS)) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="the time of a change is not kept there")
def test_a_change_that_hides_behind_size_and_time(
    rows: Rows, night: WriteRun, settled: Callable[[], None]
) -> None:
    run = night(1, record("abs", Verdict.HANG))
    settled()
    assert rows(VERDICTS) == [("night-01", "abs", "hang")]
    keep_times(run / "records.jsonl", lambda text: text.replace(b'"hang"', b'"pass"'))
    assert rows(VERDICTS) == [("night-01", "abs", "pass")]


def test_a_run_that_was_only_touched_or_copied_is_not_read_again(
    rows: Rows, night: WriteRun, settled: Callable[[], None]
) -> None:
    run = night(1, record("abs"))
    night(2, record("abs"))
    settled()
    before = rows(IDS)
    os.utime(run / "records.jsonl")
    assert rows(IDS) == before


def test_a_run_that_is_gone_is_forgotten(rows: Rows, night: WriteRun) -> None:
    night(1, record("abs"))
    gone = night(2, record("abs"))
    assert len(rows(VERDICTS)) == 2
    for file in gone.iterdir():
        file.unlink()
    gone.rmdir()
    assert rows(VERDICTS) == [("night-01", "abs", "pass")]
    assert (
        rows("SELECT DISTINCT run FROM targets")
        == rows("SELECT DISTINCT run FROM environments")
        == [("night-01",)]
    )


def test_a_run_that_is_still_being_written(rows: Rows, night: WriteRun) -> None:
    first, second = record("abs"), record("neg")
    run = night(1, first, complete=False, planned=[second.cell])
    counts = "SELECT planned, not_run, complete, records FROM runs"
    assert rows(counts) == [(2, 1, False, 2)]
    assert rows(VERDICTS) == [("night-01", "abs", "pass"), ("night-01", "neg", "not_run")]
    line = encode_record(second)
    with (run / "records.jsonl").open("ab") as file:
        file.write(line[:50])
    assert rows(counts) == [(2, 1, False, 2)]
    with (run / "records.jsonl").open("ab") as file:
        file.write(line[50:] + b"\n")
    assert rows(VERDICTS) == [("night-01", "abs", "pass"), ("night-01", "neg", "pass")]
    night(1, first, second)
    assert rows(counts) == [(2, 0, True, 2)]


def test_a_broken_run_costs_itself_alone(rows: Rows, night: WriteRun) -> None:
    broken = night(1, record("abs"))
    night(2, record("abs"))
    (broken / "run.json").write_bytes(b"{")
    problems = "SELECT run, problem FROM runs ORDER BY run"
    (first, second) = rows(problems)
    assert first[0] == "night-01"
    assert "not the description of a run" in str(first[1])
    assert second == ("night-02", None)
    assert rows(VERDICTS) == [("night-02", "abs", "pass")]
    night(1, record("abs"))
    assert rows(problems) == [("night-01", None), ("night-02", None)]


def test_figures_out_of_every_range(rows: Rows, night: WriteRun) -> None:
    night(1, record("abs", attempt=2**62), record("neg", attempt=10**400))
    night(2, record("abs"))
    assert rows("SELECT run, model, attempt FROM records ORDER BY ALL") == [
        ("night-01", "abs", 2**62),
        ("night-01", "neg", None),
        ("night-02", "abs", 1),
    ]


def test_a_time_that_is_none(rows: Rows, night: WriteRun) -> None:
    records = night(1, record("abs")) / "records.jsonl"
    records.write_bytes(records.read_bytes().replace(b"2026-11-01T02:00:00Z", b"yesterday"))
    assert rows("SELECT model, started FROM records") == [("abs", None)]
    assert rows("SELECT run, first FROM runs") == [("night-01", None)]


def test_a_folder_of_shards_counts_as_one_run(runs: Path, rows: Rows, night: WriteRun) -> None:
    (runs / "both").mkdir()
    night(1, record("abs")).rename(runs / "both" / "shard-1")
    night(2, record("neg")).rename(runs / "both" / "shard-2")
    (runs / ".hidden").mkdir()
    (runs / "notes").mkdir()
    assert rows(VERDICTS) == [("both", "abs", "pass"), ("both", "neg", "pass")]


def test_one_run_is_a_folder_of_runs_as_well(place: Path, night: WriteRun) -> None:
    run = night(1, record("abs"))
    with open_store(run, place, lambda _: None) as store:
        assert list(store.rows(VERDICTS)) == [("night-01", "abs", "pass")]
        assert store.paths == {"night-01": run}


@pytest.mark.parametrize(("name", "message"), [("none", "there is no such folder"), ("empty", "no run")])
def test_no_runs(tmp_path: Path, place: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=message), open_store(tmp_path / name, place, lambda _: None):
        pass
    assert not place.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_hostile_names_of_runs(runs: Path, rows: Rows, night: WriteRun) -> None:
    names = [b"a\nb", b"\xff'; DROP TABLE run; --", b"\xfe'; DROP TABLE run; --", b"\x1b[31m"]
    for number, name in enumerate(names, start=1):
        os.rename(night(number, record("abs")), os.fsencode(runs) + b"/" + name)  # noqa: PTH104 - bytes
    shown = [name for name, *_ in rows("SELECT run FROM records ORDER BY run")]
    assert len(set(shown)) == 4


def test_trends_are_those_of_a_history(tmp_path: Path, runs: Path, place: Path, night: WriteRun) -> None:
    story = [Verdict.PASS, Verdict.MISMATCH, Verdict.PASS, Verdict.MISMATCH, Verdict.CRASH]
    written = [
        night(number, record("abs", verdict), record("neg"), runtime=f"1.{number // 3}")
        for number, verdict in enumerate(story, start=1)
    ]
    with History(tmp_path / "h.sqlite", create=True) as history:
        for run in written:
            history.add(run)
        kept, kept_cell = trends(history), cell_points(history, record("abs").cell)
    with open_store(runs, place, lambda _: None) as store:
        assert trends(store) == kept
        assert cell_points(store, record("abs").cell) == kept_cell
    assert [(each.runs, each.since.name) for each in kept.failing] == [(2, "night-04")]


def test_every_figure_of_a_record(rows: Rows, night: WriteRun) -> None:
    given = record(
        "abs",
        placement={
            "ep_nodes": 3,
            "cpu_nodes": 1,
            "ep_ops": {},
            "cpu_ops": {},
            "partitions": 2,
            "source": "log",
        },
        timings_ms={"create": 1.5, "first_run": 0.25, "teardown": 4.0},
        retries=[Verdict.CRASH],
        approximate="y",
        process={"pid": 1, "session": 1, "took_ms": 7.5, "rss_mib": 100.5},
    )
    night(1, given)
    assert rows(
        "SELECT ep_nodes, cpu_nodes, partitions, create_ms, first_run_ms, took_ms, rss_mib FROM records"
    ) == [(3, 1, 2, 1.5, 0.25, 7.5, 100.5)]
    assert rows(
        "SELECT flaky, approximate, headroom, bits, expected, family, cause, golden FROM records"
    ) == [(True, "y", 0.25, 20.5, True, "passed", None, None)]
    assert rows("SELECT axes['precision'], axes['nosuch'], label, started FROM records")[0][:3] == (
        "fp32",
        None,
        "npu",
    )
    assert rows("SELECT fingerprint->>'onnxruntime' FROM environments") == [("1.30",)]
    assert msgspec.convert(rows("SELECT cells, passed, failed FROM targets")[0], tuple[int, int, int]) == (
        1,
        1,
        0,
    )
