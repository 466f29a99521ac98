"""Every format names what ran, and which targets a program stood in for; failures have their number."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.plan.matrix import Matrix
from harness.report.changes.likeness import fact_differences
from harness.report.report_files import write_report
from harness.report.runs.merged_run import RunEnvironment
from harness.report.runs.target_identity import identity_of
from tests.kit import matrix_of, record, with_facts, write_run

ISSUE = "https://github.com/vendor/ep/issues/12"
NPU: dict[str, object] = {
    "onnxruntime": "1.32.0",
    "providers": ["NpuExecutionProvider"],
    "plugin": {"library": "/opt/vendor/libnpu.so", "version": "2.7"},
    "devices": [
        {
            "device": {"type": "NPU", "vendor": "Vendor"},
            "metadata": {"FULL_DEVICE_NAME": "Vendor NPU 5", "driver_version": "31.0.1"},
        }
    ],
}
SIMULATOR: dict[str, object] = {
    "onnxruntime": "1.32.0",
    "providers": ["QNNExecutionProvider"],
    "plugin": {"library": "C:\\venv\\qnn.dll", "version": "2.7.0"},
    "processor": {"model": "Xeon"},
    "devices": [{"device": {"type": "CPU", "vendor": "Intel"}, "metadata": {}}],
}


ABSENT: dict[str, object] = {"unavailable": "no device"}


def with_library(path: str) -> dict[str, object]:
    return {"plugin": {"library": path, "version": "1"}}


def matrix(records: Sequence[Record], reason: str) -> Matrix:
    """A matrix that expects the failures which the records call expected."""
    made = matrix_of(records)
    known = tuple(msgspec.structs.replace(entry, reason=reason) for entry in made.expect)
    return msgspec.structs.replace(made, expect=known)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All formats of a run in which one failure is known and none is unexpected."""
    records = [
        with_facts(each)
        for each in (
            record("good"),
            record("bad", verdict=Verdict.CRASH, expected=True, reason="died"),
            record("good", target="qnn", provider="QNNExecutionProvider"),
        )
    ]
    home = tmp_path_factory.mktemp("runs")
    run = write_run(
        home / "known", records, matrix=matrix(records, ISSUE), targets={"npu": NPU, "qnn": SIMULATOR}
    )
    out = tmp_path_factory.mktemp("published")
    write_report([run], out, ["html", "markdown", "csv", "json", "junit", "badge"])
    return out


def test_the_facts_of_a_device_and_of_a_simulator() -> None:
    npu, qnn, absent = (
        identity_of(RunEnvironment(target=name, run="r", fingerprint=facts), {})
        for name, facts in (("npu", NPU), ("qnn @ r", SIMULATOR), ("gone", ABSENT))
    )
    assert npu.line == "onnxruntime 1.32.0, Npu 2.7, driver 31.0.1, Vendor NPU 5"
    assert (npu.library, npu.hardware) == ("libnpu.so", "hardware")
    assert qnn.line == "onnxruntime 1.32.0, QNN 2.7.0, Xeon, simulated"
    assert qnn.library == "qnn.dll"
    assert (absent.line, absent.hardware, absent.unavailable) == ("", "not known", "no device")


@pytest.mark.parametrize(
    "file", ["index.html", "report.md", "junit.xml", "targets.csv", "report.json", "badges/npu.json"]
)
def test_every_format_names_what_ran(published: Path, file: str) -> None:
    text = (published / file).read_text("utf-8")
    for fact in ("1.32.0", "2.7", "31.0.1", "Vendor NPU 5"):
        assert fact in text, fact


def test_what_is_not_known_of_a_device_is_told_so(published: Path) -> None:
    page = (published / "index.html").read_text("utf-8")
    assert "firmware not known" in page.partition('id="what"')[2].partition("</section>")[0]
    rows = {row["target"]: row for row in json.loads((published / "report.json").read_bytes())["targets"]}
    assert (rows["npu"]["firmware"], rows["npu"]["vendor"]) == ("", "Vendor")


@pytest.mark.parametrize("file", ["index.html", "models.html", "report.md", "junit.xml", "badges/qnn.json"])
def test_a_simulated_target_is_called_so(published: Path, file: str) -> None:
    assert "simulated" in (published / file).read_text("utf-8")
    rows = json.loads((published / "report.json").read_bytes())["targets"]
    assert {row["target"]: bool(row["simulated"]) for row in rows} == {"npu": False, "qnn": True}


def test_a_page_in_which_all_is_expected_has_the_number_of_failures(published: Path) -> None:
    page = (published / "index.html").read_text("utf-8")
    status = page.partition('id="status"')[2].partition("</section>")[0]
    assert re.search(r"<strong>1 of 3 cells fail</strong>", status)
    assert "good" not in status
    badge = json.loads((published / "badge.json").read_bytes())
    assert (badge["message"], badge["color"]) == ("2 of 3 (66.7%) pass, 1 fail", "yellow")
    assert "1 failed, 0 unexpected" in (published / "report.md").read_text("utf-8")


def test_a_known_failure_has_the_link_of_the_matrix(published: Path) -> None:
    link = f'<a href="{ISSUE}" rel="noreferrer noopener">{ISSUE}</a>'
    for file in ("failures.html", "cells.html"):
        assert link in (published / file).read_text("utf-8"), file
    assert f"<{ISSUE}>" in (published / "report.md").read_text("utf-8")
    assert f"expected failure ({ISSUE}): crash" in (published / "junit.xml").read_text("utf-8")


def test_every_format_for_people_has_the_command_that_repeats_a_failure(tmp_path: Path) -> None:
    crash = record("bad", verdict=Verdict.CRASH, reason="died")
    assert crash.family is Family.FAILED
    run = write_run(tmp_path / "run", [crash])
    write_report([run], tmp_path / "out", ["html", "markdown", "junit"])
    command = shlex.join(
        ["ep-harness", "run", "matrices/local.toml", "--target", "npu", "--model", "onnx-node/bad"]
    )
    for file in ("failures.html", "cells.html", "report.md", "junit.xml"):
        assert command in (tmp_path / "out" / file).read_text("utf-8"), file


def test_an_address_of_a_matrix_cannot_leave_its_link(tmp_path: Path) -> None:
    hostile = 'see https://x.example/1"><script>alert(1)</script> and javascript:alert(1)'
    records = [with_facts(record("bad", verdict=Verdict.CRASH, expected=True, reason="died"))]
    run = write_run(tmp_path / "run", records, matrix=matrix(records, hostile))
    write_report([run], tmp_path / "out", ["html", "markdown"])
    page = (tmp_path / "out" / "failures.html").read_text("utf-8")
    assert '<a href="https://x.example/1" rel="noreferrer noopener">https://x.example/1</a>&#34;' in page
    assert "<script>alert" not in page
    assert "<https://x.example" not in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_the_folder_of_a_virtual_environment_is_no_change() -> None:
    old = with_library("/a/lib/python3.11/site-packages/ep/libep.so")
    assert fact_differences(old, with_library("/c/lib/site-packages/ep/libep.so")) == ()
    assert fact_differences(old, with_library("C:\\b\\Lib\\site-packages\\ep\\libep.so")) != ()
    assert fact_differences(old, with_library("/opt/ep/libep.so")) == (
        "plugin.library: /a/lib/python3.11/site-packages/ep/libep.so -> /opt/ep/libep.so",
    )


def test_what_an_unavailable_target_lacks_is_no_change() -> None:
    assert fact_differences(NPU, {"onnxruntime": "1.33.0", "unavailable": "no device"}) == (
        "onnxruntime: 1.32.0 -> 1.33.0",
    )
