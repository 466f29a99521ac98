"""The page *Depth*: one chart of all targets, the graph, and names that are inert."""

from pathlib import Path

import msgspec

from harness.core.records.trace import (
    Trace,
    TracedModel,
    TracedNode,
    TracedPartition,
    TracedTarget,
    TraceError,
    encode_trace,
)
from harness.report.drawings.depth_chart import depth_chart
from harness.report.drawings.depth_graph import depth_graph
from harness.report.runs.merge import merge
from harness.report.runs.read import read_run
from harness.report.view import build_report
from tests.kit import record, site, write_run

EVIL = "</title><script>alert(1)</script>"


def nodes(target: str, *guilty: int, count: int = 6) -> tuple[TracedNode, ...]:
    healthy, wrong = TraceError(noise=0.6), TraceError(noise=5e4)
    return tuple(
        TracedNode(
            target=target,
            number=number,
            depth=number,
            node=f"{EVIL}{number}",
            op_type="Add",
            inputs=(f"{EVIL}{number - 1}",) if number else (),
            partition=number // 3,
            whole=wrong if any(number >= one for one in guilty) else healthy,
            made=wrong if number in guilty else healthy,
            guilty=number in guilty,
        )
        for number in range(count)
    )


def trace() -> Trace:
    def target(name: str) -> TracedTarget:
        return TracedTarget(target=name, provider="P", sentence=f"Made at {EVIL}.", finding="made")

    model = TracedModel(model=EVIL, digest="", nodes=6, inputs="generated")
    partitions = (
        part("one", 0, made=TraceError(noise=0.5)),
        part("one", 1, made=TraceError(noise=2e3), guilty=True, compiled="otherwise"),
        part("two", 0, problem="as one model: error"),
    )
    targets = ((target("one"), nodes("one", 3)), (target("two"), nodes("two")))
    return Trace(model=model, targets=targets, partitions=partitions)


def part(target: str, number: int, **fields: object) -> TracedPartition:
    usual = TracedPartition(target=target, number=number, nodes=3, first=f"{EVIL}0", last=f"{EVIL}2")
    return msgspec.structs.replace(usual, **fields)


def test_the_chart_has_both_lines_of_both_targets_the_band_and_the_guilty_node() -> None:
    chart = depth_chart(trace().targets)
    assert chart is not None
    assert [(line.target, line.kind) for line in chart.lines] == [
        (0, "whole"),
        (0, "made"),
        (1, "whole"),
        (1, "made"),
    ]
    (dot,) = chart.dots
    assert chart.top <= dot.y < chart.band < chart.floor
    assert len(chart.names) == 1
    assert [one.odd for one in chart.stripes] == [False, True]


def test_the_chart_has_what_each_partition_makes_and_names_the_guilty_one() -> None:
    chart = depth_chart(trace().targets, trace().partitions)
    assert chart is not None
    right, wrong = chart.compiled  # the third has no error
    assert [right.guilty, wrong.guilty] == [one.guilty for one in chart.stripes] == [False, True]
    assert wrong.y < chart.band < right.y
    assert [(line.x, line.end) for line in chart.compiled] == [
        (stripe.x, round(stripe.x + stripe.width, 1)) for stripe in chart.stripes
    ]
    assert chart.names[1].text == "partition 2, 3 nodes"
    assert wrong.title == "partition 2, 3 nodes: makes 2e+03 times the noise as compiled"


def test_the_line_of_a_deep_model_goes_to_its_end() -> None:
    (target, _), _ = trace().targets
    chart = depth_chart([(target, nodes("one", 1998, count=2000))])
    assert chart is not None
    assert all(len(line.path) < 4000 for line in chart.lines)  # a page cuts off what is longer than 5000
    whole, made = (line.path.rpartition("L")[2].split() for line in chart.lines)
    assert float(whole[0]) == float(made[0]) == chart.right
    (dot,) = chart.dots
    assert float(whole[1]) == dot.y


def test_nothing_measured_gives_no_chart() -> None:
    bare = tuple(msgspec.structs.replace(one, whole=None, made=None) for one in nodes("one"))
    (target, _), _ = trace().targets
    assert depth_chart([(target, bare)]) is None


def test_healthy_chains_are_one_box_and_the_guilty_node_stands_alone() -> None:
    drawn = depth_graph(nodes("one", 3, count=9))
    assert [(box.text, box.level, box.guilty) for box in drawn.boxes] == [
        ("3 nodes", 0, False),
        ("Add", 4, True),
        ("2 nodes", 0, False),
        ("3 nodes", 0, False),
    ]
    assert len(drawn.edges) == 3


def test_the_report_of_a_traced_run_has_the_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record()])
    assert "depth.html" not in site(
        tmp_path / "bare", build_report(merge([read_run(run)]), lambda *_: "", {})
    )
    (run / "trace").mkdir()
    (run / "trace" / "trace.jsonl").write_bytes(encode_trace(trace()))
    page = site(tmp_path / "traced", build_report(merge([read_run(run)]), lambda *_: "", {}))["depth.html"]
    assert "<script>alert" not in page
    assert 'class="graph made-graph"' in page
    assert "The inputs are generated" in page
    assert 'class="part odd wrong"' in page
    assert "alone, the provider takes these nodes otherwise than in the model" in page
    assert "as one model: error" in page
    (run / "trace" / "trace.jsonl").write_bytes(b"{}\n")
    data = read_run(run)
    assert data.traces == ()
    assert "trace.jsonl: not shown: line 1" in data.told[-1]
