from pathlib import Path

import msgspec
import pytest

from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.report.report_files import write_report
from harness.report.runs.read import read_run
from tests.kit import record, write_run


def test_a_run_folder_comes_back_as_it_was_written(tmp_path: Path) -> None:
    records = [record("a"), record("b", verdict=Verdict.MISMATCH, bits=3.0)]
    run = read_run(write_run(tmp_path / "run", records))
    assert run.records == tuple(records)
    assert run.info.cells == 2
    assert not run.torn


def test_a_compact_run_lacks_frontiers_and_shares_what_is_equal(tmp_path: Path) -> None:
    records = [record("a", bits=9.0), record("b", bits=7.0)]
    with_frontier = [
        msgspec.structs.replace(
            one, outputs=(msgspec.structs.replace(one.outputs[0], frontier=((1e-5, 0.0),)),)
        )
        for one in records
    ]
    folder = write_run(tmp_path / "run", with_frontier)
    assert read_run(folder).records == tuple(with_frontier)
    first, second = read_run(folder, compact=True).records
    assert (first, second) == tuple(records)
    assert first.axes is second.axes
    assert first.placement is second.placement


def test_a_torn_last_line_is_tolerated_and_reported(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [record("a")], planned=2)
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"schema":1,"cell":"onnx-node/b[\xc3')
    run = read_run(folder)
    assert run.torn
    assert len(run.records) == 1
    page = write_report([folder], folder / "report")[0].read_text(encoding="utf-8")
    assert "INCOMPLETE" in page
    assert "the last line of records.jsonl is torn" in page


def test_a_damaged_line_costs_that_line_and_is_reported(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [record("a"), record("b"), record("c")])
    path = folder / "records.jsonl"
    lines = path.read_bytes().splitlines()
    nameless = lines[1].replace(b'"name":"y"', b'"name":null')
    assert nameless != lines[1]
    deep = b'{"later":' + b"[" * 100_000
    path.write_bytes(b"\n".join([lines[0], b"{torn", b'{"schema":1}', nameless, deep, lines[2], b""]))
    run = read_run(folder)
    assert run.records == (record("a"), record("c"))
    assert [problem.where for problem in run.damaged] == [f"{path}: line {n}" for n in (2, 3, 4, 5)]
    assert [problem.what.partition(":")[0] for problem in run.damaged] == [
        "not JSON",
        "not a record",
        "not a record",
        "not JSON",
    ]
    page = write_report([folder], folder / "report")[0].read_text(encoding="utf-8")
    assert "INCOMPLETE" in page
    assert "4 lines of records.jsonl without a record" in page
    assert "first: line 2, not JSON" in page


@pytest.mark.parametrize(("damaged", "listed"), [(1, 1), (5, 5), (6, 6), (500, 6)])
def test_many_damaged_lines_are_counted_not_listed(damaged: int, listed: int, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [record("a")])
    (folder / "records.jsonl").write_bytes(b"?\n" * damaged)
    with pytest.raises(UsageError) as error:
        read_run(folder)
    *first, last = (problem.what for problem in error.value.problems)
    assert len(first) + 1 == listed
    assert all(what.startswith("not JSON") for what in first)
    assert ("more lines" in last) is (damaged > 5)
    assert damaged <= 5 or last == f"{damaged - 5} more lines are damaged"


def test_another_schema_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [record("a", schema=7)])
    with pytest.raises(UsageError, match="schema 7, but this version reads schema 1"):
        read_run(folder)


def test_two_different_records_of_one_cell_are_refused(tmp_path: Path) -> None:
    same = write_run(tmp_path / "same", [record("a"), record("a")])
    assert len(read_run(same).records) == 1
    different = write_run(tmp_path / "different", [record("a"), record("a", verdict=Verdict.CRASH)])
    with pytest.raises(UsageError, match="second, different record"):
        read_run(different)


def test_all_missing_files_are_named_at_once(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    half = write_run(tmp_path / "half", [record("a")])
    (half / "records.jsonl").unlink()
    broken = write_run(tmp_path / "broken", [record("b")])
    (broken / "run.json").write_text('{"schema": "one"}', encoding="utf-8")
    with pytest.raises(UsageError) as error:
        write_report([tmp_path / "nowhere", empty, half, broken], tmp_path / "out")
    assert [Path(problem.where) for problem in error.value.problems] == [
        tmp_path / "nowhere",
        empty,
        half / "records.jsonl",
        broken / "run.json",
    ]
    assert not (tmp_path / "out").exists()


def test_no_run_and_an_unwritable_place_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run folder given"):
        write_report([], tmp_path / "out")
    in_the_way = tmp_path / "file"
    in_the_way.write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written"):
        write_report([write_run(tmp_path / "run", [record()])], in_the_way)
    (tmp_path / "out" / "report.md").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"^\S*report\.md: the report cannot be written: Is a directory"):
        write_report([tmp_path / "run"], tmp_path / "out", ["markdown"])
