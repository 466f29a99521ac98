"""A feature that a device lacks is told once, whichever operators need it."""

from harness.core.findings.lacking import lacks_of
from harness.core.records.cell_end import CellEnd
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.report.changes.diff import compare_merged
from harness.report.changes.diff_text import diff_lines, diff_markdown
from harness.report.view import build_report
from tests.kit import merged, record


def lacking(operator: str, verdict: Verdict = Verdict.ERROR) -> Record:
    """Return a cell that fails for want of f16."""
    message = f"Fail: Status Message: Program {operator} requires f16 but the device does not support it."
    ended = CellEnd(how="raised", kind="Fail", message=message, lacks="f16")
    return record(operator, verdict=verdict, ended=ended, reason=message)


def test_the_cells_of_a_lack_are_counted_by_target() -> None:
    golden = lacking("Add", Verdict.NO_GOLDEN)  # the CPU EP refuses it, too
    cells = [lacking("Cast"), lacking("Max", Verdict.UNSUPPORTED), golden, record("Neg")]
    (found,) = lacks_of(cells)
    assert found[:] == ("npu", "f16", 2)
    assert found.words.startswith("the device lacks f16: 2 cells need it; use a device or driver with 16-bit")


def test_a_difference_tells_it_once() -> None:
    operators = ("Cast", "Div", "Max")
    old = merged([record(name) for name in operators])
    diff = compare_merged(old, merged([lacking(name) for name in operators]), names=("old", "new"))
    assert diff.lacks == {"npu": {"f16": (0, 3)}}
    for lines in (diff_lines(diff), diff_markdown(diff)):
        text = " ".join(" ".join(lines).split())
        assert "lacks: target npu: the device lacks f16: 3 cells need it;" in text
        assert "(0 before)" in text
        assert "and 2 more of target npu, whose device lacks f16" in text
        assert text.count("requires f16") == 1


def test_a_report_has_one_group_for_it() -> None:
    cells = [lacking(name) for name in ("Cast", "Div", "Max")]
    report = build_report(merged(cells), lambda *_: "", {})
    assert report.unexpected_failures.count == 3
    assert len(report.unexpected_failures.shown) == 1
    assert [one.cells for one in report.lacking] == [3]
