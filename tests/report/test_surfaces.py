"""One word for each target and surface of onnxruntime's API, and the page that shows them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.records.record import Record
from harness.core.records.scenario import NOT_IN_RUNTIME, SCENARIOS
from harness.core.records.selection_study import (
    POLICIES_FILE,
    ChosenProvider,
    OfferedDevice,
    SelectionAnswer,
    SelectionFile,
    SelectionStudy,
)
from harness.core.records.verdict import Verdict
from harness.report.pages.surfaces import SurfaceAnswer, surface_rows
from harness.report.runs.compiled_grid import compiled_grid
from harness.report.runs.merge import merge
from harness.report.runs.read import RunData, read_run
from harness.report.view import build_report
from tests.kit import merged, record, run_of, site, write_run

BOUND = {"scenario": "io_binding"}


def in_binding(model: str, verdict: Verdict, reason: str = "", **fields: Any) -> Record:
    return record(model, verdict, axes=BOUND, reason=reason, **fields)


def _site(tmp_path: Path, records: list[Record]) -> dict[str, str]:
    return site(tmp_path, build_report(merged(records), lambda _folder, _record: "", {}))


def answer(*records: Record) -> tuple[SurfaceAnswer, str]:
    (found,) = (row for row in surface_rows(records) if row.scenario == "io_binding")
    return found.answer, found.told


def test_every_scenario_names_its_surface() -> None:
    surfaces = [scenario.surface for scenario in SCENARIOS.values()]
    assert all(surfaces)
    assert len(set(surfaces)) == len(surfaces)


def test_one_wrong_model_makes_a_surface_wrong() -> None:
    found = answer(
        record("a"), in_binding("a", Verdict.PASS), in_binding("b", Verdict.MISMATCH, "off by 3; limit 1")
    )
    assert found == ("wrong", "1 of 2 models wrong: mismatch, b: off by 3")


def test_a_model_that_fails_plainly_does_not_speak_against_a_surface() -> None:
    plain = record("a", Verdict.MISMATCH, reason="off by 3")
    assert answer(plain, in_binding("a", Verdict.MISMATCH, "off by 3")) == (
        "not tried",
        "1 fail as in plain runs",
    )
    assert answer(plain, in_binding("a", Verdict.MISMATCH), in_binding("b", Verdict.PASS)) == (
        "ok",
        "1 of 2 models right; 1 fail as in plain runs",
    )


def test_an_error_of_a_plain_run_is_not_the_surface_whichever_model_has_it() -> None:
    error = "EPFail: Failed to finalize graph 'g7', Code: 1002"
    plain = record("a", Verdict.ERROR, reason=error)
    assert answer(plain, in_binding("b", Verdict.ERROR, error.replace("g7", "g8")))[0] == "not tried"
    assert answer(plain, in_binding("b", Verdict.ERROR, "EPFail: cannot bind"))[0] == "wrong"


def test_numbers_have_no_cause_that_excuses_another_model() -> None:
    plain = record("a", Verdict.MISMATCH, reason="off by 3")
    assert answer(plain, in_binding("b", Verdict.MISMATCH, "off by 3"))[0] == "wrong"


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([in_binding("a", Verdict.UNSUPPORTED, "no strings")], "refused"),
        ([in_binding("a", Verdict.UNSUPPORTED, "1.15 has none", cause=NOT_IN_RUNTIME)], "not there"),
        ([in_binding("a", Verdict.DECLARED, "it has no input")], "not tried"),
        ([in_binding("a", Verdict.UNAVAILABLE, "no device")], "not tried"),
        ([in_binding("a", Verdict.NO_GOLDEN, "the CPU EP refuses it")], "not tried"),
        ([in_binding("a", Verdict.FALLBACK)], "untested"),
        ([in_binding("a", Verdict.FALLBACK), in_binding("b", Verdict.PASS)], "ok"),
        ([in_binding("a", Verdict.UNSUPPORTED, "x"), in_binding("b", Verdict.CRASH)], "wrong"),
    ],
)
def test_words(records: list[Record], expected: str) -> None:
    assert answer(*records)[0] == expected


def test_what_was_not_run_is_never_ok() -> None:
    for verdict in Verdict:
        word, _ = answer(in_binding("a", verdict))
        assert (word == "ok") == (verdict in {Verdict.PASS, Verdict.PASS_PARTIAL})


def test_page_shows_each_target_and_escapes_reasons(tmp_path: Path) -> None:
    records = [
        record("a"),
        record("a", target="gpu"),
        in_binding("a", Verdict.ERROR, "<b>no</b>"),
        in_binding("a", Verdict.PASS, target="gpu"),
    ]
    page = _site(tmp_path, records)["api.html"]
    assert "run_with_iobinding" in page
    assert "✗ wrong" in page
    assert "✓ ok" in page
    assert "&lt;b&gt;no" in page
    assert "<b>no" not in page


def test_a_report_of_plain_runs_has_no_such_page(tmp_path: Path) -> None:
    assert "api.html" not in _site(tmp_path, [record("a")])


def _page_of(tmp_path: Path, *contents: bytes) -> str:
    """Return the page of a report of runs with these files of policies."""
    folders = [write_run(tmp_path / f"run{index}", [record("a")]) for index in range(len(contents))]
    for folder, content in zip(folders, contents, strict=True):
        (folder / POLICIES_FILE).write_bytes(content)
    report = build_report(merge([read_run(folder) for folder in folders]), lambda _folder, _record: "", {})
    return site(tmp_path, report).get("api.html", "")


def _policies(machine: str, *answers: SelectionAnswer, **fields: Any) -> bytes:
    study = SelectionStudy(machine=machine, answers=answers, **fields)
    return msgspec.json.encode(SelectionFile(studies=(study,)))


def test_the_page_shows_what_each_policy_chooses_on_each_machine(tmp_path: Path) -> None:
    npu = OfferedDevice(provider="MyEP", type="NPU", device="NPU 1 of <b>X</b>")
    chosen = SelectionAnswer(policy="PREFER_NPU", chosen=(ChosenProvider(provider="MyEP", devices=(npu,)),))
    died = SelectionAnswer(policy="PREFER_NPU", failed="SIGSEGV at create")
    page = _page_of(
        tmp_path,
        _policies("Processor A", chosen, libraries={"MyEP": ""}),
        _policies("Processor B", died, libraries={"MyEP": "", "Other": "it offers no device here"}),
    )
    assert "✓ NPU 1 of &lt;b&gt;X&lt;/b&gt; by MyEP" in page
    assert "✗ no session" in page
    assert "SIGSEGV at create" in page
    assert page.index("Processor A") < page.index("Processor B")
    assert "Other takes no part: it offers no device here" in page


def test_the_page_shows_which_compiled_models_load_under_which_versions(tmp_path: Path) -> None:
    """Runs of two versions count each, also where their records are equal."""

    def run(runtime: str, version: str, *verdicts: Verdict) -> RunData:
        axes = {"scenario": "ep_context"}
        records = [record(f"m{at}", verdict, axes=axes) for at, verdict in enumerate(verdicts)]
        environment: dict[str, object] = {"onnxruntime": runtime, "plugin": {"version": version}}
        return run_of(records, folder=runtime + version, targets={records[0].target: environment})

    passed, failed = Verdict.PASS, Verdict.ERROR
    runs = [run("1.24.4", "2.1", passed), run("1.32.0", "2.1", passed, failed), run("1.32.0", "2.2", passed)]
    whole = merge(runs)
    provider = whole.records[0][1].provider
    grid = compiled_grid(whole.compiled)
    assert grid is not None
    assert grid.runtimes == ("1.24.4", "1.32.0")
    told = {name: [cell.told if cell else "" for cell in cells] for name, cells in grid.lines}
    assert told == {
        f"{provider} 2.1": ["1 of 1 load", "1 of 2 load"],
        f"{provider} 2.2": ["", "1 of 1 load"],
    }
    page = site(tmp_path, build_report(whole, lambda _folder, _record: "", {}))["api.html"]
    assert "✗ 1 of 2 load" in page
    assert "onnxruntime 1.24.4" in page


def test_policies_that_cannot_be_read_cost_their_table_alone(tmp_path: Path) -> None:
    for content in (b"{", b"[]", b'{"schema":2,"studies":[]}'):
        folder = write_run(tmp_path / f"run{len(content)}", [record("a")])
        (folder / POLICIES_FILE).write_bytes(content)
        run = read_run(folder)
        assert (run.policies, len(run.records)) == ((), 1)
        assert f"{POLICIES_FILE}: not shown: " in run.told[-1]
