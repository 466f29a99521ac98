"""What to ship leads the overview of user models; squares tell precision, nodes and what is near a limit."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.agreement.agreement import Agreement
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.report.cells.margin import bits_to_spare, is_near_limit, lower_precision
from harness.report.pages.model_grid import model_pages
from harness.report.pages.shipping_overview import shipping_table
from harness.report.view import Report, build_report
from tests.kit import latency, merged, placement_of, record, site

CPU: dict[str, Any] = {"provider": "CPUExecutionProvider"}
FOLDER = {"path": "mine.toml", "models": {"suites": ["onnx-node"], "folders": ["nets"]}}


def output(bits: float | None, delivers: str = "", precision: str = "float32") -> OutputMetrics:
    """Return an output whose error the noise of a delivered precision explains, or else its own."""
    wider = (Noise(precision=delivers, rms=1.0, max=1.0, delivers=delivers),) if delivers else ()
    far = 1e6 if delivers else 1.0
    noise = Noise(precision=precision, rms=far, max=far, like="float16", wider=wider)
    return OutputMetrics(name="y", dtype="float32", shape=(4,), delivered_bits=bits, elements=4, noise=noise)


def report(*records: Record, matrix: dict[str, Any] = FOLDER, **fields: Any) -> Report:
    run = msgspec.structs.replace(merged(list(records)), matrix=matrix, **fields)
    return build_report(run, lambda *_: "", {})


def test_what_to_ship_leads_the_overview_of_own_models(tmp_path: Path) -> None:
    made = report(
        record("test_abs", target="cpu", **CPU),
        record("a.onnx", target="cpu", suite="nets", latency=latency(9.0, host_peak_mib=64.0), **CPU),
        record(
            "a.onnx",
            target="npu",
            suite="nets",
            latency=latency(2.0, host_peak_mib=64.0),
            outputs=(output(6.5, "bfloat16"),),
            agreement=(Agreement(output="y", kind="top1", same=40, of=40),),
        ),
        record("b.onnx", target="npu", verdict=Verdict.CRASH, suite="nets", reason="SIGSEGV <b>"),
    )
    table = shipping_table(made)
    assert table is not None
    assert (table.shipped, table.total, table.timed) == (1, 2, True)
    assert [(model.name, [(row.target, row.answer) for row in model.rows]) for model in table.models] == [
        ("nets/a.onnx", [("cpu", "ship"), ("npu", "ship")]),
        ("nets/b.onnx", [("npu", "do not ship")]),
    ]
    npu = table.models[0].rows[1]
    assert (npu.is_fastest, npu.bits, npu.precision, npu.near) == (True, "6.5", "bf16", False)
    assert (npu.answers, npu.p50_ms, npu.times, npu.memory) == ("40/40", "2", "0.222", "64 MiB")
    page = site(tmp_path, made)["index.html"]
    assert page.index('id="ship"') < page.index('id="summary"') < page.index('id="environment"')
    assert "crash: SIGSEGV &lt;b&gt;" in page


@pytest.mark.parametrize(
    "models", [{"suites": ["onnx-node"], "folders": []}, {"suites": ["profile:cnn@1"], "folders": ["nets"]}]
)
def test_operator_suites_have_no_such_table(models: dict[str, Any], tmp_path: Path) -> None:
    made = report(record("test_abs", target="npu"), matrix={"path": "m.toml", "models": models})
    assert shipping_table(made) is None
    assert 'id="ship"' not in site(tmp_path, made)["index.html"]


@pytest.mark.parametrize(
    ("row", "precision", "left"),
    [
        (output(21.0), "", None),
        (output(None), "", None),
        (output(10.6, "float16"), "fp16", 5.1),
        (output(7.7, "bfloat16"), "bf16", 3.7),
        (output(5.5, "bfloat16"), "bf16", 1.5),
    ],
)
def test_a_lower_precision_is_named_with_what_is_left_of_it(
    row: OutputMetrics, precision: str, left: float | None
) -> None:
    one = record("m", outputs=(row,))
    assert lower_precision(one) == precision
    assert bits_to_spare(one) == (None if left is None else pytest.approx(left))
    assert is_near_limit(one) is (left is not None and left < 2)


def test_an_error_that_no_precision_explains_shows_none() -> None:
    far = Noise(precision="float32", rms=1e6, max=1e6, like="float16")
    row = msgspec.structs.replace(output(-0.1), noise=far)
    assert lower_precision(record("m", verdict=Verdict.MISMATCH, outputs=(row,))) == ""
    assert lower_precision(record("m", outputs=(row,))) == ""


def test_a_precision_that_was_asked_for_is_not_lower_but_has_the_limit() -> None:
    policy = {"precision": "bfloat16", "own_precision": "float32", "bits.": 6.0}
    one = record("m", outputs=(output(7.7, precision="bfloat16"),), policy=policy)
    assert lower_precision(one) == ""
    assert bits_to_spare(one) == pytest.approx(1.7)
    assert is_near_limit(one)


def test_a_square_has_nodes_precision_and_a_warning(tmp_path: Path) -> None:
    placement = placement_of({}, ep_nodes=400, cpu_nodes=8, partitions=2)
    made = report(
        record(
            "a.onnx",
            target="npu",
            verdict=Verdict.PASS_PARTIAL,
            suite="nets",
            placement=placement,
            outputs=(output(5.0, "bfloat16"),),
        )
    )
    (page,) = model_pages(made)
    (cell,) = page.suites[0].rows[0].cells
    assert cell is not None
    assert (cell.nodes, cell.precision, cell.near, cell.text) == ("400/408", "bf16", True, "5.0")
    html = site(tmp_path, made)["models.html"]
    assert '<td class="partial near"' in html
    assert '<span class="nodes">400/408</span> 5.0 <span class="lower">bf16</span>' in html


def test_failures_are_not_mixed_across_providers_and_name_their_models_while_closed(tmp_path: Path) -> None:
    made = report(
        *(
            record(
                name,
                target=target,
                verdict=Verdict.ERROR,
                suite="nets",
                reason="no f16",
                provider=f"{target}Provider",
            )
            for target in ("npu", "gpu")
            for name in ("a.onnx", "b.onnx")
        )
    )
    groups = made.expected_failures.shown + made.unexpected_failures.shown
    assert {(group.provider, group.models) for group in groups} == {
        ("npuProvider", ("a.onnx", "b.onnx")),
        ("gpuProvider", ("a.onnx", "b.onnx")),
    }
    closed = site(tmp_path, made)["failures.html"].partition("<summary>")[2].partition("</summary>")[0]
    assert "no f16" in closed
    assert "a.onnx, b.onnx" in closed
