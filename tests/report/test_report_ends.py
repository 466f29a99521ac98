"""Ends of processes and simulated devices, in every format of the report."""

import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from harness.core.records.run_info import RunInfo, TargetExit
from harness.core.records.verdict import Phase, Verdict
from harness.plan.expectation import ALL_CLEAN, Expectation
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.selector import Selector
from harness.plan.target import Target
from harness.report.changes.diff import compare_merged
from harness.report.changes.gate import GateLimits, judge_changes
from harness.report.formats.badge import badges
from harness.report.formats.json_report import ReportFile, to_json
from harness.report.formats.junit import to_junit
from harness.report.formats.markdown import to_markdown
from harness.report.formats.rows import cell_rows, target_rows
from harness.report.runs.merge import merge
from harness.report.runs.read import RunData
from harness.report.runs.record_claims import Derived
from harness.report.view import Report, build_report
from tests.kit import record, site

DIED = TargetExit(
    ended=3, unclean=1, phase=Phase.UNLOAD, cause="SIGSEGV", reason="a process died: SIGSEGV", expected=True
)
"""As a run folder may claim it."""

SWIFTSHADER = "SwiftShader Device (Subzero)"


def matrix(*, known: bool = False) -> Matrix:
    entry = Expectation(selector=Selector(target=("npu",)), verdicts=(Verdict.UNCLEAN_EXIT,), reason="known")
    return Matrix(
        path="m.toml",
        schema=1,
        models=ModelSelection(suites=("onnx-node",)),
        targets=(
            Target(name="npu", provider=("NpuExecutionProvider",)),
            Target(name="gpu", provider=("WebGpuExecutionProvider",)),
        ),
        expect=(entry,) if known else (),
    )


def info(exits: dict[str, TargetExit], *, known: bool = False) -> RunInfo:
    devices: list[object] = [{"device": {"type": "CPU", "description": SWIFTSHADER}}]
    return RunInfo(
        schema=1,
        plan="",
        cells=2,
        matrix=msgspec.to_builtins(matrix(known=known)),
        targets={"npu": {}, "gpu": {"devices": devices}},
        complete=True,
        exits=exits,
    )


@pytest.mark.parametrize(
    ("told", "known", "expected", "reason"),
    [
        (DIED, False, False, DIED.reason),
        (DIED, True, True, DIED.reason),
        (TargetExit(ended=2), False, True, ""),
        (TargetExit(ended=2), True, False, ALL_CLEAN),
    ],
)
def test_what_is_expected_is_derived_from_the_matrix(
    told: TargetExit, *, known: bool, expected: bool, reason: str
) -> None:
    found = Derived(info({"npu": told, "stranger": DIED}, known=known), None).exits()
    assert found.keys() == {"npu"}
    one = found["npu"]
    assert (one.expected, one.reason) == (expected, reason)
    assert one.verdict == (Verdict.UNCLEAN_EXIT if told.unclean else None)


def test_which_devices_are_simulated_is_derived_from_the_environment() -> None:
    assert Derived(info({}), None).simulated() == {"gpu": SWIFTSHADER}


def report(*, known: bool = False) -> Report:
    about = info({"npu": DIED, "gpu": TargetExit(ended=1)}, known=known)
    derived = Derived(about, None)
    records = (record(target="npu"), record(target="gpu", provider="WebGpuExecutionProvider"))
    run = RunData(
        folder=Path("run"),
        info=msgspec.structs.replace(about, exits=derived.exits()),
        records=records,
        torn=False,
        simulated=derived.simulated(),
    )
    return build_report(merge([run]), lambda *_: "", {})


@pytest.mark.parametrize("known", [False, True])
def test_ends_and_simulated_devices_are_in_every_format(tmp_path: Path, *, known: bool) -> None:
    found = report(known=known)
    targets, cells = target_rows(found), [*cell_rows(found.run)]
    markdown = to_markdown(found, targets)
    assert f"| `npu` | unclean exit | `{DIED.reason}` | {'yes' if known else '**no**'} | 1 | 3 |" in markdown
    assert "`gpu` (simulated)" in markdown
    assert f"*Simulated*: `gpu` runs on `{SWIFTSHADER}`" in markdown
    whole = msgspec.json.decode(to_json(found, targets, cells), type=ReportFile)
    assert whole.exits["npu"].verdict is Verdict.UNCLEAN_EXIT
    assert [(row.target, row.exit, row.exit_expected, row.simulated) for row in whole.targets] == [
        ("npu", Verdict.UNCLEAN_EXIT, known, ""),
        ("gpu", None, True, SWIFTSHADER),
    ]
    suites = {one.get("name"): one for one in ET.fromstring("".join(to_junit(found, targets, cells)))}  # noqa: S314
    (end,) = (case for case in suites["npu"].iter("testcase") if case.get("name") == "exit")
    assert (end.find("failure") is None, end.find("skipped") is None) == (known, not known)
    assert suites["npu"].get("failures") == ("0" if known else "1")
    properties = {one.get("name"): one.get("value") for one in suites["gpu"].iter("property")}
    assert properties["simulated"] == SWIFTSHADER
    assert [case.get("name") for case in suites["gpu"].iter("testcase")] == ["onnx-node/test_abs[gpu]"]
    (badge, whole_badge) = (dict(badges(found, targets))[name] for name in ("badges/gpu.json", "badge.json"))
    assert badge.label == f"gpu ({SWIFTSHADER}, simulated)"
    assert whole_badge.color == ("green" if known else "red")
    page = site(tmp_path, found)["index.html"]
    assert "Unclean exit</strong> of npu" in page
    assert DIED.reason in page
    assert f"gpu ({SWIFTSHADER})" in page
    assert ("Every recorded verdict is as the matrix expects" in page) is known


@pytest.mark.parametrize(
    ("before", "known", "count"),
    [
        ({"npu": TargetExit(ended=1)}, False, 1),
        ({"npu": TargetExit(ended=1)}, True, 0),
        ({"npu": DIED}, False, 0),
        ({}, False, 0),  # an older version did not look
    ],
)
def test_a_gate_fails_where_the_ends_of_a_target_have_become_unclean(
    before: dict[str, TargetExit], *, known: bool, count: int
) -> None:
    old, new = report().run, report(known=known).run
    diff = compare_merged(msgspec.structs.replace(old, exits=before), new, names=("old", "new"))
    breaches = {one.limit: one for one in judge_changes(diff, GateLimits(), lambda _: "").breaches}
    assert ("unclean_exit" in breaches) is bool(count)
    if count:
        assert breaches["unclean_exit"].cells == (f"npu: {DIED.reason}",)
        assert judge_changes(diff, GateLimits(unclean_exit=1), lambda _: "").passed
