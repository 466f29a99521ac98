import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.report.changes.run_diff import CellChangeKind
from harness.report.drawings.chart import ChartEdge, chart
from harness.report.history.history_file import HISTORY_SCHEMA, History
from harness.report.history.trend import cell_points, trends
from harness.report.pages.history_page import write_history_page
from tests.kit import record, write_run

Night = Callable[..., Path]


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path / "h.sqlite", create=True) as opened:
        yield opened


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """Write the run of one night; its number is the day of the month."""

    def write(number: int, records: list[Record], *, runtime: str = "1.30", **fields: object) -> Path:
        started = f"2026-11-{number:02}T02:00:00Z"
        moved = [msgspec.structs.replace(record, started=started) for record in records]
        return write_run(
            tmp_path / f"night{number}", moved, targets={"npu": {"onnxruntime": runtime}}, **fields
        )

    return write


def used(record: Record, headroom: float) -> Record:
    outputs = tuple(msgspec.structs.replace(output, headroom=headroom) for output in record.outputs)
    return msgspec.structs.replace(record, outputs=outputs)


def test_a_trend_for_each_target(history: History, night: Night) -> None:
    history.add(night(2, [record("a", bits=10.0, op="MatMul"), record("b")], runtime="1.31"))
    # Added later, but run earlier: the order is that of the runs.
    history.add(night(1, [record("a", bits=20.0, op="MatMul"), record("b", verdict=Verdict.CRASH)]))
    found = trends(history)
    assert [run.name for run in found.runs] == ["night1", "night2"]
    (series,) = found.series
    assert (series.matrix, series.label) == ("local.toml", "npu")
    assert [(p.passed, p.tried, p.median_bits, p.headroom_high) for p in series.points] == [
        (1, 2, 20.0, 0.5),
        (2, 2, 10.0, 0.0),
    ]
    assert [point.changed for point in series.points] == [(), ("onnxruntime: 1.30 -> 1.31",)]
    with pytest.raises(UsageError, match="no target is like"):  # and 40 stars take no time
        trends(history, "*n" * 40 + "x")


def test_since_when_a_cell_fails(history: History, night: Night) -> None:
    story = [
        (1, Verdict.PASS, "1.29"),
        (2, Verdict.MISMATCH, "1.29"),
        (3, Verdict.PASS, "1.30"),
        (4, Verdict.MISMATCH, "1.31"),
        # The device was away: that says nothing of the cell.
        (5, Verdict.UNAVAILABLE, "1.31"),
        (6, Verdict.CRASH, "1.31"),
    ]
    for number, verdict, runtime in story:
        history.add(night(number, [record("a", verdict=verdict)], runtime=runtime))
    (failing,) = trends(history).failing
    assert (failing.cell, failing.verdict) == ("onnx-node/a[npu]", Verdict.CRASH)
    assert (failing.since.name, failing.runs) == ("night4", 2)
    assert failing.before is not None
    assert (failing.before.name, failing.verdict_before) == ("night3", Verdict.PASS)
    assert failing.changed == ("onnxruntime: 1.30 -> 1.31",)


def test_a_failure_as_old_as_the_history(history: History, night: Night) -> None:
    history.add(night(1, [record("a", verdict=Verdict.CRASH)]))
    (failing,) = trends(history).failing
    assert (failing.before, failing.runs, failing.changed) == (None, 1, ())


def test_a_mended_cell_fails_no_more(history: History, night: Night) -> None:
    history.add(night(1, [record("a", verdict=Verdict.CRASH)]))
    history.add(night(2, [record("a")]))
    assert trends(history).failing == ()


@pytest.mark.parametrize(
    ("errors", "rises"),
    [
        ([0.3, 0.5, 0.85], True),
        ([0.85, 0.85, 0.85], False),
        ([0.95, 0.95, 0.85], False),
        ([0.1, 0.2, 0.7], False),
        ([0.85], False),
        ([0.84, 0.84, 0.85], False),
    ],
)
def test_errors_above_the_warning_and_rising(
    errors: list[float], rises: object, history: History, night: Night
) -> None:
    for number, error in enumerate(errors, start=1):
        history.add(night(number, [used(record("a", bits=20.0), error), used(record("b", bits=20.0), 0.1)]))
    found = trends(history).rising
    assert bool(found) is rises
    if found:
        assert (found[0].cell, found[0].now, found[0].before) == ("onnx-node/a[npu]", 0.85, 0.4)


def test_a_run_is_added_once(history: History, night: Night) -> None:
    run = night(1, [record("a")])
    assert [history.add(run), history.add(run), len(trends(history).runs)] == [True, False, 1]


def test_shards_count_as_one_run(history: History, night: Night) -> None:
    first = night(1, [record("a")], missing=[])
    night(2, [record("b")], missing=["onnx-node/c[npu]"])
    history.add(first.parent)
    found = trends(history)
    assert [(run.planned, run.not_run, run.complete) for run in found.runs] == [(3, 1, False)]
    assert [(point.cells, point.not_run) for point in found.series[0].points] == [(3, 1)]


def test_results_of_one_cell(history: History, night: Night) -> None:
    history.add(night(1, [record("a", bits=20.0)]))
    history.add(night(2, [record("a", verdict=Verdict.CRASH)]))
    points = cell_points(history, "onnx-node/a[npu]")["local.toml"]
    assert [(p.run.name, p.verdict, p.expected, p.bits) for p in points] == [
        ("night1", Verdict.PASS, True, 20.0),
        ("night2", Verdict.CRASH, False, None),
    ]
    with pytest.raises(UsageError, match=r"did you mean 'onnx-node/a\[npu\]'"):
        cell_points(history, "onnx-node/b[npu]")


def test_nothing_can_be_changed(history: History, night: Night) -> None:
    history.add(night(1, [record("a")]))
    for statement in (
        "UPDATE result SET verdict = 'pass'",
        "DELETE FROM run",
        "UPDATE trend SET passed = tried",
        "DELETE FROM environment",
        "UPDATE cell SET label = ''",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            history.database.execute(statement)


def test_a_run_that_cannot_be_read_leaves_no_trace(history: History, night: Night) -> None:
    run = night(1, [record("a")])
    (run / "records.jsonl").write_text("{}\n", "utf-8")
    with pytest.raises(UsageError, match="not a record"):
        history.add(run)
    assert trends(history).runs == ()


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no history"):
        History(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
    text = tmp_path / "text.sqlite"
    text.write_text("something else entirely, and long enough to be a header", "utf-8")
    with pytest.raises(UsageError, match="not a database"):
        History(text, create=True)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE songs (name TEXT)")
    with pytest.raises(UsageError, match="not a history"):
        History(other, create=True)
    with History(tmp_path / "later.sqlite", create=True):
        pass
    with sqlite3.connect(tmp_path / "later.sqlite") as database:
        database.execute(f"PRAGMA user_version = {HISTORY_SCHEMA + 1}")
    with pytest.raises(UsageError, match=f"schema {HISTORY_SCHEMA + 1}, but this version"):
        History(tmp_path / "later.sqlite")


def test_an_unknown_target_is_reported(history: History, night: Night) -> None:
    history.add(night(1, [record("a")]))
    assert trends(history, "n*").series
    with pytest.raises(UsageError, match="did you mean 'npu'"):
        trends(history, "npx")


def test_the_page_is_self_contained_and_inert(history: History, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    for number, verdict in enumerate((Verdict.PASS, Verdict.CRASH), start=1):
        records = [record(evil, target=evil, verdict=verdict, suite=evil), record("a", bits=20.0)]
        moved = [msgspec.structs.replace(each, started=f"2026-11-0{number}T00:00:00Z") for each in records]
        history.add(write_run(tmp_path / f"n{number}", moved, targets={evil: {evil: f"{evil}{number}"}}))
    page = write_history_page(trends(history), (), tmp_path / "out").read_text("utf-8")
    assert "<img" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<svg viewBox") == 4
    assert "since" in page
    assert "1 of 1 (100%)" in page


def test_an_empty_history_has_a_page(history: History, tmp_path: Path) -> None:
    page = write_history_page(trends(history), (), tmp_path / "out").read_text("utf-8")
    assert "no run in this history yet" in page


def test_a_chart_has_gaps_and_marks() -> None:
    drawn = chart(
        "x",
        [0.5, None, 1.0, 9.0],
        ["a", "b", "c", "d"],
        top=ChartEdge(1.0, "100%"),
        dates=["1", "2", "3", "4"],
        marked=[False, False, True, False],
        limits=[1.0],
    )
    assert drawn is not None
    assert drawn.path == "M34.0 44.0 M207.3 8.0 L294.0 8.0"
    assert [(tick.y, tick.text) for tick in drawn.ticks] == [(8.0, "100%"), (80.0, "0")]
    assert drawn.dates == ("1", "4")
    assert [(dot.title, dot.marked) for dot in drawn.dots] == [("a", False), ("c", True), ("d", False)]
    assert drawn.limits == (8.0,)
    assert chart("x", [None], [""], top=ChartEdge(1.0, "1"), dates=["1"], marked=[False]) is None


def test_a_history_of_an_earlier_version_learns_measures_with_the_next_run(
    history: History, night: Night
) -> None:
    known: dict[str, Any] = {"policy": {"judge_by": "both"}, "model_digest": "a" * 64}
    history.add(night(1, [record("a", **known)]))
    for statement in ("DROP VIEW measures", "DROP TABLE judged_by", "DROP TABLE measure"):
        history.database.execute(statement)
    history.database.close()
    with History(history.path) as again:
        assert trends(again).turned == ()
        again.add(night(2, [record("a", verdict=Verdict.MISMATCH, **known)]))
        (turned,) = trends(again).turned
        assert (turned.kind, turned.before, turned.after) == (
            CellChangeKind.REGRESSED,
            Verdict.PASS,
            Verdict.MISMATCH,
        )
        assert turned.facts == ("measure unknown: an older version did not record by which policy",)
        again.add(night(3, [record("a", **known)]))
        (turned,) = trends(again).turned
        assert (turned.kind, turned.facts) == (CellChangeKind.FIXED, ())
        other = {**known, "model_digest": "b" * 64}
        again.add(night(4, [record("a", verdict=Verdict.MISMATCH, **other)]))
        assert [one.kind for one in trends(again).turned] == [CellChangeKind.OTHER_MODEL]
    with History(history.path) as again:
        assert [one.kind for one in trends(again).turned] == [CellChangeKind.OTHER_MODEL]


def test_a_cell_that_left_the_plan_is_told(history: History, night: Night) -> None:
    history.add(night(1, [record("a"), record("b", verdict=Verdict.CRASH)]))
    history.add(night(2, [record("b", verdict=Verdict.UNAVAILABLE), record("c")]))
    assert [(one.kind, one.cell.partition("[")[0], one.facts) for one in trends(history).turned] == [
        (CellChangeKind.NEW, "onnx-node/c", ("not planned before",)),
        (CellChangeKind.GONE, "onnx-node/a", ("no longer planned",)),
        (CellChangeKind.GONE, "onnx-node/b", ("no longer tested: skipped as unavailable",)),
    ]
