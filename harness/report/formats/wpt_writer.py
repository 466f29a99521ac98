"""The results of a target as ``wptreport.json`` of web-platform-tests has them."""

from collections.abc import Iterable
from typing import Any

from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.formats.cell_columns import CellRow
from harness.report.formats.junit import case_message, case_seconds
from harness.report.formats.rows import TargetRow
from harness.report.words.inert import inert_json
from harness.report.words.utc_moment import epoch_ms

_STATUS = {
    Family.PASSED: "PASS",
    Family.FAILED: "FAIL",
    Family.UNSUPPORTED: "PRECONDITION_FAILED",
    Family.UNTESTED: "PRECONDITION_FAILED",
    Family.SKIPPED: "SKIP",
    Family.EXCLUDED: "SKIP",
}
"""Family of a verdict -> status, but for verdicts of ``_OWN_STATUS``; a missing result has no test."""

_OWN_STATUS = {Verdict.CRASH: "CRASH", Verdict.HANG: "TIMEOUT", Verdict.ERROR: "ERROR"}
_MAX_CHARS = 2_000


def to_wpt(row: TargetRow, cells: Iterable[CellRow], *, first: str, last: str) -> bytes:
    """Render the file of one target; ``first`` and ``last`` are the times of the run, ISO 8601."""
    told = {
        "run_info": {
            "product": _text(row.label),
            "browser_version": _text(row.ep_version),
            "onnxruntime": _text(row.onnxruntime),
            "device": _text(row.device),
            "driver": _text(row.driver),
        },
        "time_start": epoch_ms(first),
        "time_end": epoch_ms(last),
        "results": [_test(one) for one in cells if one.family in _STATUS],
        "subsuites": {},
    }
    return inert_json(told)


def _test(cell: CellRow) -> dict[str, Any]:
    status = _OWN_STATUS.get(cell.verdict, _STATUS[cell.family])
    right = status == "PASS"
    return {
        "test": f"/{_text(cell.suite)}/{_text(cell.model)}",
        "subsuite": "",
        "status": status,
        # As in wpt: only where it differs from the status.
        **({} if cell.expected else {"expected": "FAIL" if right else "PASS"}),
        "message": None if cell.verdict is Verdict.PASS else _text(case_message(cell)),
        "duration": round(1000 * case_seconds(cell)),
        "subtests": [],
    }


def _text(text: str) -> str:
    return one_line(visible(text), _MAX_CHARS)
