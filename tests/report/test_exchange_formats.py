"""CTRF, SARIF and OpenMetrics: as their readers want them, with the numbers of the report, and harmless."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.report.formats.ctrf import to_ctrf
from harness.report.formats.open_metrics import to_open_metrics
from harness.report.formats.rows import cell_rows, target_rows
from harness.report.formats.sarif import to_sarif
from harness.report.report_files import write_report
from harness.report.view import build_report
from tests.kit import merged, record, write_run

HOSTILE = '"} 1\n# EOF\\\x1b[31m<b>'
RECORDS = [
    record("a", target="npu"),
    record("b", target="npu", verdict=Verdict.CRASH, reason="SIGSEGV at 0x1f", expected=False),
    record("c", target="npu", verdict=Verdict.CRASH, reason="SIGSEGV at 0x2f", expected=False),
    record("d", target="npu", verdict=Verdict.ERROR, reason="no kernel", expected=True),
    record("e", target=HOSTILE, verdict=Verdict.UNSUPPORTED, reason=HOSTILE),
]
SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)')
"""A line of OpenMetrics that is no comment."""


def written(records: list[Record]) -> dict[str, bytes]:
    report = build_report(merged(records), lambda *_: "", {})
    targets = target_rows(report)
    return {
        "ctrf-report.json": to_ctrf(report, targets, cell_rows(report.run)),
        "report.sarif": to_sarif(report),
        "metrics.txt": to_open_metrics(report, targets).encode(),
    }


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return written(RECORDS)


def test_the_command_writes_them(tmp_path: Path) -> None:
    formats = ("ctrf", "sarif", "openmetrics")
    paths = write_report([write_run(tmp_path / "run", RECORDS[:1])], tmp_path / "out", formats)
    assert [path.name for path in paths] == ["ctrf-report.json", "report.sarif", "metrics.txt"]
    assert all(path.stat().st_size for path in paths)


def test_ctrf_counts_each_test_once_by_its_outcome(files: dict[str, bytes]) -> None:
    told = json.loads(files["ctrf-report.json"])
    assert (told["reportFormat"], told["specVersion"]) == ("CTRF", "0.0.0")
    results = told["results"]
    summary, tests = results["summary"], results["tests"]
    statuses = [one["status"] for one in tests]
    assert set(summary) == {
        "tests", "passed", "failed", "skipped", "pending", "other", "start", "stop",
    }  # fmt: skip
    assert summary["tests"] == len(tests) == 5
    assert {name: statuses.count(name) for name in set(statuses)} == {"passed": 1, "failed": 2, "skipped": 2}
    assert all(summary[name] == statuses.count(name) for name in ("passed", "failed", "skipped", "other"))
    by_name = {one["extra"]["model"]: one for one in tests}
    assert by_name["d"]["message"].startswith("expected failure: error: no kernel")
    assert by_name["b"]["rawStatus"] == "crash"
    assert all(isinstance(one["duration"], int) for one in tests)
    assert b"\x1b" not in files["ctrf-report.json"]


def test_sarif_has_a_result_for_each_cause_at_a_relative_file(files: dict[str, bytes]) -> None:
    told = json.loads(files["report.sarif"])
    assert told["version"] == "2.1.0"
    (run,) = told["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    crash, error = run["results"]
    assert (crash["ruleId"], crash["level"], crash["occurrenceCount"]) == ("crash", "error", 2)
    assert (error["ruleId"], error["level"]) == ("error", "note")
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in run["results"])
    (place,) = crash["locations"]
    uri = place["physicalLocation"]["artifactLocation"]["uri"]
    assert not uri.startswith("/")
    assert ":" not in uri
    assert place["physicalLocation"]["region"] == {"startLine": 1}
    assert place["logicalLocations"][0]["fullyQualifiedName"] == RECORDS[1].cell


def test_a_cause_has_the_same_fingerprint_with_other_figures() -> None:
    def fingerprint(reason: str) -> str:
        one = msgspec.structs.replace(RECORDS[1], reason=reason)
        (result,) = json.loads(written([one])["report.sarif"])["runs"][0]["results"]
        return str(result["partialFingerprints"])

    assert fingerprint("SIGSEGV at 0x1f") == fingerprint("SIGSEGV at 0x77")
    assert fingerprint("SIGSEGV at 0x1f") != fingerprint("no kernel")


def test_open_metrics_are_read_by_the_grammar_and_add_up(files: dict[str, bytes]) -> None:
    text = files["metrics.txt"].decode()
    assert text.endswith("\n# EOF\n")
    assert text.count("# EOF\n") == 1
    lines = text.removesuffix("# EOF\n").splitlines()
    types = dict(line.split()[2:] for line in lines if line.startswith("# TYPE "))
    assert set(types.values()) == {"gauge", "info"}
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in lines:
        if line.startswith("# "):
            continue
        parsed = SAMPLE.fullmatch(line)
        assert parsed, line
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', parsed[2] or ""))
        found.setdefault(parsed[1], []).append((labels, float(parsed[3])))
    assert {name.removesuffix("_info") for name in found} <= types.keys()
    assert sum(value for _, value in found["ep_harness_cells"]) == len(RECORDS)
    npu = {
        labels["family"]: value for labels, value in found["ep_harness_cells"] if labels["target"] == "npu"
    }
    assert (npu["passed"], npu["failed"]) == (1, 3)
    unexpected = {labels["target"]: value for labels, value in found["ep_harness_unexpected_cells"]}
    assert unexpected["npu"] == 2
    assert found["ep_harness_complete"] == [({}, 1.0)]
