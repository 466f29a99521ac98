"""Results of other tools on the page *Compare*: ExecuTorch's CSV and wptreport.json."""

import base64
import csv
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import UsageError
from harness.report.report_files import write_report
from harness.report.runs.executorch_csv import EXECUTORCH_DETAILS
from harness.report.runs.results_beside import read_results_beside
from harness.report.runs.wpt_report import WPT_STATUSES
from tests.kit import record, write_run

# The columns of backends/test/suite/reporting.py of ExecuTorch, without times and errors of outputs.
HEADER = (
    "Test ID,Test Case,Subtest,Flow,Params,Result,Result Detail,Delegated,"
    "Delegated Nodes,Undelegated Nodes,Error"
)


def executorch(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADER.split(","), restval="")
        writer.writeheader()
        for row in rows:
            whole = {"Test ID": "id", "Subtest": "0", "Flow": "xnnpack", "Delegated": "True"} | row
            writer.writerow(whole)
    return path


def wpt(path: Path, results: list[Any], **product: str) -> Path:
    told = {"run_info": product, "time_start": 1, "time_end": 2, "subsuites": {}, "results": results}
    path.write_text(json.dumps(told), "utf-8")
    return path


def test_executorch_by_flow_with_what_each_result_means(tmp_path: Path) -> None:
    file = executorch(
        tmp_path / "et.csv",
        {"Test Case": "test_add", "Result": "Pass", "Undelegated Nodes": "0"},
        {"Test Case": "test_part", "Result": "Pass", "Undelegated Nodes": "3"},
        {"Test Case": "test_own", "Result": "Pass", "Delegated": "False"},
        {"Test Case": "test_skip", "Result": "Skip"},
        {"Test Case": "test_add", "Flow": "coreml", "Params": '{"dtype": "torch.float16"}', "Result": "Pass"},
        {"Test Case": "test_lstm", "Subtest": "1", "Result": "Fail", "Result Detail": "Output Mismatch"},
        *({"Test Case": one, "Result": "Fail", "Result Detail": one} for one in EXECUTORCH_DETAILS),
    )
    xnnpack, coreml = read_results_beside(file)
    assert (xnnpack.id, coreml.id) == ("et.csv: xnnpack", "et.csv: coreml")
    assert coreml.verdicts == {"test_add [dtype=torch.float16]": Verdict.PASS}
    assert xnnpack.verdicts == {
        "test_add": Verdict.PASS,
        "test_part": Verdict.PASS_PARTIAL,
        "test_own": Verdict.FALLBACK,
        "test_skip": Verdict.DECLARED,
        "test_lstm #1": Verdict.MISMATCH,
        **EXECUTORCH_DETAILS,
    }


def test_wpt_has_subtests_and_tests_that_did_not_end(tmp_path: Path) -> None:
    file = wpt(
        tmp_path / "wptreport.json",
        [
            {
                "test": "/webnn/add.https.any.html",
                "subsuite": "",
                "status": "OK",
                "message": None,
                "subtests": [
                    {"name": "add float32", "status": "PASS", "message": None},
                    {"name": "add float16", "status": "FAIL", "message": "assert", "expected": "PASS"},
                ],
            },
            {"test": "/webnn/gone.html", "subsuite": "gpu", "status": "CRASH", "subtests": []},
            *({"test": name, "status": name, "subtests": []} for name in WPT_STATUSES),
        ],
        product="chrome",
        browser_version="140",
    )
    (one,) = read_results_beside(file)
    assert one.id == "wptreport.json: chrome 140"
    assert one.verdicts == {
        "webnn/add.https.any.html add float32": Verdict.PASS,
        "webnn/add.https.any.html add float16": Verdict.MISMATCH,
        "webnn/gone.html (gpu)": Verdict.CRASH,
        **WPT_STATUSES,
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "neither a CSV"),
        ("a,b\n1,2\n", "neither a CSV"),
        ("{", "truncated"),
        ('{"results": 3}', r"Expected `array`, got `int` - at `\$.results`"),
        ('{"results": []}', "it has no results"),
        ('{"results": [{"test": "/a", "status": "MAYBE"}]}', "the status of 'a' is 'MAYBE'; valid: OK, PASS"),
        (f"{HEADER}\n", "it has no results"),
        (f"{HEADER}\na,b,0,f,,Perhaps,,True,,,\n", "line 2: the result is 'Perhaps', ''"),
        (f"{HEADER}\na,b,0,f,[1],Pass,,True,,,\n", "line 2: "),
        (f"{HEADER}\na,b\n", "line 2: "),
        (f"{HEADER}\na,b,0,f,,Pass,,True,,,{'x' * 200_000}\n", "field larger than field limit"),
        ('{"results": [{"test": "a", "status": "OK", "x": ' + "[" * 100_000, "."),
    ],
)
def test_a_file_of_another_kind_is_refused_in_words(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "file"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        read_results_beside(path)
    assert re.search(what, str(caught.value)), caught.value
    assert str(path) in str(caught.value)


def test_they_are_sides_of_the_page_beside_the_targets(tmp_path: Path) -> None:
    hostile = "</script><img src=x>"
    run = write_run(tmp_path / "run", [record("a"), record("b", verdict=Verdict.CRASH)])
    results = [
        {"test": "/onnx-node/a", "status": "FAIL", "subtests": []},
        {"test": f"/{hostile}\u202e", "status": "PASS", "subtests": []},
    ]
    other = wpt(tmp_path / "other.json", results, product=hostile)
    write_report(run, tmp_path / "out", beside=[other])
    page = (tmp_path / "out" / "compare.html").read_text("utf-8")
    assert hostile not in page
    packed = page.partition('id="archive">')[2].partition("<")[0]
    told = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert told["cases"] == ["onnx-node/a", "onnx-node/b", f"{hostile}\\u202e"]
    own, beside = told["sides"]
    assert (beside["name"], told["groups"][beside["group"]]["name"]) == (hostile, "other.json")
    assert (beside["id"], own["linked"], beside["linked"]) == (f"other.json: {hostile}", True, False)
    words = [told["verdicts"][ord(letter) - ord("a")][0] for letter in beside["verdicts"]]
    assert words == ["✗ mismatch", "not planned", "✓ pass"]


def test_what_is_written_for_wpt_reads_as_the_same_families(tmp_path: Path) -> None:
    records = [record(one.value, verdict=one, target="npu/a", expected=False) for one in Verdict]
    run = write_run(tmp_path / "run", [*records, record("pass", target="cpu")])
    assert write_report(run, tmp_path / "out", "wpt") == (tmp_path / "out" / "wpt",)
    (other,) = read_results_beside(tmp_path / "out" / "wpt" / "cpu.json")
    assert other.verdicts == {"onnx-node/pass": Verdict.PASS}
    file = tmp_path / "out" / "wpt" / "npu-a.json"
    (one,) = read_results_beside(file)
    assert one.name == "npu/a"
    like = {Family.UNTESTED: Family.UNSUPPORTED, Family.EXCLUDED: Family.SKIPPED}
    assert {case.removeprefix("onnx-node/"): verdict.family for case, verdict in one.verdicts.items()} == {
        each.value: like.get(each.family, each.family)
        for each in Verdict
        if each.family is not Family.MISSING
    }
    tests = {each["test"]: each for each in json.loads(file.read_bytes())["results"]}
    crash = tests["/onnx-node/crash"]
    assert (crash["status"], crash["expected"], crash["subtests"]) == ("CRASH", "PASS", [])
    assert crash["message"].startswith("crash: ")
