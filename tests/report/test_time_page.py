"""The page *Time*: bars of operators and nodes, boundaries, loading; names of a model are text."""

from pathlib import Path

import pytest

from harness.core.records.record import Record
from harness.core.records.shape_times import ShapeTime
from harness.core.timing.node_times import Boundary, NodeTime, NodeTimes
from harness.report.pages.time_page import TimePage, time_view
from harness.report.report_files import write_report
from harness.report.view import build_report
from tests.kit import latency, merged, record, write_run

HOSTILE = "<script>alert(1)</script>"


def times(**changes: object) -> NodeTimes:
    known = {
        "runs": 30,
        "run_ms": (1.0, 1.1, 1.2),
        "parts": {"ep": (0.7, 0.7, 0.7), "copy": (0.2, 0.2, 0.2), "between": (0.1, 0.1, 0.1)},
        "nodes": (
            NodeTime(node=HOSTILE, op="Conv 3x3", side="ep", ms=(0.6, 0.6, 0.6), low_ms=0.5, high_ms=0.7),
            *(
                NodeTime(node=f"n{i}", op="Relu", side="ep", ms=(0.001,) * 3, low_ms=0.0, high_ms=0.01)
                for i in range(100)
            ),
            NodeTime(node="m", op="MemcpyToHost", side="copy", ms=(0.2, 0.2, 0.2), low_ms=0.2, high_ms=0.2),
        ),
        "boundaries": (Boundary(after=HOSTILE, before="", ms=(0.2, 0.2, 0.2), copies=1, nbytes=1 << 20),),
        "boundary_count": 3,
        "create_ms": (5.0, 6.0, 7.0),
        "create_processor_ms": (4.0, 4.0, 4.0),
        "first_processor_ms": 9.0,
    }
    return NodeTimes(**(known | changes))  # type: ignore[arg-type]


def page_of(*records: Record) -> TimePage:
    (view,) = time_view(build_report(merged(list(records)), lambda *_: "", {}))
    return view


def test_a_report_without_profiles_has_no_such_page() -> None:
    assert not list(time_view(build_report(merged([record("a", latency=latency(1.0))]), lambda *_: "", {})))


def test_the_largest_operator_and_boundary_are_told() -> None:
    page = page_of(record("a", node_times=times(), latency=latency(1.0), timings_ms={"create": 20.0}))
    (cell,) = page.models[0].cells
    assert cell.sentence.startswith(f"1.1 ms a run: 55% Conv 3x3; the largest node is {HOSTILE} (55%)")
    assert cell.boundary == f"after {HOSTILE}, before the outputs: 0.2 ms (18.2%), a copy, 1 MiB"
    assert [row.name for row in cell.operators] == ["Conv 3x3", "MemcpyToHost", "Relu"]
    assert (cell.loading.first, cell.loading.first_processor) == ("20", "9")
    assert (cell.loading.again, cell.loading.again_processor) == ("5 to 7", "4")


def test_neighbours_too_small_to_see_are_one_bar() -> None:
    (cell,) = page_of(record("a", node_times=times())).models[0].cells
    texts = [bar.text for bar in cell.by_node.bars]
    assert texts == ["a run", f"Conv 3x3 {HOSTILE}", "100 small ones", "MemcpyToHost m", "between nodes"]
    assert all(bar.x + bar.width <= 100.001 for bar in cell.by_node.bars)
    assert sum(bar.width for bar in cell.by_node.bars[1:]) == pytest.approx(100, abs=0.1)


def test_names_are_text_and_what_failed_is_told(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run",
        [
            record("a", node_times=times()),
            record("b", node_times=NodeTimes(problem=HOSTILE)),
            record(
                "c",
                axes={"scenario": "dynamic_shapes"},
                scenario={"shapes": (f"{HOSTILE}=1, n=2",)},
                shape_times=(ShapeTime(runs=1, p50_ms=1.0, low_ms=1.0, high_ms=1.0),),
            ),
        ],
    )
    write_report([run], tmp_path / "out")
    html = (tmp_path / "out" / "time.html").read_text(encoding="utf-8")
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "Not timed" in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;=1" in html
