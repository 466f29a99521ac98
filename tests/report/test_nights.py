"""Nights side by side: turns of each night, since when in this way, flaky cells."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.core.records.verdict import Verdict
from harness.report.history.history_file import History
from harness.report.history.nights import NightCell, Nights, nights_of
from harness.report.report_files import write_report
from tests.kit import record, write_run

Night = Callable[..., Path]

PASS, WRONG, CRASH = Verdict.PASS, Verdict.MISMATCH, Verdict.CRASH
MATRIX = "local.toml"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path / "h.sqlite", create=True) as opened:
        yield opened


@pytest.fixture
def add(history: History, tmp_path: Path) -> Callable[..., Path]:
    """Add a night; each cell is a verdict, or one with fields of its record."""

    def added(number: int, **cells: Verdict | tuple[Verdict, dict[str, Any]]) -> Path:
        pairs = {name: each if isinstance(each, tuple) else (each, {}) for name, each in cells.items()}
        records = [
            record(name, verdict=verdict, started=f"2026-11-{number:02}T02:00:00Z", **fields)
            for name, (verdict, fields) in pairs.items()
        ]
        run = write_run(tmp_path / f"night{number}", records)
        assert history.add(run)
        return run

    return added


def by_model(found: Nights) -> dict[str, NightCell]:
    return {cell.cell.partition("/")[2].partition("[")[0]: cell for cell in found.cells}


def test_since_when_a_cell_fails_and_since_when_in_this_way(history: History, add: Night) -> None:
    add(1, a=PASS, b=PASS)
    add(2, a=(WRONG, {"reason": "3 of 12 elements differ"}), b=PASS)
    add(3, a=(CRASH, {"cause": "SIGSEGV", "reason": "died at 0x12"}), b=PASS)
    add(4, a=(CRASH, {"cause": "SIGSEGV", "reason": "died at 0x99"}), b=PASS)
    found = nights_of(history, MATRIX)
    cell = by_model(found)["a"]
    assert cell.since is not None
    assert cell.same_since is not None
    assert (cell.since.first[:10], cell.nights) == ("2026-11-02", 3)
    assert (cell.same_since.first[:10], cell.same_nights) == ("2026-11-03", 2)
    assert cell.signature == "SIGSEGV: died at #"
    assert [(one.verdict, one.start, one.width) for one in cell.stretches] == [
        (PASS, 0.0, 25.0),
        (WRONG, 25.0, 25.0),
        (CRASH, 50.0, 50.0),
    ]
    assert found.steady == 1


def test_another_cause_is_another_way(history: History, add: Night) -> None:
    add(1, a=(CRASH, {"cause": "SIGSEGV"}))
    add(2, a=(CRASH, {"cause": "SIGABRT"}))
    cell = by_model(nights_of(history, MATRIX))["a"]
    assert (cell.nights, cell.same_nights) == (2, 1)


def test_regressions_and_fixes_of_each_night(history: History, add: Night) -> None:
    add(1, a=PASS, b=WRONG, c=PASS)
    add(2, a=WRONG, b=PASS, c=Verdict.UNAVAILABLE)
    # The last result of c is that of the first night.
    add(3, a=WRONG, b=PASS, c=WRONG)
    found = nights_of(history, MATRIX)
    assert [(night.regressed, night.fixed, night.failed, night.skipped) for night in found.nights] == [
        (0, 0, 1, 0),
        (1, 1, 1, 1),
        (1, 0, 2, 0),
    ]


def test_a_night_without_a_device_turns_no_cell(history: History, add: Night) -> None:
    add(1, a=PASS)
    add(2, a=Verdict.UNAVAILABLE)
    add(3, a=PASS)
    assert nights_of(history, MATRIX).cells == ()


@pytest.mark.parametrize(
    ("verdicts", "flaky", "is_flake"),
    [
        ((PASS, WRONG, PASS, PASS, WRONG, PASS), 2, True),
        ((PASS, PASS, WRONG, PASS, PASS, PASS), 1, False),  # once may be the machine's
        ((PASS, PASS, PASS, WRONG, WRONG, WRONG), 0, False),  # that is a regression
        ((PASS, WRONG, PASS, WRONG, PASS, WRONG), 2, True),
        ((PASS, (WRONG, {"retries": (PASS,)}), PASS, PASS, PASS, PASS), 1, True),
    ],
)
def test_flaky_nights(
    history: History,
    add: Night,
    verdicts: tuple[Verdict, ...],
    flaky: int,
    is_flake: bool,  # noqa: FBT001
) -> None:
    for number, verdict in enumerate(verdicts, start=1):
        add(number, a=verdict)
    found = nights_of(history, MATRIX)
    cell = by_model(found)["a"]
    assert (cell.flaky.count, cell.flaky.total) == (flaky, 6)
    assert [each.cell for each in found.flakes] == ([cell.cell] if is_flake else [])


def test_the_report_has_the_page_and_show_lists_flakes(
    history: History, add: Night, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, verdict in enumerate((PASS, WRONG, PASS, WRONG, PASS), start=1):
        newest = add(number, a=verdict, b=PASS)
    write_report([newest], tmp_path / "out", ["html"], history=history)
    page = (tmp_path / "out" / "nights.html").read_text("utf-8")
    assert "40.0%" in page
    assert 'href="nights.html"' in (tmp_path / "out" / "index.html").read_text("utf-8")
    assert main(["history", "show", "--db", str(history.path)]) == 0
    shown = capsys.readouterr().out
    assert "flaky: 1 cell, the flakiest first" in shown
    assert "another verdict in 2 of 5 runs" in shown


def test_an_unavailable_night_is_told_in_few_lines(
    history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"m{i}" for i in range(30)]
    old = write_run(tmp_path / "old", [record(name) for name in names], targets={"npu": {"onnxruntime": "1"}})
    gone = [record(name, verdict=Verdict.UNAVAILABLE, reason="no NPU here") for name in names]
    new = write_run(
        tmp_path / "new", gone, targets={"npu": {"onnxruntime": "1", "unavailable": "no NPU here"}}
    )
    history.add(old)
    history.add(new)
    assert main(["history", "show", "--db", str(history.path)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("no NPU here") == 1
    assert "npu: unavailable, 30 cells not tried" in shown
    assert "m0[" not in shown
    main(["diff", str(old), str(new)])
    shown = capsys.readouterr().out
    assert shown.count("no NPU here") == 1
    assert "unavailable: target npu, 30 cells had a result before, and none now" in shown
    assert "m0[" not in shown
    write_report([new], tmp_path / "out", ["html"], baseline=old)
    page = (tmp_path / "out" / "changes.html").read_text("utf-8")
    assert page.count("no NPU here") == 1
    assert "m0[" not in page


def test_a_history_of_an_earlier_version_learns_signatures_with_the_next_run(
    history: History, add: Night
) -> None:
    add(1, a=(CRASH, {"cause": "SIGSEGV"}))
    for statement in ("DROP VIEW failures", "DROP TABLE failed_by", "DROP TABLE failure"):
        history.database.execute(statement)
    history.database.close()
    with History(history.path) as again:
        assert by_model(nights_of(again, MATRIX))["a"].signature == ""
