"""Every format has the same numbers, and no text of a model or provider has an effect in any format."""

import csv
import errno
import io
import json
import os
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import UsageError
from harness.report.formats.json_report import ReportFile
from harness.report.formats.schemas import report_schema
from harness.report.pages.operator_pages import documented_operators
from harness.report.report_files import FORMATS, write_report
from harness.report.runs.merge import merge
from harness.report.runs.read import captured_output, read_run
from harness.report.view import Report, build_report
from harness.report.words.inert import code, inert_csv
from tests.kit import matrix_of, record, with_facts, write_run

EVIL = "</script><img src=x onerror=alert(1)>"
EVIL_TEXTS = (
    EVIL,
    "=cmd|'/C calc'!A0",
    "@octocat [x](javascript:alert(1)) `a` | b \\| <b> ]]> &amp; ![i](http://x/y.png)",
    "-- \x07\x1b[31m\x00 \u202e \u2028 \ufffe \x85 ::error::x ##[error]y",
)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    records = [
        record("right", bits=20.0, op="MatMul"),
        record("part", verdict=Verdict.PASS_PARTIAL),
        record("cpu", verdict=Verdict.FALLBACK),
        record("no", verdict=Verdict.UNSUPPORTED, reason="no kernel"),
        record("wrong", verdict=Verdict.MISMATCH, bits=2.0, reason="3 of 12 elements differ"),
        record("known", verdict=Verdict.CRASH, cause="SIGSEGV", expected=True, reason="died in create"),
        record("mended", expected=False, reason="expected crash"),
        record("bad", verdict=Verdict.INVALID_MODEL),
        record("shaky", verdict=Verdict.ERROR, retries=(Verdict.PASS,)),
        record("right", target="gpu", verdict=Verdict.UNAVAILABLE, cause="no_device", reason="no GPU"),
        record("half", axes={"precision": "ep:fp16"}, bits=11.0),
    ]
    known = [with_facts(each) for each in records]
    matrix = matrix_of(known, "matrices/local.toml", required=["gpu"])
    return write_run(tmp_path / "run", known, missing=["onnx-node/absent[npu]"], matrix=matrix)


def view(folder: Path) -> Report:
    return build_report(merge([read_run(folder)]), captured_output, documented_operators())


def test_the_same_numbers_everywhere(run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_report([run_folder], out, list(FORMATS))
    report = view(run_folder)
    expected = {
        row.column.label: {
            "cells": row.cells,
            "tried": row.tried,
            "passed": row.by_ep.count,
            "passed_in_part": row.partly.count,
            "weak": row.weak.count,
            "untested": row.untested.count,
            "unsupported": row.unsupported.count,
            "failed": row.failed.count,
            "excluded": row.excluded,
            "skipped": row.skipped,
            "not_run": row.missing,
        }
        for row in report.summary
    }
    assert expected["npu"] == {
        "cells": 10,
        "tried": 8,
        "passed": 2,
        "passed_in_part": 1,
        "weak": 0,
        "untested": 1,
        "unsupported": 1,
        "failed": 3,
        "excluded": 1,
        "skipped": 0,
        "not_run": 1,
    }
    assert set(expected) == {"npu", "gpu", "npu · precision=ep:fp16"}
    told = json.loads((out / "report.json").read_bytes())
    tables = csv_rows(out / "targets.csv")
    for label, figures in expected.items():
        from_json = next(row for row in told["targets"] if row["label"] == label)
        from_csv = next(row for row in tables if row["label"] == label)
        from_markdown = markdown_row(out / "report.md", label)
        assert {key: from_json[key] for key in figures} == figures
        assert {key: int(from_csv[key]) for key in figures} == figures
        assert from_markdown == figures
        counted = [
            recount(cell["verdict"] for cell in cells if cell["label"] == label)
            for cells in (told["cells"], csv_rows(out / "cells.csv"))
        ]
        assert counted == [figures, figures]
    totals = {"planned": 12, "recorded": 11, "not_run": 1, "unexpected": 3, "flaky": 1}
    assert {key: told[key] for key in totals} == totals
    assert (
        report.run.planned,
        report.recorded,
        report.not_run,
        report.unexpected,
        len(report.flaky),
    ) == tuple(totals.values())
    assert not told["complete"]
    head = (out / "report.md").read_text("utf-8")
    assert "**INCOMPLETE: 1 not run**. 12 cells planned, 11 with a result, " in head
    assert "3 failed, 3 unexpected, 1 flaky." in head
    suites = parsed(out / "junit.xml")
    assert suites.get("tests") == "12"
    assert {s.get("name"): int(s.get("tests", "")) for s in suites} == {
        label: figures["cells"] for label, figures in expected.items()
    }
    badge = json.loads((out / "badge.json").read_bytes())
    assert badge["message"] == "4 of 9 (44.4%) pass, 3 fail, 1 not run"
    assert badge["color"] == "red"
    page = (out / "index.html").read_text("utf-8")
    assert "INCOMPLETE" in page


def test_junit_outcomes(run_folder: Path, tmp_path: Path) -> None:
    write_report([run_folder], tmp_path / "out", ["junit"])
    found = {
        case.get("name"): (case[1].tag, case[1].get("message")) if len(case) > 1 else ("passed", None)
        for case in parsed(tmp_path / "out" / "junit.xml").iter("testcase")
    }
    assert found == {
        "onnx-node/right[npu]": ("passed", None),
        "onnx-node/part[npu]": ("passed", None),
        "onnx-node/half[npu,precision=ep%3Afp16]": ("passed", None),
        "onnx-node/cpu[npu]": (
            "skipped",
            "fallback: right answer, but no node ran on the EP, or less than a tenth of the work",
        ),
        "onnx-node/no[npu]": ("skipped", "unsupported: no kernel"),
        "onnx-node/bad[npu]": (
            "skipped",
            "invalid_model: onnx's checker, or ONNX's text, forbids the model; or the file is no model",
        ),
        "onnx-node/known[npu]": ("skipped", "expected failure (known): crash (SIGSEGV): died in create"),
        "onnx-node/wrong[npu]": ("failure", "mismatch: 3 of 12 elements differ"),
        "onnx-node/shaky[npu]": ("failure", "error: the EP raised an error where the CPU EP works"),
        "onnx-node/mended[npu]": ("failure", "unexpected pass: expected crash"),
        "onnx-node/absent[npu]": ("error", "not_run: planned, but the run has no result for it"),
        # Required, so that it must not look like a test that was merely skipped.
        "onnx-node/right[gpu]": ("failure", "unavailable (no_device): no GPU"),
    }


def test_an_incomplete_run_never_shows_all_of_anything(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record("a"), record("b")], missing=["onnx-node/c[npu]"])
    write_report([run], tmp_path / "out", list(FORMATS))
    for path in (tmp_path / "out").rglob("*.*"):
        if path.suffix != ".html":
            assert "100%" not in path.read_text("utf-8"), path
    assert json.loads((tmp_path / "out" / "badges" / "npu.json").read_bytes()) == {
        "schemaVersion": 1,
        "label": "npu",
        "message": "2 of 2 (all so far) pass, 1 not run",
        "color": "orange",
    }


def test_badges_of_targets_that_differ_in_case_only(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run", [record("a", target=name) for name in ("NPU", "npu", "../x", "...", "n p u")]
    )
    write_report([run], tmp_path / "out", ["badge"])
    badges = [path.name for path in (tmp_path / "out" / "badges").iterdir()]
    assert len({name.casefold() for name in badges}) == 10
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(json|svg)", name) for name in badges)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"badge.json", "badge.svg", "badges"}
    assert ET.parse(tmp_path / "out" / "badge.svg").getroot().get("role") == "img"  # noqa: S314 - of our own


@pytest.mark.parametrize("evil", EVIL_TEXTS)
def test_hostile_names_and_messages_are_inert(evil: str, tmp_path: Path) -> None:
    records = [
        record(evil, target=evil, op=evil, provider=evil, suite=evil, reason=evil, expected=False),
        record("b", verdict=Verdict.ERROR, cause=evil, reason=evil, axes={"option.x": evil}),
        record("c", target="t", verdict=Verdict.UNAVAILABLE, cause=evil, reason=evil),
    ]
    run = write_run(tmp_path / "run", records, targets={evil: {evil: evil}})
    out = tmp_path / "out"
    write_report([run], out, list(FORMATS))
    for path in (path for path in out.rglob("*") if path.is_file()):
        text = path.read_text("utf-8-sig")
        assert not re.search(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\x85\u2028\u202e\ufffe]", text), path
        if path.suffix in {".html", ".xml", ".json"}:
            assert "<img" not in text, path
    for name in ("targets.csv", "cells.csv"):
        for row in csv_rows(out / name):
            assert not any(value.startswith(("=", "+", "@")) for value in row.values())
            assert not any(re.match(r"-[^0-9]", value) for value in row.values())
    parsed(out / "junit.xml")
    markdown_is_inert((out / "report.md").read_text("utf-8"))
    told = msgspec.json.decode((out / "report.json").read_bytes(), type=ReportFile)
    assert told.cells[0].model == evil


@given(
    st.text(alphabet=st.sampled_from("`|\\<>[]()!*_~&;:@#-=+ ax1\n\t\"'"), max_size=30) | st.text(max_size=30)
)
def test_nothing_in_code_is_interpreted(text: str) -> None:
    """As CommonMark with tables reads it."""
    reader = MarkdownIt("commonmark").enable("table")
    tokens = reader.parse(f"| a | b |\n|---|---|\n| {code(text)} | end |")
    cells = [tokens[index + 1] for index, token in enumerate(tokens) if token.type == "td_open"]
    assert len(cells) == 2
    assert cells[1].content == "end"
    found = [(child.type, child.content) for child in cells[0].children or ()]
    kinds = [kind for kind, _ in found]
    assert kinds in ([], ["code_inline"], ["html_inline", *["text"] * (len(found) - 2), "html_inline"])
    if kinds and kinds[0] == "html_inline":
        assert (found[0][1], found[-1][1]) == ("<code>", "</code>")


def test_code_in_markdown() -> None:
    assert code("onnx-node/test_abs[cpu]") == "`onnx-node/test_abs[cpu]`"
    assert code("a|b") == "<code>a&#124;b</code>"
    assert code("`<b>`") == "<code>&#96;&#60;b&#62;&#96;</code>"
    assert code("") == ""


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", " =1", "＝1", "\r\n=1"])  # noqa: RUF001
def test_no_text_is_a_formula(text: str) -> None:
    assert inert_csv(text)[0] in "'\\"


def test_an_unknown_format_is_reported(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'markdown'"):
        write_report([run_folder], tmp_path, ["html", "markdwon"])


def test_a_cell_in_conflict_has_no_result_among_the_changes(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "one", [record("a")]),
        write_run(tmp_path / "two", [record("a", verdict=Verdict.CRASH)]),
    ]
    (page,) = write_report(runs, tmp_path / "out", ["html"], baseline=runs[0])
    text = (page.parent / "changes.html").read_text("utf-8")
    assert 'Gone <span class="count">1</span>' in text
    assert "its runs hold different results: pass in one, crash in two" in text


def test_conflicts_stand_in_every_format(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "one", [record("a")]),
        write_run(tmp_path / "two", [record("a", verdict=Verdict.CRASH)]),
    ]
    out = tmp_path / "out"
    write_report(runs, out, list(FORMATS))
    for name in ("index.html", "report.md", "report.json", "junit.xml"):
        assert "CONFLICT" in (out / name).read_text("utf-8"), name
    for name in ("targets.csv", "cells.csv"):
        assert {row["target"] for row in csv_rows(out / name)} == {"npu @ one", "npu @ two"}
    assert {path.name for path in (out / "badges").glob("*.json")} == {"npu-one.json", "npu-two.json"}


def test_markdown_has_the_first_conflicts_and_tells_the_others(tmp_path: Path) -> None:
    models = [f"m{number:02}" for number in range(28)]
    crashed = [record(model, verdict=Verdict.CRASH) for model in models]
    write_report(
        [write_run(tmp_path / "one", [*map(record, models)]), write_run(tmp_path / "two", crashed)],
        tmp_path / "out",
        ["markdown"],
    )
    _, _, conflicts = (tmp_path / "out" / "report.md").read_text("utf-8").partition("## Conflicts: 28 cells")
    conflicts = conflicts.partition("\n## ")[0]
    assert conflicts.count("crash") == 25
    assert conflicts.rstrip().endswith("and 3 more")


def test_the_schema_has_what_a_report_has(run_folder: Path, tmp_path: Path) -> None:
    write_report([run_folder], tmp_path / "out", ["json"])
    told = json.loads((tmp_path / "out" / "report.json").read_bytes())
    schema = report_schema()
    assert set(schema["$defs"]["ReportFile"]["properties"]) == set(told)
    assert set(schema["$defs"]["CellRow"]["required"]) == set(told["cells"][0])


def parsed(path: Path) -> ET.Element:
    return ET.fromstring(path.read_bytes())  # noqa: S314 - just written


def csv_rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))


def recount(verdicts: Iterator[str]) -> dict[str, int]:
    """The figures of a target from the verdicts of its cells alone."""
    words = Counter(map(Verdict, verdicts))
    families: Counter[Family] = Counter()
    for verdict, count in words.items():
        families[verdict.family] += count
    named = {"failed", "unsupported", "untested", "excluded", "skipped"}
    tried = (Family.FAILED, Family.UNSUPPORTED, Family.UNTESTED, Family.PASSED)
    return {
        "cells": words.total(),
        "tried": sum(families[family] for family in tried),
        "passed": words[Verdict.PASS],
        "passed_in_part": words[Verdict.PASS_PARTIAL],
        "weak": 0,
        "not_run": families[Family.MISSING],
        **{family.value: families[family] for family in Family if family.value in named},
    }


def markdown_row(path: Path, label: str) -> dict[str, int]:
    table = path.read_text("utf-8").partition("## Targets")[2].splitlines()
    line = next(line for line in table if line.startswith(f"| `{label}` |"))
    _, _, by_ep, *rest, _ = (part.strip() for part in line.split("|"))
    keys = ["passed_in_part", "weak", "untested", "unsupported", "failed", "tried"]
    keys += ["excluded", "skipped", "not_run", "cells", "approximate", "unconfirmed"]
    share = re.match(r"(\d+) of (\d+)|no data", by_ep)
    assert share
    figures: dict[str, Any] = dict(zip(keys, map(int, rest), strict=True))
    assert int(share[2] or 0) == figures["tried"]
    assert figures.pop("approximate") == figures.pop("unconfirmed") == 0
    return {"passed": int(share[1] or 0), **figures}


def markdown_is_inert(text: str) -> None:
    """Outside code spans and code elements there is nothing but our own words."""
    outside = re.sub(r"<code>[^<`|]*</code>", "", text)
    outside = re.sub(r"`[^`\n|]*`", "", outside)
    assert not re.search(r"[<>@\[\]!`]", outside), outside


def test_a_report_that_cannot_be_completed_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk shows in the new file, before it takes the place of the old one."""
    out = tmp_path / "report"
    write_report([write_run(tmp_path / "old", [record("a")])], out, [*FORMATS])
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    new = write_run(tmp_path / "new", [record("b")])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for name in FORMATS:
        with pytest.raises(UsageError, match="No space left on device"):
            write_report([new], out, [name])
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
