"""The totals of a run, and the lines about them on the terminal."""

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from harness.cli.progress import Progress
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.records.cell import Cell
from harness.core.records.cell_end import CellEnd
from harness.core.records.record import Record
from harness.core.records.run_info import ShardInfo
from harness.core.records.run_work import Unchecked
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_UNEXPECTED
from harness.core.text.visible_text import WIDTH
from harness.plan.baselines import Baseline
from harness.plan.plan import Plan
from harness.plan.where import Where
from harness.run.run_summary import remarks, totals_table
from harness.run.tally import Tally, TargetTotals
from tests.kit import bare_record, plan_of

MODELS = ("a.onnx", "b.onnx", "c.onnx")
RETRIES = {"a.onnx": (Verdict.MISMATCH, Verdict.PASS), "b.onnx": (Verdict.MISMATCH,), "c.onnx": ()}


@pytest.fixture
def plan() -> Plan:
    tables = {
        "schema": 1,
        "models": {"folders": ["m"]},
        "target": [{"name": name, "provider": "CPUExecutionProvider"} for name in ("cpu", "npu")],
    }
    return plan_of(tables, {"m": MODELS})


def record(cell: Cell, verdict: Verdict, **fields: Any) -> Record:
    return bare_record(cell.model, verdict, cell=cell.id, suite=cell.suite, target=cell.target, **fields)


@pytest.fixture
def tally(plan: Plan) -> Tally:
    """Everything is right on ``cpu``; on ``npu`` two models fail, the first passes when tried again."""
    tally = Tally(plan)
    for cell in plan.cells:
        retries = RETRIES[cell.model] if cell.target == "npu" else ()
        verdict = Verdict.MISMATCH if retries else Verdict.PASS
        tally.add(record(cell, verdict, expected=not retries, retries=retries))
    return tally


def row(flaky: int) -> TargetTotals:
    return TargetTotals(target="t", planned=flaky, unexpected=flaky, flaky=flaky)


def test_a_flaky_cell_is_failed_and_counted_apart(tally: Tally) -> None:
    cpu, npu = tally.rows()
    assert (cpu.flaky, npu.flaky) == (0, 1)
    assert npu.families == {Family.FAILED: 2, Family.PASSED: 1}
    assert npu.unexpected == 2
    assert tally.exit_code() == EXIT_UNEXPECTED


def test_excluded_cells_alone_are_no_success(plan: Plan) -> None:
    tally = Tally(plan)
    for cell in plan.cells:
        verdict = Verdict.INVALID_MODEL if cell.target == "cpu" else Verdict.UNAVAILABLE
        tally.add(record(cell, verdict, expected=True, cause="no_device"))
    assert tally.exit_code() == EXIT_INCOMPLETE
    assert [*remarks(tally.rows())] == [
        ("no evidence", "cpu: no cell was judged: 3 invalid_model"),
        ("invalid_model", "m/a.onnx, m/b.onnx, m/c.onnx"),
    ]


@pytest.mark.parametrize(
    ("silent", "required", "how", "without"),
    [
        (("npu",), "", "", ("npu",)),
        (("npu",), "", "named", ("npu",)),
        (("cpu",), "", "", ()),
        (("cpu",), "cpu", "", ("cpu",)),
        (("npu",), "cpu", "", ("npu",)),
        (("npu", "gpu"), "", "", ("npu", "gpu")),
        (("npu",), "gpu", "", ()),  # another provider was judged
        (("gpu",), "gpu", "", ("gpu",)),
        (("gpu",), "", "named", ("gpu",)),
        ((), "", "named", ()),
    ],
)
@pytest.mark.parametrize("verdict", [Verdict.UNAVAILABLE, Verdict.TIMEOUT, Verdict.NO_GOLDEN])
def test_a_run_without_evidence_is_no_success(
    verdict: Verdict, silent: tuple[str, ...], required: str, how: str, without: tuple[str, ...]
) -> None:
    targets = ["cpu", "npu", *(["gpu"] if "gpu" in (*silent, required) else [])]
    table = {
        "schema": 1,
        "models": {"folders": ["m"]},
        "target": [
            {
                "name": name,
                "provider": "CPUExecutionProvider" if name == "cpu" else "CUDAExecutionProvider",
                "required": name == required,
            }
            for name in targets
        ],
    }
    plan = plan_of(table)
    tally = Tally(plan, named=how == "named")
    for cell in plan.cells:
        tally.add(record(cell, verdict if cell.target in silent else Verdict.PASS, expected=True))
    assert tally.without_evidence() == without
    assert tally.exit_code() == (EXIT_INCOMPLETE if without else EXIT_OK)
    share = Tally(msgspec.structs.replace(plan, shard=ShardInfo(index=1, count=2, plan="p", cells=9)))
    assert share.without_evidence() == ()


def test_one_judged_cell_is_evidence(plan: Plan) -> None:
    tally = Tally(plan)
    for cell in plan.cells:
        judged = cell == plan.cells[0]
        tally.add(record(cell, Verdict.UNSUPPORTED if judged else Verdict.NO_INPUT, expected=True))
    assert tally.exit_code() == EXIT_OK
    assert [*remarks(tally.rows())] == [
        ("no evidence", "npu: no cell was judged: 3 no_input"),
        ("no_input", "m/a.onnx, m/b.onnx, m/c.onnx"),
    ]


def test_the_line_counts_over_all_targets() -> None:
    assert [*remarks([row(0), row(0)])] == []
    assert [*remarks([row(1)])] == [("flaky", "1 cell with another verdict on a retry; counted as failed")]
    assert [*remarks([row(2), row(1)])] == [
        ("flaky", "3 cells with another verdict on a retry; counted as failed")
    ]


def test_the_line_counts_measured_cells_over_all_targets() -> None:
    timed = [msgspec.structs.replace(row(0), timed=count) for count in (1, 2)]
    assert [*remarks(timed[:1])] == [("latency", "1 cell measured")]
    assert [*remarks(timed)] == [("latency", "3 cells measured")]
    many = msgspec.structs.replace(row(0), timed=10_000, disturbed=10_000)
    assert [*remarks([many])] == [("latency", "10,000 cells measured, 10,000 disturbed by other programs")]
    assert len(f"latency      {next(remarks([many]))[1]}") <= WIDTH


def test_the_line_counts_cells_without_a_check(plan: Plan) -> None:
    tally = Tally(plan)
    left = (Unchecked(check="second run", because="it works too much"),)
    for cell in plan.cells:
        tally.add(record(cell, Verdict.PASS, expected=True, unchecked=left if cell.model == "a.onnx" else ()))
    assert [*remarks(tally.rows()[:1])] == [
        ("not checked", "1 cell without a second run or another check; records say why")
    ]
    many = msgspec.structs.replace(row(0), unchecked=10_000)
    assert len(f"not checked  {next(remarks([many]))[1]}") <= WIDTH


def test_the_line_counts_cells_judged_by_noise(plan: Plan) -> None:
    rows = [msgspec.structs.replace(row(0), by_noise=100_000, without_noise=100_000)]
    assert [*remarks(rows)] == [("noise", "100,000 cells judged by rounding noise, 100,000 without noise")]
    assert len(f"noise        {next(remarks(rows))[1]}") <= WIDTH
    tally = Tally(plan)
    noise = Noise(precision="float32", rms=1.2, max=7.0)
    limited = msgspec.structs.replace(noise, rms_limit=4.0, max_limit=32.0)
    outputs = {"a.onnx": limited, "b.onnx": noise, "c.onnx": None}
    for cell in plan.cells:
        row_of = OutputMetrics(name="y", dtype="float32", shape=(), noise=outputs[cell.model])
        no_spread = "no float output" if cell.model == "c.onnx" else ""
        tally.add(record(cell, Verdict.PASS, expected=True, outputs=(row_of,), no_spread=no_spread))
    assert [*remarks(tally.rows())] == [("noise", "2 cells judged by rounding noise, 2 without noise")]
    assert [*remarks(tally.rows()[:1])] == [("noise", "1 cell judged by rounding noise, 1 without noise")]


def test_the_summary_has_it_after_the_table_within_80_columns(tally: Tally) -> None:
    shown = io.StringIO()
    Progress(tally, Console(file=shown, width=80)).summary(tally)
    lines = shown.getvalue().splitlines()
    assert lines[:3] == totals_table(tally.rows())
    assert lines[3] == "flaky        1 cell with another verdict on a retry; counted as failed"
    assert len(f"flaky        {next(remarks([row(100_000)]))[1]}") <= WIDTH
    assert lines[4] == "unexpected   2 cells"


def test_a_long_reason_is_wrapped_on_a_terminal_only(tally: Tally) -> None:
    reason = "not_installed: a package, the name of which is " + "x" * 60 + ", is not installed there"
    texts = {}
    for terminal in (False, True):
        shown = io.StringIO()
        Progress(tally, Console(file=shown, width=60, force_terminal=terminal)).explain("unavailable", reason)
        texts[terminal] = shown.getvalue()
    assert texts[False] == f"unavailable  {reason}\n"
    assert texts[True] == (
        "unavailable  not_installed: a package, the name of which is\n"
        f"             {'x' * 60},\n"
        "             is not installed there\n"
    )


def test_what_baselines_know_is_counted_and_what_is_mended_is_told(plan: Plan) -> None:
    """On ``cpu`` a baseline knows two failures, one of which is gone; ``npu`` has none."""
    failures = {Verdict.MISMATCH: ("m/a.onnx[cpu]", "m/b.onnx[cpu]"), Verdict.CRASH: ("m/gone.onnx[cpu]",)}
    known = Baseline(
        file="b.toml",
        target="cpu",
        provider="CPUExecutionProvider",
        where=Where(os=("linux",)),
        failures=failures,
    )
    compared = msgspec.structs.replace(plan, matrix=msgspec.structs.replace(plan.matrix, baselines=(known,)))
    tally = Tally(compared)
    for target in ("cpu", "npu"):
        tally.ready(target, {"platform": "Linux-6"})
    for cell in compared.cells:
        fails = cell.model != "b.onnx"
        known_here = cell.model == "a.onnx" or cell.target == "npu"
        verdict = Verdict.MISMATCH if fails else Verdict.PASS
        tally.add(record(cell, verdict, expected=not fails or known_here))
    assert [*remarks(tally.rows())] == [
        ("baseline", "cpu: b.toml fits: linux; 1 known failure"),
        ("mended", "1 known failure of cpu no longer there: m/b.onnx[cpu]"),
        ("first run", "npu: first run on this kind of machine: nothing to compare; 2 cells failed"),
    ]
    assert (tally.unexpected, tally.exit_code()) == (1, EXIT_UNEXPECTED)
    # A cell that was not judged is neither mended nor known.
    again = Tally(compared)
    again.ready("cpu", {"platform": "Linux-6"})
    for cell in compared.cells:
        again.add(record(cell, Verdict.UNAVAILABLE, expected=True, cause="no_device"))
    assert [(row.known, row.mended) for row in again.rows()] == [(0, ()), (0, ())]
    assert again.exit_code() == EXIT_INCOMPLETE


def test_a_feature_that_the_device_lacks_is_one_line(plan: Plan) -> None:
    tally = Tally(plan)
    ended = CellEnd(how="raised", message="Program Cast requires f16", lacks="f16")
    for cell in plan.cells:
        tally.add(record(cell, Verdict.ERROR, expected=False, ended=ended))
    told = [line for word, line in remarks(tally.rows()) if word == "lacks"]
    cells = len(MODELS)
    assert [line.partition(";")[0] for line in told] == [
        f"{target}: the device lacks f16: {cells} cells need it" for target in ("cpu", "npu")
    ]
