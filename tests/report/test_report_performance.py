"""The page *Performance*: the fastest column, and what makes times hard to compare."""

import functools
import re
from pathlib import Path

import msgspec
import pytest

from harness.core.records.generation_figures import GenerationFigures, GenerationSpeed
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.report.pages import performance as module
from harness.report.pages import text_speed
from harness.report.pages.performance import Performance, performance_view
from harness.report.report_files import write_report
from harness.report.view import build_report
from tests import kit
from tests.kit import merged, record, write_run

latency = functools.partial(
    kit.latency, warm_up=2, stopped_by="repeats", waiting_threads=0.0, host_peak_mib=80.4
)


def page_of(records: list[Record]) -> Performance:
    (view,) = performance_view(build_report(merged(records), lambda *_: "", {}))
    return view


def test_the_fastest_is_first_and_the_others_are_compared_with_it() -> None:
    page = page_of(
        [
            record("a", target="slow", latency=latency(*range(20, 30))),
            record("a", target="quick", latency=latency(*range(10, 20))),
            record("b", target="slow", latency=latency(5.0, stopped_by="budget")),
            record("c", target="slow"),
        ]
    )
    first, second = page.models
    assert [(cell.cell.column.target, cell.times, cell.fastest) for cell in first.cells] == [
        ("quick", "1", True),
        ("slow", "1.69", False),
    ]
    assert (first.cells[0].latency.p50_ms, first.cells[0].latency.p99_ms) == (14.5, None)
    assert first.cells[0].plot[-1] < first.cells[1].plot[-1] == 100.0
    assert [cell.plot == tuple(sorted(cell.plot)) for cell in first.cells] == [True, True]
    assert second.name == "onnx-node/b"
    assert [(cell.times, cell.fastest, cell.notes) for cell in second.cells] == [
        ("", False, ("1 run, then the time was up",))
    ]
    assert [
        (speed.column.target, speed.measured, speed.fastest, speed.compared) for speed in page.columns
    ] == [
        ("slow", 2, 0, 1),
        ("quick", 1, 1, 1),
    ]


def test_what_makes_times_hard_to_compare_is_reported() -> None:
    page = page_of(
        [
            record("a", target="npu", latency=latency(1.0, waiting_threads=0.2, device_mib=12.0)),
            record("a", target="cpu", verdict=Verdict.PASS_PARTIAL, latency=latency(2.0, intra_op_threads=0)),
            record(
                "a",
                target="gpu",
                axes={"scenario": "io_binding"},
                latency=latency(3.0, io="bound", host_peak_mib=None),
            ),
        ]
    )
    npu, cpu, gpu = page.models[0].cells
    assert [cell.latency.disturbed for cell in (npu, cpu, gpu)] == [True, False, False]
    assert page.disturbed == 1
    assert (npu.memory, gpu.memory) == ("80 MiB + 12 MiB on the device", "unknown")
    assert page.threads == ""
    assert "1 thread within an operator and 1 thread across operators" in npu.notes
    assert cpu.notes[0] == "partly on the CPU"
    assert cpu.notes[1].startswith("as many threads as onnxruntime chooses within an operator")
    assert gpu.notes[0] == "inputs and outputs bound"


def test_a_page_shows_as_much_as_a_browser_opens_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", 3)
    records = [
        record(f"m{number}", target=target, latency=latency(1.0)) for number in range(4) for target in "xy"
    ]
    page = page_of(records)
    assert (len(page.models), page.cells, page.left_out) == (1, 8, 6)


def test_the_page_is_inert_and_every_figure_is_on_it(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    folder = write_run(
        tmp_path / "run",
        [
            record(hostile, target=hostile, latency=latency(*[1.25] * 100, waiting_threads=0.5)),
            record(hostile, target="cpu", latency=latency(*[0.5] * 100)),
        ],
    )
    index = write_report([folder], tmp_path / "report")[0]
    page = (index.parent / "performance.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert 'href="performance.html"' in index.read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    for said in ("★ fastest", "0.5 ", "2.5×", "1 cell was disturbed", "100 runs", "80 MiB", "of 1 model "):  # noqa: RUF001
        assert said in text


def test_a_run_without_latency_has_no_such_page(tmp_path: Path) -> None:
    index = write_report([write_run(tmp_path / "run", [record()])], tmp_path / "report")[0]
    assert not (index.parent / "performance.html").exists()
    assert "performance.html" not in index.read_text(encoding="utf-8")


def test_the_speed_of_generated_text_is_what_users_quote(tmp_path: Path) -> None:
    fast = GenerationSpeed(first_token_ms={16: 4.0, 128: 31.0}, tokens_per_s={1: 50.0, 4: 160.0})
    slow = GenerationSpeed(first_token_ms={16: 8.0}, tokens_per_s={1: 12345.0}, cache_mib=1.5)
    fast = msgspec.structs.replace(fast, tokens_per_s_at={16: 55.0, 128: 44.0})
    records = [
        record("llm", target="npu", generation=GenerationFigures(speed=fast)),
        record("llm", target="gpu", generation=GenerationFigures(speed=slow)),
        record(
            "llm",
            target="bad",
            verdict=Verdict.MISMATCH,
            generation=GenerationFigures(speed=GenerationSpeed(tokens_per_s={1: 1e6})),
        ),
        record("llm", target="none", generation=GenerationFigures()),
    ]
    view = page_of(records)
    assert (view.cells, view.text.cells, view.text.left_out) == (0, 3, 0)
    (model,) = view.text.models
    assert (model.prompts, model.batches, model.sizes_left_out) == ((16, 128), (1, 4), 0)
    npu, gpu, bad = model.cells
    assert [(figure.text, figure.best) for figure in npu.first] == [("4", True), ("31", False)]
    assert [(figure.text, figure.best) for figure in gpu.first] == [("8", False), ("–", False)]  # noqa: RUF001
    assert [(figure.text, figure.best) for figure in npu.rate] == [("50", False), ("160", False)]
    assert [(figure.text, figure.best) for figure in gpu.rate] == [("12,345", True), ("–", False)]  # noqa: RUF001
    assert [figure.best for figure in bad.rate] == [False, False]
    assert [cell.cache for cell in model.cells] == ["–", "1.5 MiB", "–"]  # noqa: RUF001 - as the page has it
    index = write_report([write_run(tmp_path / "run", records)], tmp_path / "report")[0]
    page = (index.parent / "performance.html").read_text(encoding="utf-8")
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "Latency by model" not in text
    assert (
        "First token, prompt 16, ms First token, prompt 128, ms Tokens/s, batch 1 Tokens/s, batch 4" in text
    )
    assert "npu 4 ★ 31 50 160" in text
    assert "Tokens/s, context 16 Tokens/s, context 128 npu 55 44 gpu – –" in text  # noqa: RUF001
    assert "gpu 8 – 12,345 ★ – 1.5 MiB" in text  # noqa: RUF001 - as the page has it


def test_the_run_of_a_cell_that_generates_text_is_one_token() -> None:
    cells = [
        record("llm", axes={"scenario": scenario}, latency=latency(1.0)) for scenario in ("plain", "generate")
    ]
    notes = [cell.notes[0] for cell in page_of(cells).models[0].cells]
    assert sorted(notes) == ["1 run", "a run is one token, with the text before it in the cache"]


def test_many_lengths_are_chosen_evenly_and_many_cells_end_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_speed, "MOST_TEXT_CELLS", 3)
    speed = GenerationSpeed(first_token_ms=dict.fromkeys(range(1, 14), 1.0))
    records = [
        record(f"m{number}", target=target, generation=GenerationFigures(speed=speed))
        for number in range(3)
        for target in "xy"
    ]
    found = page_of(records).text
    assert [model.name for model in found.models] == ["onnx-node/m0"]
    assert (found.cells, found.left_out) == (6, 4)
    assert found.models[0].prompts == (1, 4, 7, 10, 13)
    assert found.models[0].sizes_left_out == 8


def test_neither_a_simulator_nor_noise_nor_a_disturbed_time_is_the_fastest() -> None:
    busy = latency(9.0, waiting_threads=0.6)
    records = [
        record("sim", target="program", latency=latency(1.0)),
        record("sim", target="cpu", latency=latency(5.0)),
        record("sim", target="npu", latency=latency(9.0)),
        record("equal", target="cpu", latency=latency(5.0)),
        record("equal", target="npu", latency=latency(5.9)),
        record("busy", target="cpu", latency=busy),
        record("busy", target="npu", latency=latency(10.0)),
    ]
    run = msgspec.structs.replace(merged(records), simulated={"program": "SwiftShader"})
    (page,) = performance_view(build_report(run, lambda *_: "", {}))
    fastest = {
        model.name: [one.cell.column.target for one in model.cells if one.fastest] for model in page.models
    }
    assert fastest == {"onnx-node/sim": ["cpu"], "onnx-node/equal": [], "onnx-node/busy": []}
